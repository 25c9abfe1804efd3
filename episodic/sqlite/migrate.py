"""Whose file it is, its version, and how it comes to the present one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import aiosqlite

from episodic.errors import NewerFileError, NotOurFileError
from episodic.sqlite.connect import read_sql, run_script, statements, translated

__all__ = ["MIGRATIONS", "VERSION", "identify", "migrate"]

# "EpLg" in the file's header: no other program's database is taken for a log.
APPLICATION_ID = 0x45704C67
STAMP_APPLICATION = f"PRAGMA application_id = {APPLICATION_ID}"

# MIGRATIONS[n] names the script that brings version n to n + 1; version 0 is an empty file.
MIGRATIONS: tuple[str, ...] = ("schema", "removal")
VERSION = len(MIGRATIONS)
STAMP_VERSION = f"PRAGMA user_version = {VERSION}"

HEADER = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
FROM pragma_application_id, pragma_user_version
"""


class _Header(NamedTuple):
    application: int
    version: int
    objects: int


async def identify(db: aiosqlite.Connection, path: Path) -> int:
    """Return the version of the log in a file, 0 for an empty file.

    Raises:
        NotOurFileError: when the file holds something else.
        NewerFileError: when a newer version of episodic wrote it.
    """
    with translated(path):
        header = _Header(*next(iter(await db.execute_fetchall(HEADER))))
    if header == (0, 0, 0):
        return 0
    if header.application != APPLICATION_ID:
        msg = f"{path} is another program's database; use another path, or `episodic import` it"
        raise NotOurFileError(msg)
    if header.version > VERSION:
        msg = f"{path} has version {header.version}, this episodic knows up to {VERSION}; upgrade episodic to open it"
        raise NewerFileError(msg)
    return header.version


async def migrate(db: aiosqlite.Connection, path: Path) -> None:
    """Bring a file to the present version in one transaction that sees the version under its own lock."""
    if await identify(db, path) == VERSION:
        return
    with translated(path):
        await db.execute("BEGIN IMMEDIATE")
        try:
            for script in MIGRATIONS[await identify(db, path) :]:
                await run_script(db, statements(read_sql(script)))
            await db.execute(STAMP_APPLICATION)
            await db.execute(STAMP_VERSION)
            await db.commit()
        except BaseException:
            await db.rollback()
            raise
