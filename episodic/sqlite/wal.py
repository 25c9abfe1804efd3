"""The write-ahead log beside a database: folded into the file by its one writer, before it grows too large."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from io import FileIO
from typing import NamedTuple

import aiosqlite

from episodic.errors import StorageError
from episodic.events import Checkpointed, OnEvent, WalGrown
from episodic.sqlite.connect import Place, translated, wal_of

__all__ = ["BOUND", "FOLDED_AT", "WriteAheadLog"]

# It is folded into the file at this size: at 40 MB instead of 4, half of the write rate is kept. Where a reader is in
# the way it is tried again after as much more, and over the bound that is told.
FOLDED_AT = 40 * 2**20
BOUND = 128 * 2**20

# Its file is then written over from its beginning: one that is cut off and grows anew costs a sixth of the write rate.
BEGIN_ANEW = "PRAGMA wal_checkpoint(RESTART)"
CUT_OFF = "PRAGMA wal_checkpoint(TRUNCATE)"
WAIT = "PRAGMA busy_timeout = {}"

# Seconds that folding waits for readers, which mostly have their answer in a tenth of that. Nothing is recorded
# meanwhile.
PATIENCE = 0.1

# Of its format (https://sqlite.org/fileformat2.html#walformat), in bytes.
HEADER = 32
PAGE_SIZE = slice(8, 12)
SALTS = slice(16, 24)
FRAME_HEADER = 24
FRAME_SALTS = slice(8, 16)

logger = logging.getLogger("episodic")


class _Head(NamedTuple):
    """What its first bytes say.

    Attributes:
        salts: which its frames bear, too, if they were written since it was begun anew.
        frame_size: of each frame, in bytes.
        size: which what was written since then has at the least.
    """

    salts: bytes
    frame_size: int
    size: int


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
        # Kept open: nobody takes the file away while the connection is.
        self._file: FileIO | None = None
        self._usual = int(busy_timeout * 1_000)
        self._on_event = on_event
        # The salts that were there at the last attempt, and the size to which frames with them must come for another.
        self._tried, self._again_at = b"", 0
        self._is_warned = False
        self._is_folding = False

    async def keep_short(self, folded_at: int) -> None:
        """Fold it into the file when it has become large; whatever comes of that, what was committed is safe in either.

        Args:
            folded_at: how large, in bytes.
        """
        if self._is_folding:
            return
        self._is_folding = True
        try:
            await self._fold_if_due(folded_at)
        except (StorageError, OSError) as exc:
            logger.warning(
                "%s: folding the write-ahead log into the file failed, and is tried again: %s", self._where.path, exc
            )
        finally:
            self._is_folding = False

    async def _fold_if_due(self, folded_at: int) -> None:
        head = self._due(folded_at)
        if head is None:
            return
        # What fails is tried again after as much more, too.
        self._tried, self._again_at = head.salts, head.size + folded_at
        begun = time.perf_counter()
        is_folded, frames = await self._checkpoint(BEGIN_ANEW, PATIENCE)
        size = max(head.size, HEADER + frames * head.frame_size)
        self._again_at = size + folded_at
        if is_folded:
            self._is_warned = False
            self._on_event(Checkpointed(size, time.perf_counter() - begun))
        else:
            self._tell_grown(size)

    async def fold(self, patience: float) -> bool:
        """Fold it into the file and empty it; tell whether no reader was in the way.

        Args:
            patience: seconds to wait for readers.

        Raises:
            StorageError: the disk is full, or failed.
        """
        is_folded, _ = await self._checkpoint(CUT_OFF, patience)
        return is_folded

    def close(self) -> None:
        """Look at it no more."""
        if self._file is not None:
            self._file.close()

    async def _checkpoint(self, statement: str, patience: float) -> tuple[bool, int]:
        """Tell whether all of it was folded in, and how many frames it had."""
        # Handed over in one go: between them would be another batch each, behind which who waits for this one waits.
        script = (WAIT.format(int(patience * 1_000)), statement, WAIT.format(self._usual))
        with translated(self._where.path):
            _, [(is_busy, frames, _)], _ = await asyncio.gather(*map(self._db.execute_fetchall, script))
        # There is no number while another process is at it.
        return not is_busy, max(frames, 0)

    def _due(self, folded_at: int) -> _Head | None:
        """Return its head if what was written since it was begun anew is large enough.

        Behind that are older frames, which bear other salts.
        """
        try:
            self._file = self._file or wal_of(self._where.path).open("rb", buffering=0)
        except FileNotFoundError:
            return None
        handle = self._file.fileno()
        header = os.pread(handle, HEADER, 0)
        salts, frame_size = header[SALTS], FRAME_HEADER + int.from_bytes(header[PAGE_SIZE])
        size = max(folded_at, self._again_at) if salts == self._tried else folded_at
        last = os.pread(handle, FRAME_HEADER, HEADER + (size - HEADER) // frame_size * frame_size)
        return _Head(salts, frame_size, size) if header and last[FRAME_SALTS] == salts else None

    def _tell_grown(self, size: int) -> None:
        if size <= BOUND:
            return
        if not self._is_warned:
            self._is_warned = True
            logger.warning(
                "%s: its write-ahead log has grown to %d bytes: a reader keeps to an earlier state of the log, or "
                "another writer is in the way",
                self._where.path,
                size,
            )
        self._on_event(WalGrown(size))
