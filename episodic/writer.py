"""The one write path: a bounded queue, group commit, acknowledgement, back-pressure. Knows the port, no SQL.

Whatever waits when the store is free becomes one batch and one transaction. Two batches are in flight: while one is
being committed the next already waits in the store, so that the store never waits for the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import anyio
from anyio.lowlevel import checkpoint

from episodic.errors import ClosedError, ConflictError, EpisodicError, QueueFullError, RejectedError, StorageError
from episodic.ports import Append, Appended, Journal, Resolve
from episodic.settings import Settings

__all__ = ["Writer", "next_batch"]

AnswerT = TypeVar("AnswerT")

IN_FLIGHT = 2

# Waiters wake in slices and others may have a turn between, so that a reader's answer need not wait for all of them.
# With slices of 32 the slowest hundredth of reads takes nearly twice as long, beside half as many records again.
SLICE = 12


@dataclass(slots=True, eq=False)
class _Entry:
    """One append in the queue; its future ends with the answer to its batch, and the place of its rows in it."""

    operation: Append
    rows: int
    answer: asyncio.Future[tuple[Appended, int]]


@dataclass(slots=True, eq=False)
class _Resolution:
    """How a session ended; its future tells whether there is such a session.

    Attributes:
        behind: how many appends had entered the queue before it.
    """

    operation: Resolve
    answer: asyncio.Future[bool]
    behind: int


@dataclass(slots=True, eq=False)
class _Errand:
    """Other work, during which the store does nothing else; its future ends with the answer.

    Attributes:
        behind: how many appends had entered the queue before it.
    """

    work: Callable[[], Awaitable[object]]
    answer: asyncio.Future[object]
    behind: int


@dataclass(slots=True, eq=False)
class _Waiter:
    """A call that waits for room; once `granted`, the room is taken on its behalf."""

    rows: int
    size: int
    turn: asyncio.Future[None]
    granted: bool = False


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


class Writer:
    """Takes calls from any number of tasks and stores them in order.

    Attributes:
        recorded: rows acknowledged.
        batches: transactions committed.
        rejected: calls that the store refused.
        largest_batch: most rows in one transaction.
        queued_rows: rows that wait or are being committed.
        queued_bytes: their size.
        in_flight: batches being committed.
    """

    def __init__(
        self, store: Journal, settings: Settings, clock: int, *, give_way: Callable[[], Awaitable[None]] = checkpoint
    ) -> None:
        """Make a writer; nothing is written until `run` runs.

        Args:
            store: where to.
            settings: bounds of the queue and of a batch.
            clock: the latest time that the log gave before, in microseconds.
            give_way: awaited between two slices of waiters, to let others have a turn.
        """
        self._store = store
        self._settings = settings
        self._clock = clock
        self._give_way = give_way
        self._queue: deque[_Entry] = deque()
        # What is no append, in the order of asking.
        self._others: deque[_Resolution | _Errand] = deque()
        self._entered = self._taken = 0
        self._under_way: set[anyio.Event] = set()
        self._waiting: deque[_Waiter] = deque()
        self._work, self._idle = anyio.Event(), False
        self._committed = anyio.Event()
        self._slots = anyio.Semaphore(IN_FLIGHT, fast_acquire=True)
        self._closing = False
        self.recorded = 0
        self.batches = 0
        self.rejected = 0
        self.largest_batch = 0
        self.queued_rows = 0
        self.queued_bytes = 0
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """Calls that wait for room."""
        return len(self._waiting)

    @property
    def committed(self) -> anyio.Event:
        """An event that the next commit sets."""
        return self._committed

    def now(self) -> int:
        """Return the time in microseconds since 1970; it never runs backwards, whatever the machine's clock does."""
        # One microsecond on at the least, so that calls keep their order whichever of them is committed first.
        self._clock = max(self._clock + 1, time.time_ns() // 1000)
        return self._clock

    async def append(self, operation: Append) -> Appended:
        """Queue the rows of one call and wait until they are committed.

        Raises:
            QueueFullError: no room within `Settings.submit_timeout`.
            ClosedError: the log is closing.
            ConflictError: an event id is taken.
            StorageError: the store failed.
        """
        rows, size = len(operation.rows), operation.size
        if self._closing or self._waiting or not self._has_room(rows, size):
            await self._wait_for_room(rows, size)
        else:
            self.queued_rows += rows
            self.queued_bytes += size
        answer: asyncio.Future[tuple[Appended, int]] = asyncio.get_running_loop().create_future()
        self._queue.append(_Entry(operation, rows, answer))
        self._entered += 1
        if self._idle:
            self._work.set()
        appended, offset = await answer
        return _part(appended, offset, rows)

    async def resolve(self, operation: Resolve) -> bool:
        """Queue how a session ended, behind all that was queued before; tell whether there is such a session."""
        await self._wait_for_room(1, 0)
        entry = _Resolution(operation, asyncio.get_running_loop().create_future(), self._entered)
        self._others.append(entry)
        if self._idle:
            self._work.set()
        return await entry.answer

    async def perform(self, work: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        """Have other work done while the store does nothing else, behind all that was queued before.

        Raises:
            QueueFullError: no room within `Settings.submit_timeout`.
            ClosedError: the log is closing.
            StorageError: the store failed.
        """
        await self._wait_for_room(1, 0)
        errand = _Errand(work, asyncio.get_running_loop().create_future(), self._entered)
        self._others.append(errand)
        if self._idle:
            self._work.set()
        return cast("AnswerT", await errand.answer)

    async def run(self) -> None:
        """Write until `close` was called and the queue is empty."""
        try:
            async with anyio.create_task_group() as group:
                while await self._has_work():
                    if (errand := self._errand()) is not None:
                        await self._perform(errand)
                        continue
                    await self._slots.acquire()
                    self.in_flight += 1
                    before, landed = tuple(self._under_way), anyio.Event()
                    self._under_way.add(landed)
                    group.start_soon(self._commit, self._take(), self._due(), before, landed)
        finally:
            self.close()
            self._fail([*self._queue, *self._others], _closed())
            self._queue.clear()
            self._others.clear()
            self.queued_rows = self.queued_bytes = 0

    def close(self) -> None:
        """Take no more calls; what is queued is still written, and who waits for room gets ClosedError."""
        self._closing = True
        self._work.set()
        for waiter in self._waiting:
            if not waiter.turn.done():
                waiter.turn.set_exception(_closed())
        self._waiting.clear()

    def _has_room(self, rows: int, size: int) -> bool:
        """A call that is larger than the whole queue has room once the queue is empty."""
        if not self.queued_rows:
            return True
        fits = self.queued_rows + rows <= self._settings.queue_rows
        return fits and self.queued_bytes + size <= self._settings.queue_bytes

    def _reserve(self, rows: int, size: int) -> None:
        self.queued_rows += rows
        self.queued_bytes += size

    async def _wait_for_room(self, rows: int, size: int) -> None:
        """Reserve room, in the order of asking; it is handed over by whoever frees it, to the first who waits."""
        if self._closing:
            raise _closed()
        if not self._waiting and self._has_room(rows, size):
            self._reserve(rows, size)
            return
        waiter = _Waiter(rows, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._work.set()
        try:
            with anyio.move_on_after(self._settings.submit_timeout):
                await waiter.turn
        except BaseException:
            if waiter.granted:
                self._reserve(-rows, -size)
                self._grant()
            raise
        finally:
            if not waiter.granted and waiter in self._waiting:
                self._waiting.remove(waiter)
                self._grant()
        if not waiter.granted:
            settings = self._settings
            msg = (
                f"the write queue was full for {settings.submit_timeout:g} s ({self.queued_rows} of "
                f"{settings.queue_rows} rows, {self.queued_bytes} of {settings.queue_bytes} bytes); nothing of this "
                "call is stored: slow down, or raise Settings.queue_rows or submit_timeout"
            )
            raise QueueFullError(msg)
        if self._closing:
            self._reserve(-rows, -size)
            raise _closed()

    def _grant(self) -> None:
        while self._waiting and self._has_room(self._waiting[0].rows, self._waiting[0].size):
            waiter = self._waiting.popleft()
            if not waiter.turn.done():
                waiter.granted = True
                self._reserve(waiter.rows, waiter.size)
                waiter.turn.set_result(None)

    async def _has_work(self) -> bool:
        while not (self._queue or self._others):
            if self._closing:
                return False
            await self._next_call()
        if self._settings.linger:
            with anyio.move_on_after(self._settings.linger):
                # Nobody lingers who keeps others waiting.
                while not (self._closing or self._waiting or self.queued_rows >= self._settings.batch_rows):
                    await self._next_call()
        return True

    async def _next_call(self) -> None:
        self._work, self._idle = anyio.Event(), True
        await self._work.wait()
        self._idle = False

    def _take(self) -> list[_Entry]:
        """Take the next batch off the queue: what is ready, but of what waits no more than its share.

        Without the share the first batch in flight would take nearly every task along for ever, and the second, a
        handful, would leave the store idle while they wake. A batch that was waited for goes in whole.
        """
        most = self._settings.batch_rows
        if not self._settings.linger:
            most = min(most, -(-self.queued_rows // IN_FLIGHT))
        batch = [self._queue.popleft() for _ in range(next_batch((entry.rows for entry in self._queue), most))]
        self._taken += len(batch)
        return batch

    def _due(self) -> list[_Resolution]:
        """Take what is said of sessions all of whose appends are taken: later appends change no outcome."""
        due: list[_Resolution] = []
        while self._others and self._others[0].behind <= self._taken:
            first = self._others[0]
            if isinstance(first, _Errand):
                break
            due.append(first)
            self._others.popleft()
        return due

    def _errand(self) -> _Errand | None:
        """Take the next errand, if everything that was queued before it is taken."""
        if not self._others or self._others[0].behind > self._taken:
            return None
        first = self._others[0]
        if isinstance(first, _Resolution):
            return None
        self._others.popleft()
        return first

    async def _perform(self, errand: _Errand) -> None:
        try:
            for batch in tuple(self._under_way):
                await batch.wait()
            if errand.answer.done():
                # Whoever asked has given up.
                return
            answer = await errand.work()
        except Exception as exc:  # noqa: BLE001 - whatever it is, who waits gets it, and the next batch its chance
            self._fail([errand], _as_ours(exc))
        except BaseException:
            self._fail([errand], _torn_down())
            raise
        else:
            if not errand.answer.done():
                errand.answer.set_result(answer)
        finally:
            self._release(1, 0)

    async def _commit(
        self, batch: Sequence[_Entry], due: Sequence[_Resolution], before: Sequence[anyio.Event], landed: anyio.Event
    ) -> None:
        try:
            if batch:
                await self._append(batch)
            if due:
                # A batch before this one may still be on its way, a second time in parts.
                for other in before:
                    await other.wait()
                await self._resolve(due)
        except BaseException:
            self._fail([*batch, *due], _torn_down())
            raise
        finally:
            self._release(sum(e.rows for e in batch) + len(due), sum(e.operation.size for e in batch))
            self._under_way.discard(landed)
            landed.set()
            self.in_flight -= 1
            self._slots.release()

    async def _append(self, batch: Sequence[_Entry]) -> None:
        """Store a batch; when the store refuses it, halve it until the call that is at fault stands alone."""
        try:
            appended = await self._store.append([entry.operation for entry in batch])
        except (ConflictError, RejectedError) as exc:
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._append(batch[:middle])
                await self._append(batch[middle:])
            else:
                self.rejected += 1
                self._fail(batch, exc)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the waiters get it, and the next batch its chance
            self._fail(batch, _as_ours(exc))
        else:
            self._count(sum(entry.rows for entry in batch))
            self._clock = max(self._clock, appended.clock)
            await self._acknowledge(batch, appended)

    async def _resolve(self, due: Sequence[_Resolution]) -> None:
        try:
            found = await self._store.resolve([entry.operation for entry in due])
        except Exception as exc:  # noqa: BLE001 - whatever it is, the waiters get it, and the next batch its chance
            self._fail(due, _as_ours(exc))
        else:
            self._count(0)
            for entry, is_there in zip(due, found, strict=True):
                if not entry.answer.done():
                    entry.answer.set_result(is_there)

    def _count(self, rows: int) -> None:
        self.recorded += rows
        self.batches += 1
        self.largest_batch = max(self.largest_batch, rows)
        self._committed.set()
        self._committed = anyio.Event()

    async def _acknowledge(self, batch: Sequence[_Entry], appended: Appended) -> None:
        offset = 0
        told = 0
        try:
            for entry in batch:
                if not entry.answer.done():
                    entry.answer.set_result((appended, offset))
                offset += entry.rows
                told += 1
                if told % SLICE == 0:
                    await self._give_way()
        finally:
            # A cancelled writer still tells everyone that the batch is committed.
            for entry in batch[told:]:
                if not entry.answer.done():
                    entry.answer.set_result((appended, offset))
                offset += entry.rows

    def _fail(self, entries: Iterable[_Entry | _Resolution | _Errand], error: EpisodicError) -> None:
        """Give each waiter an error of its own, since a raised exception collects the traceback of who raises it."""
        for entry in entries:
            if not entry.answer.done():
                own = type(error)(*error.args)
                own.__cause__ = error.__cause__
                entry.answer.set_exception(own)

    def _release(self, rows: int, size: int) -> None:
        self._reserve(-rows, -size)
        self._grant()


def _part(appended: Appended, offset: int, rows: int) -> Appended:
    """Cut one call's answer out of its batch's."""
    first_id, repeats, clock = appended
    if repeats:
        repeats = {line - offset: repeat for line, repeat in repeats.items() if offset <= line < offset + rows}
    return Appended(first_id + offset, repeats, clock)


def _as_ours(error: Exception) -> EpisodicError:
    if isinstance(error, EpisodicError):
        return error
    ours = StorageError(f"storing failed with {error!r}; whether it is stored is unknown: retry with the same event_id")
    ours.__cause__ = error
    return ours


def _closed() -> ClosedError:
    return ClosedError("the log was closed before this call was done; open it again and repeat it")


def _torn_down() -> StorageError:
    return StorageError(
        "the log was torn down while this call was being stored; whether it is stored is unknown: "
        "retry it with the same event_id"
    )
