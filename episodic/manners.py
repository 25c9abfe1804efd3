"""How those who share one event loop and one interpreter let each other have a turn."""

from __future__ import annotations

import anyio
from anyio.lowlevel import checkpoint

from episodic.ports import Readers

__all__ = ["Manners"]

BREATH_SECONDS = 0.001

# Slices of waiters between two turns of the event loop while nobody reads.
UNREAD_SLICES = 80


class Manners:
    """How the writer lets others have the event loop between two slices of waiters that it wakes."""

    def __init__(self, readers: Readers) -> None:
        """Watch a pool.

        Args:
            readers: who may be reading.
        """
        self._readers = readers
        self._lent = readers.lent
        self._slices = 0

    async def give_way(self) -> None:
        """Give way, the sooner and the longer the more somebody reads.

        A thread that comes back from SQLite beside a busy event loop waits 5 ms for the interpreter, several times for
        one answer; while the event loop sleeps it gets it at once. The store works on meanwhile. But when nobody reads,
        each turn of the event loop is one more that the writer's own thread may have to wait for: then a thousand
        waiters wake in one.
        """
        readers = self._readers
        lent, self._lent = self._lent, readers.lent
        self._slices += 1
        if readers.idle < readers.size:
            await anyio.sleep(BREATH_SECONDS)
        elif lent != self._lent or self._slices % UNREAD_SLICES == 0:
            await checkpoint()
