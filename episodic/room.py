"""The bound of a queue, in rows and bytes: who finds no room waits for it, in the order of asking."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from episodic.errors import ClosedError, QueueFullError
from episodic.settings import Settings

__all__ = ["Room", "closed"]


@dataclass(slots=True, eq=False)
class _Waiter:
    """A call that waits for room; once `granted`, the room is taken on its behalf."""

    rows: int
    size: int
    turn: asyncio.Future[None]
    granted: bool = False


class Room:
    """What there is of it, who has it, and who waits for it.

    Attributes:
        rows: taken.
        size: taken, in bytes.
        is_closed: whether nobody gets any more.
    """

    def __init__(self, settings: Settings, on_full: Callable[[], None]) -> None:
        """Make all of it free.

        Args:
            settings: its bounds, and how long a call waits.
            on_full: called when a call is about to wait.
        """
        self._settings = settings
        self._on_full = on_full
        # A deque looks through all of them to find the one that gives up; of thousands who give up at once, each does.
        # And a plain dict steps over all that were taken out before it finds its first.
        self._waiting: OrderedDict[_Waiter, None] = OrderedDict()
        self.rows = 0
        self.size = 0
        self.is_closed = False

    @property
    def waiting(self) -> int:
        """Calls that wait."""
        return len(self._waiting)

    def take_at_once(self, rows: int, size: int) -> bool:
        """Take room if nobody waits for it and there is enough; tell whether it was taken."""
        if self.is_closed or self._waiting or not self._has(rows, size):
            return False
        self.rows += rows
        self.size += size
        return True

    async def take(self, rows: int, size: int) -> None:
        """Take room; whoever gives some back hands it over to the first who waits.

        Raises:
            QueueFullError: there was none within `Settings.submit_timeout`.
            ClosedError: there will be no more.
        """
        if self.is_closed:
            raise closed()
        if self.take_at_once(rows, size):
            return
        waiter = _Waiter(rows, size, asyncio.get_running_loop().create_future())
        self._waiting[waiter] = None
        self._on_full()
        try:
            with anyio.move_on_after(self._settings.submit_timeout):
                await waiter.turn
        except BaseException:
            if waiter.granted:
                self.give_back(rows, size)
            raise
        finally:
            if not waiter.granted and waiter in self._waiting:
                del self._waiting[waiter]
                self._grant()
        if not waiter.granted:
            raise self._full()
        if self.is_closed:
            self.give_back(rows, size)
            raise closed()

    def give_back(self, rows: int, size: int) -> None:
        """Give room back, to whoever waits."""
        self.rows -= rows
        self.size -= size
        self._grant()

    def close(self) -> None:
        """Send everybody who waits away."""
        self.is_closed = True
        for waiter in self._waiting:
            if not waiter.turn.done():
                waiter.turn.set_exception(closed())
        self._waiting.clear()

    def clear(self) -> None:
        """Forget what is taken."""
        self.rows = self.size = 0

    def _has(self, rows: int, size: int) -> bool:
        """A call that is larger than all of it has room once nothing is taken."""
        if not self.rows:
            return True
        fits = self.rows + rows <= self._settings.queue_rows
        return fits and self.size + size <= self._settings.queue_bytes

    def _grant(self) -> None:
        while self._waiting:
            waiter = next(iter(self._waiting))
            if not self._has(waiter.rows, waiter.size):
                return
            del self._waiting[waiter]
            if not waiter.turn.done():
                waiter.granted = True
                self.rows += waiter.rows
                self.size += waiter.size
                waiter.turn.set_result(None)

    def _full(self) -> QueueFullError:
        settings = self._settings
        return QueueFullError(
            f"the write queue was full for {settings.submit_timeout:g} s ({self.rows} of {settings.queue_rows} rows, "
            f"{self.size} of {settings.queue_bytes} bytes); nothing of this call is stored: slow down, or raise "
            "Settings.queue_rows or submit_timeout"
        )


def closed() -> ClosedError:
    """Make the error of a call that came too late."""
    return ClosedError("the log was closed before this call was done; open it again and repeat it")
