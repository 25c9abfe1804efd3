"""The SQLite engine as one thing: where it lives, its store and its readers."""

from __future__ import annotations

import os
import sqlite3
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from episodic.errors import NotOurFileError, OpenError, WrongLoopError
from episodic.events import OnEvent
from episodic.settings import Settings
from episodic.sqlite.connect import Place, connect_reader, leave_nothing, place, wal_bytes
from episodic.sqlite.migrate import VERSION, identify
from episodic.sqlite.pool import SqliteReaders
from episodic.sqlite.store import SqliteStore

__all__ = ["Engine", "open_engine"]

FileId: TypeAlias = tuple[int, int]

# Every file that is open: the process that opened it, device and inode. A forked child inherits SQLite's own table of
# open files, but not the locks in it: a log that it opened on such a file would lose what it acknowledged.
_open_files: list[tuple[int, FileId]] = []


@dataclass(frozen=True, slots=True)
class Engine:
    """An open database.

    Attributes:
        where: its file.
        file_id: its device and inode.
        store: the writing connection, or None when it was opened for reading only.
        readers: the reading connections.
        clock: the latest time that the log gave before, in microseconds.
        mode: how words are found.
        reindexed: episodes that were indexed at open.
        version: of SQLite.
    """

    where: Place
    file_id: FileId
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
        return self.where.path.stat().st_size

    def wal_bytes(self) -> int:
        """Return the size of the write-ahead log."""
        return wal_bytes(self.where.path)

    async def aclose(self) -> None:
        """Close the readers first, so that the writer is the last to leave and folds the WAL into the file.

        Whatever one of them says, the others are closed.
        """
        async with AsyncExitStack() as stack:
            stack.callback(_open_files.remove, (os.getpid(), self.file_id))
            stack.push_async_callback(leave_nothing, self.where)
            if self.store is not None:
                stack.push_async_callback(self.store.aclose)
            stack.push_async_callback(self.readers.aclose)


async def open_engine(
    path: str | os.PathLike[str], settings: Settings, on_event: OnEvent, *, read_only: bool
) -> Engine:
    """Open a database, for writing made, migrated and healed.

    Args:
        path: of the file.
        settings: how it is used.
        on_event: told of checkpoints.
        read_only: whether it is only read.

    Raises:
        OpenError: when there can be no log at `path`.
        ReadOnlyError: when it is to be written and cannot be.
    """
    where = place(path, read_only=read_only)
    _refuse_after_fork(where)
    if read_only:
        return _engine(where, None, await _open_reading(where, settings), 0)
    store = await SqliteStore.open(where, settings, on_event)
    try:
        clock = store.clock
        return _engine(where, store, await SqliteReaders.open(where, settings), clock)
    except BaseException:
        await store.aclose()
        raise


async def _open_reading(where: Place, settings: Settings) -> SqliteReaders:
    try:
        db = await connect_reader(where, busy_timeout=settings.busy_timeout)
        try:
            version = await identify(db, where.path)
            if not version:
                advice = "check the path, and whether the -wal file beside it was left behind"
                msg = f"{where.path} is empty, no log was written to it yet; {advice}"
                raise NotOurFileError(msg)
            if version < VERSION:
                msg = f"{where.path} has version {version}; open it for writing once, which brings it to {VERSION}"
                raise OpenError(msg)
        finally:
            await db.close()
        return await SqliteReaders.open(where, settings)
    except BaseException:
        await leave_nothing(where)
        raise


def _engine(where: Place, store: SqliteStore | None, readers: SqliteReaders, clock: int) -> Engine:
    file_id = _file_id(where.path)
    _open_files.append((os.getpid(), file_id))
    return Engine(
        where=where,
        file_id=file_id,
        store=store,
        readers=readers,
        clock=clock,
        mode=readers.mode,
        reindexed=0 if store is None else store.reindexed,
        version=sqlite3.sqlite_version,
    )


def _refuse_after_fork(where: Place) -> None:
    if where.path.exists() and any(
        process != os.getpid() and file_id == _file_id(where.path) for process, file_id in _open_files
    ):
        msg = (
            f"{where.path} was open when this process was forked, and SQLite cannot go on behind a fork: open the log "
            "after forking, or start the process anew (`spawn`)"
        )
        raise WrongLoopError(msg)


def _file_id(path: Path) -> FileId:
    status = path.stat()
    return status.st_dev, status.st_ino
