"""The one write path: a bounded queue, group commit, acknowledgement, back-pressure. Knows the port, no SQL.

Whatever waits when the store is free becomes one batch and one transaction. Two batches are in flight: while one is
being committed the next already waits in the store, so that the store never waits for the event loop.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

import anyio
from anyio.lowlevel import checkpoint

from episodic.calls import Calls, Entry, Errand, Resolution, fail, part
from episodic.errors import ConflictError, RejectedError, StorageError, as_ours
from episodic.events import BatchCommitted, OnEvent, QueueFull, SlowBatch
from episodic.ports import Append, Appended, Journal, Resolve
from episodic.room import Room, closed
from episodic.settings import Settings

__all__ = ["Writer"]

AnswerT = TypeVar("AnswerT")

logger = logging.getLogger("episodic")

IN_FLIGHT = 2

# A batch that takes so long is told of: the slowest ones of a disk that is well are a tenth of that.
SLOW_SECONDS = 1.0

# Waiters wake in slices and others may have a turn between, so that a reader's answer need not wait for all of them.
# With slices of 32 the slowest hundredth of reads takes nearly twice as long, beside half as many records again.
SLICE = 12


class Writer:
    """Takes calls from any number of tasks and stores them in order.

    Attributes:
        recorded: rows acknowledged.
        batches: transactions committed.
        rejected: calls that the store refused.
        largest_batch: most rows in one transaction.
        in_flight: batches being committed.
    """

    def __init__(
        self,
        store: Journal,
        settings: Settings,
        clock: int,
        *,
        on_event: OnEvent,
        give_way: Callable[[], Awaitable[None]] = checkpoint,
    ) -> None:
        """Make a writer; nothing is written until `run` runs.

        Args:
            store: where to.
            settings: bounds of the queue and of a batch.
            clock: the latest time that the log gave before, in microseconds.
            on_event: told of batches, and when the queue is full.
            give_way: awaited between two slices of waiters, to let others have a turn.
        """
        self._store = store
        self._settings = settings
        self._clock = clock
        self._on_event = on_event
        self._give_way = give_way
        self._calls = Calls()
        self._under_way: set[anyio.Event] = set()
        self._work, self._idle = anyio.Event(), False
        self._committed = anyio.Event()
        self._slots = anyio.Semaphore(IN_FLIGHT, fast_acquire=True)
        self._room = Room(settings, self._on_full)
        self.recorded = 0
        self.batches = 0
        self.rejected = 0
        self.largest_batch = 0
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """Calls that wait for room."""
        return self._room.waiting

    @property
    def queued_rows(self) -> int:
        """Rows that wait or are being committed."""
        return self._room.rows

    @property
    def queued_bytes(self) -> int:
        """Their size."""
        return self._room.size

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
        if not self._room.take_at_once(rows, size):
            await self._room.take(rows, size)
        answer = self._calls.append(operation, rows)
        if self._idle:
            self._work.set()
        appended, offset = await answer
        return part(appended, offset, rows)

    async def resolve(self, operation: Resolve) -> bool:
        """Queue how a session ended, behind all that was queued before; tell whether there is such a session."""
        await self._room.take(1, 0)
        answer = self._calls.resolve(operation)
        if self._idle:
            self._work.set()
        return await answer

    async def perform(self, work: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        """Have other work done while the store does nothing else, behind all that was queued before.

        Raises:
            QueueFullError: no room within `Settings.submit_timeout`.
            ClosedError: the log is closing.
            StorageError: the store failed.
        """
        await self._room.take(1, 0)
        answer = self._calls.perform(work)
        if self._idle:
            self._work.set()
        return cast("AnswerT", await answer)

    async def drained(self) -> None:
        """Wait until all that was queued before is stored, or refused; raises as `perform` does."""
        await self.perform(_nothing)

    async def run(self) -> None:
        """Write until `close` was called and the queue is empty."""
        try:
            async with anyio.create_task_group() as group:
                while await self._has_work():
                    if (errand := self._calls.take_errand()) is not None:
                        await self._perform(errand)
                        continue
                    await self._slots.acquire()
                    self.in_flight += 1
                    before, landed = tuple(self._under_way), anyio.Event()
                    self._under_way.add(landed)
                    group.start_soon(self._commit, self._take(), self._calls.take_resolutions(), before, landed)
        finally:
            self.close()
            fail(self._calls.take_all(), closed())
            self._room.clear()

    def close(self) -> None:
        """Take no more calls; what is queued is still written, and who waits for room gets ClosedError."""
        self._room.close()
        self._work.set()

    def _on_full(self) -> None:
        """Nobody lingers who keeps others waiting."""
        self._work.set()
        if self._room.waiting == 1:
            self._on_event(QueueFull(self.queued_rows, self.queued_bytes))

    async def _has_work(self) -> bool:
        while not self._calls:
            if self._room.is_closed:
                return False
            await self._next_call()
        if self._settings.linger:
            with anyio.move_on_after(self._settings.linger):
                while not (self._room.is_closed or self.waiting or self.queued_rows >= self._settings.batch_rows):
                    await self._next_call()
        return True

    async def _next_call(self) -> None:
        self._work, self._idle = anyio.Event(), True
        await self._work.wait()
        self._idle = False

    def _take(self) -> list[Entry]:
        """Take the next batch off the queue: what is ready, but of what waits no more than its share.

        Without the share the first batch in flight would take nearly every task along for ever, and the second, a
        handful, would leave the store idle while they wake. A batch that was waited for goes in whole.
        """
        most = self._settings.batch_rows
        if not self._settings.linger:
            most = min(most, -(-self.queued_rows // IN_FLIGHT))
        return self._calls.take_batch(most)

    async def _perform(self, errand: Errand) -> None:
        try:
            for batch in tuple(self._under_way):
                await batch.wait()
            if errand.answer.done():
                # Whoever asked has given up.
                return
            answer = await errand.work()
        except Exception as exc:  # noqa: BLE001 - whatever it is, who waits gets it, and the next batch its chance
            fail([errand], as_ours(exc))
        except BaseException:
            fail([errand], _torn_down())
            raise
        else:
            if not errand.answer.done():
                errand.answer.set_result(answer)
        finally:
            self._room.give_back(1, 0)

    async def _commit(
        self, batch: Sequence[Entry], due: Sequence[Resolution], before: Sequence[anyio.Event], landed: anyio.Event
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
            fail([*batch, *due], _torn_down())
            raise
        finally:
            self._room.give_back(sum(e.rows for e in batch) + len(due), sum(e.operation.size for e in batch))
            self._under_way.discard(landed)
            landed.set()
            self.in_flight -= 1
            self._slots.release()

    async def _append(self, batch: Sequence[Entry]) -> None:
        """Store a batch; when the store refuses it, halve it until the call that is at fault stands alone."""
        begun = time.perf_counter()
        try:
            appended = await self._store.append([entry.operation for entry in batch])
        except (ConflictError, RejectedError) as exc:
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._append(batch[:middle])
                await self._append(batch[middle:])
            else:
                self.rejected += 1
                fail(batch, exc)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the waiters get it, and the next batch its chance
            fail(batch, as_ours(exc))
        else:
            self._count(sum(entry.rows for entry in batch), time.perf_counter() - begun)
            self._clock = max(self._clock, appended.clock)
            await self._acknowledge(batch, appended)

    async def _resolve(self, due: Sequence[Resolution]) -> None:
        try:
            found = await self._store.resolve([entry.operation for entry in due])
        except Exception as exc:  # noqa: BLE001 - whatever it is, the waiters get it, and the next batch its chance
            fail(due, as_ours(exc))
        else:
            self._tell_committed()
            for entry, is_there in zip(due, found, strict=True):
                if not entry.answer.done():
                    entry.answer.set_result(is_there)

    def _count(self, rows: int, seconds: float) -> None:
        self.recorded += rows
        self.largest_batch = max(self.largest_batch, rows)
        self._on_event(BatchCommitted(rows, seconds, self.queued_rows - rows))
        if seconds >= SLOW_SECONDS:
            logger.warning("a batch of %d episodes took %.1f s to commit", rows, seconds)
            self._on_event(SlowBatch(rows, seconds))
        self._tell_committed()

    def _tell_committed(self) -> None:
        self.batches += 1
        self._committed.set()
        self._committed = anyio.Event()

    async def _acknowledge(self, batch: Sequence[Entry], appended: Appended) -> None:
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


async def _nothing() -> None:
    """Do no work; who waits for it has waited for what came before."""


def _torn_down() -> StorageError:
    return StorageError(
        "the log was torn down while this call was being done; whether it was is unknown: repeat it once the log is "
        "open again, a record with its event_id"
    )
