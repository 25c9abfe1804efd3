"""The pool of reading connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

import aiosqlite
import anyio

from episodic.settings import Settings
from episodic.sqlite.connect import Place, connect_reader, translated
from episodic.sqlite.filters import Indexes
from episodic.sqlite.frequencies import Frequencies
from episodic.sqlite.fts import has_index
from episodic.sqlite.journal import metadata_member
from episodic.sqlite.readers import SqliteReader

__all__ = ["SqliteReaders"]


class SqliteReaders:
    """A `ports.Readers`: a fixed number of connections, lent one at a time."""

    def __init__(self, idle: list[SqliteReader], where: Place) -> None:
        """Take the connections, all free."""
        self._all = tuple(idle)
        self._idle = idle
        self._where = where
        self._lent = 0
        # Without fast_acquire each borrow would wait for a turn of the event loop, which a burst of writes makes long.
        self._free = anyio.Semaphore(len(idle), fast_acquire=True)

    @classmethod
    async def open(cls, where: Place, settings: Settings) -> SqliteReaders:
        """Open all connections."""
        connections: list[aiosqlite.Connection] = []
        opened: list[SqliteReader] = []
        frequencies = Frequencies()
        try:
            for _ in range(settings.readers):
                db = await connect_reader(where, busy_timeout=settings.busy_timeout)
                connections.append(db)
                with translated(where.path):
                    # Not each key that is set has an index: who only reads makes none.
                    indexes = await _indexes(db, settings.indexed_metadata)
                    opened.append(SqliteReader(db, where, indexes, frequencies, fts=await has_index(db)))
        except BaseException:
            for db in connections:
                await db.close()
            raise
        return cls(opened, where)

    @property
    def mode(self) -> Literal["fts", "like"]:
        """How words are found."""
        return self._all[0].mode

    @property
    def size(self) -> int:
        """How many connections there are."""
        return len(self._all)

    @property
    def idle(self) -> int:
        """How many of them are free."""
        return len(self._idle)

    @property
    def lent(self) -> int:
        """How often one was lent."""
        return self._lent

    @asynccontextmanager
    async def borrow(self, *, snapshot: bool = False) -> AsyncIterator[SqliteReader]:
        """Lend a connection; with `snapshot` all its answers are of one moment."""
        async with self._free:
            reader = self._idle.pop()
            self._lent += 1
            place = len(self._all)
            try:
                if snapshot:
                    # Inside the try: a BEGIN whose caller is cancelled still runs.
                    with translated(self._where.path):
                        await reader.db.execute("BEGIN")
                yield reader
            except asyncio.CancelledError:
                # Its thread may still be at work: it is told to stop, and the next to borrow gets another one first.
                await reader.db.interrupt()
                place = 0
                raise
            finally:
                try:
                    if snapshot:
                        # Its thread ends it before whatever comes next, even if this task is cancelled once more.
                        with translated(self._where.path):
                            await asyncio.shield(asyncio.ensure_future(reader.db.rollback()))
                finally:
                    self._idle.insert(place, reader)

    async def aclose(self) -> None:
        """Close all connections once they are given back."""
        for _ in self._all:
            await self._free.acquire()
        async with AsyncExitStack() as stack:
            for reader in self._all:
                stack.push_async_callback(reader.db.close)


async def _indexes(db: aiosqlite.Connection, keys: Sequence[str]) -> Indexes:
    """Find which indexes there are, of these metadata keys and of what is not archived."""
    rows = await db.execute_fetchall("SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE type = 'index'")
    there = {str(name): str(sql) for name, sql in rows}
    metadata = {key: name for key in keys for name, sql in there.items() if metadata_member(key) in sql}
    return Indexes(metadata, hot="episodes_hot" in there)
