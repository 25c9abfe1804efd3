"""Taking turns with other processes that write the same file."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from episodic.sqlite.connect import code_of

__all__ = ["POLL", "Turns"]

AnswerT = TypeVar("AnswerT")

# Seconds that SQLite itself waits for a lock, looking again after 1, 2, 5 and 2 ms. Left to itself it comes to look
# only every 100 ms, and beside a process that writes without a pause that is in vain for many seconds.
POLL = 0.010

# Seconds between two transactions of ours that leave the lock to others: as long as the longest of their pauses.
REST = 0.005

# Seconds after the last sign of another process during which there may be more of it.
SHARED = 1.0


class Turns:
    """The order of a connection's transactions, and the pauses between them while another process writes, too.

    While nobody else writes, statements follow each other without a pause, and the next one is handed over before the
    last one has ended. With others there is one at a time and a rest behind it, which others fill.
    """

    def __init__(self, patience: float) -> None:
        """Begin alone.

        Args:
            patience: seconds to wait for others.
        """
        self._patience = patience
        self._shared_until = self._free_at = 0.0
        # In the order of asking.
        self._turn = anyio.Lock(fast_acquire=True)

    def saw_another(self) -> None:
        """Note that another process has written."""
        self._shared_until = anyio.current_time() + SHARED

    async def take(self, run: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        """Run a statement that writes, when no other process does.

        Args:
            run: runs it, and may be called again when it found the file locked.

        Raises:
            sqlite3.OperationalError: others held the lock for too long.
        """
        if anyio.current_time() >= self._shared_until and not self._turn.locked():
            try:
                return await run()
            except sqlite3.OperationalError as exc:
                if not _is_locked(exc):
                    raise
        async with self._turn:
            return await self._take_shared(run)

    async def _take_shared(self, run: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        deadline = anyio.current_time() + self._patience
        await anyio.sleep_until(self._free_at)
        while True:
            try:
                answer = await run()
            except sqlite3.OperationalError as exc:
                if not _is_locked(exc) or anyio.current_time() >= deadline:
                    raise
                self.saw_another()
            else:
                self._free_at = anyio.current_time() + REST
                return answer


def _is_locked(error: sqlite3.OperationalError) -> bool:
    """Tell what waiting helps against: not a snapshot that is out of date, which says busy, too."""
    code = code_of(error)
    return code & 0xFF == sqlite3.SQLITE_BUSY and code != sqlite3.SQLITE_BUSY_SNAPSHOT
