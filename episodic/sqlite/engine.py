"""The SQLite engine as one thing: where it lives, its store and its readers."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from episodic.errors import NotOurFileError, WrongLoopError
from episodic.settings import Settings
from episodic.sqlite.connect import Place, connect_reader, leave_nothing, place, translated
from episodic.sqlite.migrate import identify
from episodic.sqlite.readers import SqliteReaders
from episodic.sqlite.store import SqliteStore

__all__ = ["Engine", "open_engine"]

FileId: TypeAlias = tuple[int, int]

# Which processes have which files open, by device and inode. A forked child inherits SQLite's own table of open files,
# but not the locks in it: whatever it opened there could lose what it acknowledged.
_openers: defaultdict[FileId, list[int]] = defaultdict(list)


@dataclass(frozen=True, slots=True)
class Engine:
    """An open database.

    Attributes:
        where: its file.
        file_id: the file's identity, which a fork hands on.
        has_wal: whether there was a write-ahead log when it was opened for reading.
        store: the writing connection, or None when it was opened for reading only.
        readers: the reading connections.
        clock: the latest time that the log gave before, in microseconds.
        mode: how words are found.
        reindexed: episodes that were indexed at open.
        version: of SQLite.
    """

    where: Place
    file_id: FileId
    has_wal: bool
    store: SqliteStore | None
    readers: SqliteReaders
    clock: int
    mode: Literal["fts", "like"]
    reindexed: int
    version: str

    @property
    def path(self) -> str:
        """The database file."""
        return str(self.where.path)

    def file_bytes(self) -> int:
        """Return the size of the database file."""
        return _size(Path(self.path))

    def wal_bytes(self) -> int:
        """Return the size of the write-ahead log."""
        return _size(Path(f"{self.path}-wal"))

    async def aclose(self) -> None:
        """Close the readers first, so that the writer is the last to leave and folds the WAL into the file."""
        await self.readers.aclose()
        if self.store is not None:
            await self.store.aclose()
        elif not (self.has_wal or self.where.immutable):
            await leave_nothing(self.where)
        _openers[self.file_id].remove(os.getpid())


async def open_engine(path: str | os.PathLike[str], settings: Settings, *, read_only: bool) -> Engine:
    """Open a database, for writing made, migrated and healed.

    Raises:
        OpenError: when there can be no log at `path`.
        ReadOnlyError: when it is to be written and cannot be.
    """
    where = place(path, read_only=read_only)
    has_wal = wal_of(where.path).exists()
    _refuse_after_fork(where)
    if read_only:
        await _check_ours(where, settings)
        return _engine(where, None, await SqliteReaders.open(where, settings), 0, has_wal=has_wal)
    store = await SqliteStore.open(where, settings)
    try:
        readers = await SqliteReaders.open(where, settings)
        return _engine(where, store, readers, await store.clock(), has_wal=has_wal)
    except BaseException:
        await store.aclose()
        raise


async def _check_ours(where: Place, settings: Settings) -> None:
    db = await connect_reader(where, busy_timeout=settings.busy_timeout)
    try:
        if not await identify(db, where.path):
            msg = f"{where.path} is empty, no log was written to it yet; check the path"
            raise NotOurFileError(msg)
    finally:
        await db.close()


def _engine(where: Place, store: SqliteStore | None, readers: SqliteReaders, clock: int) -> Engine:
    return Engine(
        path=str(where.path),
        store=store,
        readers=readers,
        clock=clock,
        mode=readers.mode,
        reindexed=0 if store is None else store.reindexed,
        version=sqlite3.sqlite_version,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
