"""The calls that wait for the writer: appends, and what comes between them, each in the order of asking."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from episodic.errors import EpisodicError, own
from episodic.ports import Append, Appended, Resolve

__all__ = ["Call", "Calls", "Entry", "Errand", "Resolution", "fail", "next_batch", "part"]


@dataclass(slots=True, eq=False)
class Entry:
    """One append; its future ends with the answer to its batch, and the place of its rows in it."""

    operation: Append
    rows: int
    answer: asyncio.Future[tuple[Appended, int]]


@dataclass(slots=True, eq=False)
class Resolution:
    """How a session ended; its future tells whether there is such a session.

    Attributes:
        behind: how many appends had entered the queue before it.
    """

    operation: Resolve
    answer: asyncio.Future[bool]
    behind: int


@dataclass(slots=True, eq=False)
class Errand:
    """Other work, during which the store does nothing else; its future ends with the answer.

    Attributes:
        behind: how many appends had entered the queue before it.
    """

    work: Callable[[], Awaitable[object]]
    answer: asyncio.Future[object]
    behind: int


Call: TypeAlias = Entry | Resolution | Errand


class Calls:
    """The queue. What is no append comes after the appends that were there before it, and waits for no later one."""

    def __init__(self) -> None:
        """Begin empty."""
        self._entries: deque[Entry] = deque()
        self._others: deque[Resolution | Errand] = deque()
        self._entered = self._taken = 0

    def __bool__(self) -> bool:
        """Tell whether somebody waits."""
        return bool(self._entries or self._others)

    def append(self, operation: Append, rows: int) -> asyncio.Future[tuple[Appended, int]]:
        """Queue an append, and return what its answer will be."""
        answer: asyncio.Future[tuple[Appended, int]] = asyncio.get_running_loop().create_future()
        self._entries.append(Entry(operation, rows, answer))
        self._entered += 1
        return answer

    def resolve(self, operation: Resolve) -> asyncio.Future[bool]:
        """Queue how a session ended, and return what its answer will be."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._others.append(Resolution(operation, answer, self._entered))
        return answer

    def perform(self, work: Callable[[], Awaitable[object]]) -> asyncio.Future[object]:
        """Queue other work, and return what its answer will be."""
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._others.append(Errand(work, answer, self._entered))
        return answer

    def take_batch(self, most: int) -> list[Entry]:
        """Take the appends of the next transaction, of at most so many rows."""
        batch = [self._entries.popleft() for _ in range(next_batch((entry.rows for entry in self._entries), most))]
        self._taken += len(batch)
        return batch

    def take_resolutions(self) -> list[Resolution]:
        """Take what is said of sessions all of whose appends are taken: later appends change no outcome."""
        due: list[Resolution] = []
        while self._others and self._others[0].behind <= self._taken and isinstance(self._others[0], Resolution):
            due.append(self._others[0])
            self._others.popleft()
        return due

    def take_errand(self) -> Errand | None:
        """Take the next errand, if everything that was queued before it is taken."""
        if self._others and self._others[0].behind <= self._taken and isinstance(self._others[0], Errand):
            errand = self._others[0]
            self._others.popleft()
            return errand
        return None

    def take_all(self) -> list[Call]:
        """Take everything."""
        left: list[Call] = [*self._entries, *self._others]
        self._entries.clear()
        self._others.clear()
        return left


def next_batch(sizes: Iterable[int], most: int) -> int:
    """Say how many appends from the front of a queue go into one transaction.

    Args:
        sizes: rows of each append in order.
        most: rows that the transaction should not exceed, unless its first append does alone.
    """
    count = total = 0
    for rows in sizes:
        total += rows
        if count and total > most:
            break
        count += 1
    return count


def part(appended: Appended, offset: int, rows: int) -> Appended:
    """Cut one call's answer out of its batch's."""
    first_id, repeats, clock = appended
    if repeats:
        repeats = {line - offset: repeat for line, repeat in repeats.items() if offset <= line < offset + rows}
    return Appended(first_id + offset, repeats, clock)


def fail(calls: Sequence[Call], error: EpisodicError) -> None:
    """Give each waiter an error of its own."""
    for call in calls:
        if not call.answer.done():
            call.answer.set_exception(own(error))
