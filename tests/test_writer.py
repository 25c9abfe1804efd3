"""The write path above the engine: batches, isolation, order and back-pressure, over a store that obeys the test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodic import (
    BusyError,
    ClosedError,
    ConflictError,
    QueueFullError,
    RejectedError,
    Settings,
    StorageError,
)
from episodic.calls import next_batch
from episodic.events import Event
from episodic.ports import Append, Appended, Repeat, Resolve
from episodic.writer import IN_FLIGHT, Writer

Failures = dict[bytes, Exception]


def ignore(_event: Event) -> None:
    """Nobody listens."""


class Shelf:
    """A `ports.Journal` in memory, which waits while its gate is shut and fails when it meets certain rows."""

    def __init__(self, failures: Failures | None = None) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures = failures or {}
        self.rows: list[bytes] = []
        self.places: dict[bytes, int] = {}
        self.batches: list[int] = []
        self.calls = 0
        self.resolved: list[tuple[str, int]] = []
        self.clock = 0
        self._turn = asyncio.Lock()

    async def append(self, operations: Sequence[Append]) -> Appended:
        """Keep all rows, or raise the failure of one of them; a row that is kept already is a repeat."""
        self.calls += 1
        rows = [row for operation in operations for row in operation.rows]
        async with self._turn:
            await self.gate.wait()
            await asyncio.sleep(0)
            for row in rows:
                if row in self.failures:
                    raise self.failures[row]
            first_id = len(self.rows) + 1
            places = [self.places.setdefault(row, place) for place, row in enumerate(rows, start=first_id)]
            repeats = {line: Repeat(at, at * 1000) for line, at in enumerate(places) if at != first_id + line}
            self.rows += rows
            self.batches.append(len(rows))
            return Appended(first_id, repeats, self.clock)

    async def resolve(self, operations: Sequence[Resolve]) -> list[bool]:
        """Note how many rows were kept before."""
        async with self._turn:
            await self.gate.wait()
            await asyncio.sleep(0)
            self.resolved += [(operation.session_id, len(self.rows)) for operation in operations]
            return [operation.session_id != "unknown" for operation in operations]


def call(*rows: bytes, size: int | None = None) -> Append:
    """Build one call of record or record_many."""
    return Append(rows, sum(map(len, rows)) if size is None else size, 0, has_events=True)


@asynccontextmanager
async def writing(shelf: Shelf, **settings: Any) -> AsyncIterator[Writer]:  # noqa: ANN401 - as Settings
    """Run a writer over the shelf, and in the end let it finish."""
    writer = Writer(shelf, Settings(**settings), 0, on_event=ignore)
    running = asyncio.create_task(writer.run())
    try:
        yield writer
    finally:
        shelf.gate.set()
        writer.close()
        await running


async def settle() -> None:
    """Let every task go on until it waits."""
    for _ in range(50):
        await asyncio.sleep(0)


def started(writer: Writer, calls: Iterable[Append]) -> list[asyncio.Task[Appended]]:
    """Make each call in a task of its own."""
    return [asyncio.create_task(writer.append(operation)) for operation in calls]


def numbered(count: int) -> list[bytes]:
    """Make distinct rows."""
    return [b"%d" % number for number in range(count)]


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [
        ([], 10, 0),
        ([1], 10, 1),
        ([1] * 20, 10, 10),
        ([4, 4, 4], 10, 2),
        ([10, 1], 10, 1),
        ([11], 10, 1),
        ([11, 1], 10, 1),
        ([1, 11], 10, 1),
        ([5, 5, 1], 10, 2),
        ([1, 1], 1, 1),
    ],
)
def test_a_batch_is_the_longest_run_that_fits(sizes: list[int], most: int, expected: int) -> None:
    """Calls are taken in order while they fit; a larger one goes alone."""
    assert next_batch(iter(sizes), most) == expected


@given(sizes=st.lists(st.integers(1, 30)), most=st.integers(1, 20))
def test_no_batch_is_empty_too_large_or_shorter_than_need_be(sizes: list[int], most: int) -> None:
    """Cutting batch after batch ends, splits no call, and each batch is maximal."""
    left = list(sizes)
    while left:
        taken = next_batch(iter(left), most)
        batch, left = left[:taken], left[taken:]
        assert batch
        assert sum(batch) <= most or len(batch) == 1
        assert not left or sum(batch) + left[0] > most


async def test_what_waits_while_the_store_is_busy_shares_a_transaction() -> None:
    """A thousand calls cost a few transactions, and each gets its own id back, in the order of the calls."""
    shelf = Shelf()
    async with writing(shelf) as writer:
        shelf.gate.clear()
        calls = started(writer, map(call, numbered(1_000)))
        await settle()
        shelf.gate.set()
        answers = await asyncio.gather(*calls)
    assert [answer.first_id for answer in answers] == list(range(1, 1_001))
    assert shelf.rows == numbered(1_000)
    assert len(shelf.batches) <= 20
    assert (writer.recorded, writer.batches, writer.largest_batch) == (1_000, len(shelf.batches), max(shelf.batches))


async def test_two_batches_are_in_flight_and_no_more() -> None:
    """While one batch is being committed the next waits in the store; the rest waits in the queue."""
    shelf = Shelf()
    async with writing(shelf, batch_rows=10) as writer:
        shelf.gate.clear()
        calls = started(writer, map(call, numbered(100)))
        await settle()
        assert (shelf.calls, writer.in_flight, writer.queued_rows) == (IN_FLIGHT, IN_FLIGHT, 100)
        shelf.gate.set()
        await asyncio.gather(*calls)
        assert (writer.in_flight, writer.queued_rows, writer.queued_bytes) == (0, 0, 0)


async def test_no_batch_exceeds_batch_rows_and_no_call_is_split() -> None:
    """Calls of many rows go in whole, in batches of at most batch_rows unless one call alone is larger."""
    shelf = Shelf()
    sizes = [3, 1, 7, 12, 2, 2, 9, 1, 1, 30, 5]
    async with writing(shelf, batch_rows=10) as writer:
        shelf.gate.clear()
        calls = started(writer, (call(*[b"%d" % size] * size) for size in sizes))
        await settle()
        shelf.gate.set()
        answers = await asyncio.gather(*calls)
    assert [answer.first_id for answer in answers] == list(accumulate(sizes[:-1], initial=1))
    ends = set(accumulate(sizes))
    assert set(accumulate(shelf.batches)) <= ends
    assert all(rows <= 10 or rows in {12, 30} for rows in shelf.batches)


async def test_resolving_comes_after_all_that_was_queued_before() -> None:
    """How a session ended is stored once everything before it is, together with what else was said by then."""
    shelf = Shelf()
    async with writing(shelf) as writer:
        shelf.gate.clear()
        before = started(writer, map(call, numbered(5)))
        await settle()
        resolving = [asyncio.create_task(writer.resolve(Resolve("a", name, None))) for name in ("s", "unknown")]
        await settle()
        behind = started(writer, map(call, numbered(5)))
        await settle()
        shelf.gate.set()
        assert await asyncio.gather(*resolving) == [True, False]
        await asyncio.gather(*before, *behind)
    assert [session_id for session_id, _ in shelf.resolved] == ["s", "unknown"]
    assert all(rows >= 5 for _, rows in shelf.resolved)
    assert writer.recorded == 10


async def test_resolving_waits_for_what_is_still_in_the_queue() -> None:
    """Where many batches stand between, resolve comes after the last of them."""
    shelf = Shelf()
    async with writing(shelf, batch_rows=2) as writer:
        shelf.gate.clear()
        calls = started(writer, map(call, numbered(20)))
        await settle()
        resolving = asyncio.create_task(writer.resolve(Resolve("a", "s", None)))
        await settle()
        shelf.gate.set()
        assert await resolving
        await asyncio.gather(*calls)
    assert shelf.resolved == [("s", 20)]


async def test_resolving_waits_until_a_refused_batch_is_sorted_out() -> None:
    """When the batch before it is being halved to find a bad call, resolve comes after all of the good ones."""
    shelf = Shelf({b"7": RejectedError("refused")})
    async with writing(shelf) as writer:
        shelf.gate.clear()
        calls = started(writer, map(call, numbered(10)))
        await settle()
        resolving = asyncio.create_task(writer.resolve(Resolve("a", "s", None)))
        await settle()
        shelf.gate.set()
        assert await resolving
        await asyncio.gather(*calls, return_exceptions=True)
    assert shelf.resolved == [("s", 9)]


@pytest.mark.parametrize("bad", [{0}, {99}, {50}, {49, 50}, {3, 4, 5, 90}, set(range(0, 100, 2)), set(range(100))])
@pytest.mark.parametrize(
    "error", [RejectedError("refused"), ConflictError("a", "e", 7)], ids=lambda e: type(e).__name__
)
async def test_a_bad_call_fails_alone(bad: set[int], error: Exception) -> None:
    """Of a hundred calls exactly those that the store refuses get its error, and the next ones work."""
    rows = numbered(100)
    shelf = Shelf({rows[place]: error for place in bad})
    async with writing(shelf) as writer:
        shelf.gate.clear()
        calls = started(writer, map(call, rows))
        await settle()
        shelf.gate.set()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for place, answer in enumerate(answers):
            if place in bad:
                assert type(answer) is type(error)
                assert str(answer) == str(error)
            else:
                assert isinstance(answer, Appended)
                assert shelf.rows[answer.first_id - 1] == rows[place]
        assert sorted(shelf.rows) == sorted(rows[place] for place in range(100) if place not in bad)
        assert (writer.rejected, writer.recorded, writer.queued_rows) == (len(bad), 100 - len(bad), 0)
        assert (await writer.append(call(b"next"))).first_id == 101 - len(bad)


async def test_a_call_of_many_rows_is_refused_whole() -> None:
    """One bad row takes the other rows of its own call with it, and no neighbour."""
    shelf = Shelf({b"bad": RejectedError("refused")})
    async with writing(shelf) as writer:
        shelf.gate.clear()
        calls = started(writer, [call(b"1", b"2"), call(b"3", b"bad", b"4"), call(b"5")])
        await settle()
        shelf.gate.set()
        first, second, third = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(first, Appended)
    assert isinstance(second, RejectedError)
    assert isinstance(third, Appended)
    assert sorted(shelf.rows) == [b"1", b"2", b"5"]


async def test_when_the_commit_fails_every_waiter_is_told_and_nothing_is_tried_again() -> None:
    """A failure of the engine fails the whole batch at once; the writer goes on with the next."""
    cause = OSError("no room")
    error = BusyError("held for too long")
    error.__cause__ = cause
    shelf = Shelf({b"0": error})
    async with writing(shelf, linger=0.05) as writer:
        calls = started(writer, map(call, numbered(50)))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert (shelf.calls, shelf.rows) == (1, [])
        assert {type(answer) for answer in answers} == {BusyError}
        assert {str(answer) for answer in answers} == {"held for too long"}
        # A raised exception collects tracebacks: each waiter must get one of its own.
        assert len({id(answer) for answer in answers}) == 50
        assert all(isinstance(answer, BusyError) and answer.__cause__ is cause for answer in answers)
        assert (writer.queued_rows, writer.queued_bytes, writer.recorded) == (0, 0, 0)
        assert (await writer.append(call(b"next"))).first_id == 1


async def test_a_bug_in_the_store_is_told_to_every_waiter_and_nobody_else() -> None:
    """An error that is none of ours reaches those whose batch it was as one of ours; the next batch has its chance."""
    bug = KeyError("bug")
    shelf = Shelf({b"0": bug})
    shelf.gate.clear()
    async with writing(shelf, batch_rows=1) as writer:
        calls = started(writer, map(call, numbered(50)))
        await settle()
        shelf.gate.set()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(answers[0], StorageError)
        assert "unknown" in str(answers[0])
        assert answers[0].__cause__ is bug
        assert all(isinstance(answer, Appended) for answer in answers[1:])
        assert (writer.queued_rows, writer.queued_bytes, writer.in_flight) == (0, 0, 0)


async def test_repeats_are_told_to_their_own_call() -> None:
    """When a batch holds rows that were there before, each call learns of its own, counted from its own first row."""
    shelf = Shelf()
    async with writing(shelf, linger=0.05) as writer:
        await writer.append(call(b"a", b"b"))
        calls = started(writer, [call(b"c"), call(b"d", b"b", b"e"), call(b"a"), call(b"f")])
        answers = await asyncio.gather(*calls)
    assert [answer.repeats for answer in answers] == [{}, {1: Repeat(2, 2000)}, {0: Repeat(1, 1000)}, {}]
    assert [answer.first_id for answer in answers] == [3, 4, 7, 8]


async def test_the_queue_is_bounded_in_rows() -> None:
    """Beyond queue_rows calls wait for room, and are let in, in order, as it is freed."""
    shelf = Shelf()
    async with writing(shelf, queue_rows=10) as writer:
        shelf.gate.clear()
        calls = started(writer, map(call, numbered(10_000)))
        await settle()
        assert (writer.queued_rows, writer.waiting) == (10, 9_990)
        shelf.gate.set()
        await asyncio.gather(*calls)
        assert (writer.queued_rows, writer.waiting) == (0, 0)
    assert shelf.rows == numbered(10_000)
    assert max(shelf.batches) <= 10


async def test_the_queue_is_bounded_in_bytes() -> None:
    """The same bound holds for the size of what waits, whatever the number of rows."""
    shelf = Shelf()
    async with writing(shelf, queue_bytes=1_000) as writer:
        shelf.gate.clear()
        calls = started(writer, (call(row, size=300) for row in numbered(20)))
        await settle()
        assert (writer.queued_bytes, writer.queued_rows, writer.waiting) == (900, 3, 17)
        shelf.gate.set()
        await asyncio.gather(*calls)
        assert writer.queued_bytes == 0
    assert shelf.rows == numbered(20)


@pytest.mark.parametrize("large", [call(*numbered(50), size=1), call(b"large", size=10_000)], ids=["rows", "bytes"])
async def test_a_call_larger_than_the_queue_is_admitted_once_it_is_empty(large: Append) -> None:
    """One huge call waits for the queue to be empty, goes in alone, and the next waits for it."""
    shelf = Shelf()
    async with writing(shelf, queue_rows=10, queue_bytes=1_000, submit_timeout=5) as writer:
        shelf.gate.clear()
        calls = started(writer, [call(b"before"), large, call(b"behind")])
        await settle()
        assert (writer.queued_rows, writer.waiting) == (1, 2)
        shelf.gate.set()
        before, huge, behind = await asyncio.gather(*calls)
    assert (before.first_id, huge.first_id, behind.first_id) == (1, 2, 2 + len(large.rows))


async def test_a_full_queue_is_an_error_in_time_and_recording_goes_on_by_itself() -> None:
    """Who finds no room within submit_timeout gets QueueFullError; once the store moves, all is as before."""
    shelf = Shelf()
    async with writing(shelf, queue_rows=10, submit_timeout=0.05) as writer:
        shelf.gate.clear()
        queued = started(writer, map(call, numbered(10)))
        await settle()
        late = await asyncio.gather(*started(writer, [call(b"late")] * 50), return_exceptions=True)
        assert {type(answer) for answer in late} == {QueueFullError}
        assert "10 of 10 rows" in str(late[0])
        assert "nothing of this call is stored" in str(late[0])
        assert (writer.queued_rows, writer.waiting) == (10, 0)
        shelf.gate.set()
        await asyncio.gather(*queued)
        assert (await writer.append(call(b"again"))).first_id == 11
    assert b"late" not in shelf.rows


async def test_a_timeout_of_zero_never_waits() -> None:
    """With submit_timeout=0 a full queue is an error at once, and a queue with room is none."""
    shelf = Shelf()
    async with writing(shelf, queue_rows=1, submit_timeout=0) as writer:
        shelf.gate.clear()
        [queued] = started(writer, [call(b"1")])
        await settle()
        with pytest.raises(QueueFullError):
            await writer.append(call(b"2"))
        shelf.gate.set()
        await queued


async def test_nobody_overtakes_who_waits_for_room() -> None:
    """A small call behind a large one that waits does not slip in before it."""
    shelf = Shelf()
    async with writing(shelf, queue_rows=10) as writer:
        shelf.gate.clear()
        calls = started(writer, [call(*numbered(6)), call(*[b"large"] * 8), call(b"small")])
        await settle()
        assert (writer.queued_rows, writer.waiting) == (6, 2)
        shelf.gate.set()
        answers = await asyncio.gather(*calls)
    assert [answer.first_id for answer in answers] == [1, 7, 15]


async def test_who_gives_up_waiting_lets_the_next_in() -> None:
    """When the large call at the head of the line times out, the small one behind it goes in at once."""
    shelf = Shelf()
    async with writing(shelf, queue_rows=10, submit_timeout=0.2) as writer:
        shelf.gate.clear()
        [first, large] = started(writer, [call(*numbered(6)), call(*[b"large"] * 8)])
        await asyncio.sleep(0.1)
        [small] = started(writer, [call(b"small")])
        with pytest.raises(QueueFullError):
            await large
        await settle()
        assert (writer.queued_rows, writer.waiting) == (7, 0)
        shelf.gate.set()
        await asyncio.gather(first, small)
    assert b"large" not in shelf.rows


async def test_resolving_waits_for_room_too() -> None:
    """A full queue holds up every kind of write, and says so in the same way."""
    shelf = Shelf()
    async with writing(shelf, queue_rows=1, submit_timeout=0.05) as writer:
        shelf.gate.clear()
        [queued] = started(writer, [call(b"1")])
        await settle()
        with pytest.raises(QueueFullError):
            await writer.resolve(Resolve("a", "s", None))
        shelf.gate.set()
        await queued
        assert await writer.resolve(Resolve("a", "s", None))


async def test_closing_writes_what_is_queued_and_refuses_the_rest() -> None:
    """After close, what was queued is stored; who waits for room and who comes later gets ClosedError."""
    shelf = Shelf()
    writer = Writer(shelf, Settings(queue_rows=10), 0, on_event=ignore)
    running = asyncio.create_task(writer.run())
    shelf.gate.clear()
    calls = started(writer, map(call, numbered(30)))
    await settle()
    writer.close()
    writer.close()
    with pytest.raises(ClosedError):
        await writer.append(call(b"late"))
    with pytest.raises(ClosedError):
        await writer.resolve(Resolve("a", "s", None))
    shelf.gate.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    await running
    assert [type(answer) for answer in answers] == [Appended] * 10 + [ClosedError] * 20
    assert shelf.rows == numbered(10)
    assert (writer.queued_rows, writer.queued_bytes, writer.waiting, writer.in_flight) == (0, 0, 0, 0)


async def test_a_writer_that_is_torn_down_tells_every_waiter() -> None:
    """When the writer's task is cancelled, what is with the store is unknown, what is queued was not stored."""
    shelf = Shelf()
    writer = Writer(shelf, Settings(batch_rows=1, queue_rows=5), 0, on_event=ignore)
    running = asyncio.create_task(writer.run())
    shelf.gate.clear()
    calls = started(writer, map(call, numbered(4)))
    await settle()
    resolving = [asyncio.create_task(writer.resolve(Resolve("a", "s", None))) for _ in range(4)]
    await settle()
    running.cancel()
    answers = await asyncio.gather(*calls, *resolving, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StorageError] * 2 + [ClosedError] * 6
    assert "unknown" in str(answers[0])
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (writer.queued_rows, writer.queued_bytes, writer.waiting, writer.in_flight) == (0, 0, 0, 0)


async def test_a_writer_that_is_torn_down_while_resolving_tells_so() -> None:
    """A call to resolve that was with the store is unknown, too; the counters come back to nothing."""
    shelf = Shelf()
    writer = Writer(shelf, Settings(), 0, on_event=ignore)
    running = asyncio.create_task(writer.run())
    shelf.gate.clear()
    resolving = asyncio.create_task(writer.resolve(Resolve("a", "s", None)))
    await settle()
    running.cancel()
    with pytest.raises(StorageError, match="unknown"):
        await resolving
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (writer.queued_rows, writer.in_flight) == (0, 0)


async def test_resolving_that_fails_is_told_and_the_writer_goes_on() -> None:
    """An error of the store while it resolves reaches the caller alone."""

    class Stubborn(Shelf):
        async def resolve(self, operations: Sequence[Resolve]) -> list[bool]:
            raise BusyError(operations[0].session_id)

    async with writing(Stubborn()) as writer:
        with pytest.raises(BusyError, match="sess-1"):
            await writer.resolve(Resolve("a", "sess-1", None))
        assert (await writer.append(call(b"next"))).first_id == 1
        assert (writer.queued_rows, writer.in_flight) == (0, 0)


async def test_the_time_never_runs_backwards_and_each_call_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log's time follows the clock forward, and moves on by a microsecond when the clock stands or jumps back."""
    shelf = Shelf()
    ticks = [5_000_000, 5_000_000, 1_000_000, 1_000_001, 9_000_000]
    clock = iter(ticks)
    async with writing(shelf) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: next(clock) * 1000)
            times = [writer.now() for _ in ticks]
        assert times == [5_000_000, 5_000_001, 5_000_002, 5_000_003, 9_000_000]
        # Another process of the same log may be ahead.
        shelf.clock = 2**62
        await writer.append(call(b"1"))
        assert all(earlier < later for earlier, later in pairwise([2**62, writer.now(), writer.now()]))


async def test_a_commit_wakes_who_waits_for_news() -> None:
    """Each commit sets the event that was handed out before it, and hands out a fresh one."""
    shelf = Shelf()
    async with writing(shelf) as writer:
        news = writer.committed
        assert not news.is_set()
        await writer.append(call(b"1"))
        assert news.is_set()
        assert not writer.committed.is_set()
