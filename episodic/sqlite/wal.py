"""The write-ahead log beside a database: folded into the file by its one writer, before it grows too large."""

from __future__ import annotations

import logging
import sqlite3
import time

import aiosqlite

from episodic.errors import StorageError
from episodic.events import Checkpointed, OnEvent, WalGrown
from episodic.sqlite.connect import Place, translated, wal_bytes

__all__ = ["FOLDED_AT", "WriteAheadLog"]

# It is folded into the file at this size: at 40 MB instead of 4, half of the write rate is kept. Where a reader is in
# the way it is tried again after as much more, and over the bound that is told.
FOLDED_AT = 40 * 2**20
BOUND = 128 * 2**20

# Seconds that folding waits for readers, which mostly have their answer in a hundredth of that. Nothing is recorded
# meanwhile.
PATIENCE = 0.1

# One script, so that no other statement waits for others only so long.
FOLD = "PRAGMA busy_timeout = {}; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = {}"
WAIT = "PRAGMA busy_timeout = {}"

logger = logging.getLogger("episodic")


class WriteAheadLog:
    """The write-ahead log of a connection that writes; SQLite's own checkpoints are off there."""

    def __init__(self, db: aiosqlite.Connection, where: Place, busy_timeout: float, on_event: OnEvent) -> None:
        """Take care of it.

        Args:
            db: the connection.
            where: its file.
            busy_timeout: seconds that the connection waits for others.
            on_event: told of checkpoints, and of one that is over its bound.
        """
        self._db = db
        self._where = where
        self._usual = int(busy_timeout * 1_000)
        self._on_event = on_event
        self._again_at = 0
        self._is_warned = False
        self._is_folding = False

    async def keep_short(self, folded_at: int) -> None:
        """Fold it into the file when it has become large; whatever comes of that, what was committed is safe in either.

        Args:
            folded_at: how large, in bytes.
        """
        before = wal_bytes(self._where.path)
        if before < max(folded_at, self._again_at) or self._is_folding:
            return
        begun = time.perf_counter()
        self._is_folding = True
        try:
            is_folded = await self.fold(PATIENCE)
        except StorageError as exc:
            logger.warning("folding the write-ahead log into the file failed, and is tried again: %s", exc)
            is_folded = False
        finally:
            self._is_folding = False
        if is_folded:
            self._again_at, self._is_warned = 0, False
            self._on_event(Checkpointed(before, time.perf_counter() - begun))
        else:
            self._has_grown()

    async def fold(self, patience: float) -> bool:
        """Fold it into the file and empty it; tell whether no reader was in the way.

        Args:
            patience: seconds to wait for readers.

        Raises:
            StorageError: the disk is full, or failed.
        """
        with translated(self._where.path):
            try:
                await self._db.executescript(FOLD.format(int(patience * 1_000), self._usual))
            except sqlite3.Error:
                await self._db.execute_fetchall(WAIT.format(self._usual))
                raise
        return not wal_bytes(self._where.path)

    def _has_grown(self) -> None:
        size = wal_bytes(self._where.path)
        self._again_at = size + FOLDED_AT
        if size <= BOUND:
            return
        if not self._is_warned:
            self._is_warned = True
            logger.warning(
                "%s: its write-ahead log has grown to %d bytes: a reader keeps to an earlier state of the log",
                self._where.path,
                size,
            )
        self._on_event(WalGrown(size))
