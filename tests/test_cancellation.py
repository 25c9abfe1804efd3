"""Being cancelled at each await point of the write path, of opening and of closing, alone and by the thousand."""

from __future__ import annotations

import asyncio
import gc
import random
import sqlite3
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from episodic import ClosedError, ConflictError, Draft, EpisodicLog, NotOurFileError, Settings
from tests.conftest import Sql


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the file's write lock, so that whatever is recorded meanwhile waits inside SQLite."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture(autouse=True)
async def quiet() -> AsyncIterator[None]:
    """Fail when the event loop has anything to say, as that a task or a future was forgotten."""
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    yield
    gc.collect()
    assert not said


def started(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Run something in a task of its own."""
    return asyncio.get_running_loop().create_task(work)


async def settle() -> None:
    """Let every task go on until it waits."""
    for _ in range(50):
        await asyncio.sleep(0)


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel a task and see that it ends by it."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def count_of(log: EpisodicLog, session_id: str) -> int:
    """Count the episodes of a session."""
    return len([episode async for episode in log.replay(session_id)])


async def test_cancelled_before_it_ran_nothing_is_stored(log: EpisodicLog) -> None:
    """A task that is cancelled before its first step leaves no trace."""
    await cancelled(started(log.record("a", "s", "user", "x", event_id="e")))
    await log.record("a", "other", "user", "next")
    assert await count_of(log, "s") == 0


async def test_cancelled_while_waiting_for_room_nothing_is_stored_and_the_room_is_free(path: Path, sql: Sql) -> None:
    """Who is cancelled in the line for the queue gives up its place; the next in line is let in."""
    async with EpisodicLog.open(path, settings=Settings(queue_rows=2)) as log:
        with held(path):
            queued = [started(log.record("a", "s", "user", f"{n}")) for n in range(2)]
            await settle()
            large = started(log.record_many([Draft("a", "s", "user", "large")] * 2))
            behind = started(log.record("a", "s", "user", "behind"))
            await settle()
            assert (log.stats().queued_rows, log.stats().waiting) == (2, 2)
            await cancelled(large)
            assert log.stats().waiting == 1
        await asyncio.gather(*queued, behind)
        assert (log.stats().queued_rows, log.stats().queued_bytes, log.stats().waiting) == (0, 0, 0)
    assert sql("SELECT content FROM episodes ORDER BY id") == [("0",), ("1",), ("behind",)]


async def test_cancelled_after_room_was_granted_the_room_is_given_back(path: Path) -> None:
    """A call that is cancelled in the very turn in which it gets its room passes the room on."""
    async with EpisodicLog.open(path, settings=Settings(queue_rows=1)) as log:
        with held(path):
            first = started(log.record("a", "s", "user", "first"))
            await settle()
            second, third = (started(log.record("a", "s", "user", name)) for name in ("second", "third"))
            await settle()
            assert log.stats().waiting == 2
        # Runs before the second call does: both are woken by the commit of the first, in this order.
        first.add_done_callback(lambda _: second.cancel())
        await asyncio.gather(first, second, third, return_exceptions=True)
        assert first.result().id == 1
        assert third.result().content == "third"
        assert (log.stats().queued_rows, log.stats().queued_bytes) == (0, 0)


async def test_cancelled_in_the_queue_or_in_the_store_a_retry_is_safe(path: Path) -> None:
    """Calls that are cancelled while they wait or are being committed may land; a retry gives one row each."""
    async with EpisodicLog.open(path, settings=Settings(batch_rows=5)) as log:
        with held(path):
            calls = [started(log.record("a", "s", "user", f"{n}", event_id=f"e{n}")) for n in range(50)]
            await settle()
            assert log.stats().in_flight == 2
            for call in calls[::2]:
                await cancelled(call)
        kept = await asyncio.gather(*calls[1::2])
        assert [episode.event_id for episode in kept] == [f"e{n}" for n in range(1, 50, 2)]
        retried = await asyncio.gather(*[log.record("a", "s", "user", f"{n}", event_id=f"e{n}") for n in range(50)])
        assert retried[1::2] == kept
        assert await count_of(log, "s") == 50


async def test_cancelled_between_the_commit_and_waking_up_it_is_stored(log: EpisodicLog) -> None:
    """A call whose answer is there, but which is cancelled before it runs again, is stored once."""
    call = started(log.record("a", "s", "user", "x", event_id="e"))
    while not log.stats().recorded:  # noqa: ASYNC110 - the turn itself is what is waited for
        await asyncio.sleep(0)
    assert not call.done()
    await cancelled(call)
    assert (await log.record("a", "s", "user", "x", event_id="e")).id == 1
    assert await count_of(log, "s") == 1


@pytest.mark.parametrize("bad", ["conflict", "rejected"])
async def test_cancelled_while_its_batch_is_refused_nobody_else_is_disturbed(
    log: EpisodicLog, sql: Sql, bad: str
) -> None:
    """Of a batch that is being halved to find a bad call, any caller may leave; the others get their answers."""
    sql(
        "CREATE TRIGGER no BEFORE INSERT ON episodes WHEN NEW.content = 'rejected' BEGIN SELECT raise(ABORT, 'no'); END"
    )
    await log.record("a", "s", "user", "first", event_id="taken")
    with held(Path(log.stats().path)):
        calls = [started(log.record("a", "s", "user", f"{n}")) for n in range(40)]
        calls.insert(20, started(log.record("a", "s", "user", bad, event_id="taken" if bad == "conflict" else None)))
        await settle()
        await cancelled(calls.pop(20))
        await cancelled(calls.pop(30))
    assert {episode.content for episode in await asyncio.gather(*calls)} == {f"{n}" for n in range(40) if n != 30}
    assert await count_of(log, "s") in {40, 41}


async def test_a_cancelled_record_many_is_wholly_there_or_wholly_absent(path: Path, sql: Sql) -> None:
    """Cancelling a call of several episodes never leaves a part of them."""
    async with EpisodicLog.open(path, settings=Settings(queue_rows=100)) as log:
        for turns in range(60):
            drafts = [Draft("a", f"s{turns}", "user", f"{n}") for n in range(10)]
            call = started(log.record_many(drafts))
            for _ in range(turns // 3):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
        await log.record("a", "end", "user", "last")
    assert {n for (n,) in sql("SELECT count(*) FROM episodes WHERE session_id <> 'end' GROUP BY session_id")} <= {10}


async def test_a_cancelled_resolve_disturbs_no_one(log: EpisodicLog) -> None:
    """Cancelled at any turn, resolve leaves the writer as it was, and may be repeated."""
    await log.record("a", "s", "user", "x")
    for turns in range(20):
        call = started(log.resolve("a", "s", "failure"))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        await log.resolve("a", "s", "success")
        assert (await log.sessions("a"))[0].outcome == "success"
    assert (log.stats().queued_rows, log.stats().in_flight) == (0, 0)


async def test_no_transaction_is_left_open_by_a_cancelled_call(log: EpisodicLog, path: Path) -> None:
    """After a call was cancelled at whatever turn, another connection can write at once."""
    for turns in range(20):
        call = started(log.record("a", "s", "user", "x"))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        await log.record("a", "s", "user", "behind it")
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
            db.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize("seed", range(3))
async def test_a_storm_of_cancellations_ends_with_one_row_each(path: Path, sql: Sql, seed: int) -> None:
    """Two thousand calls, cancelled at random turns and retried by event id until they end: one row and one id each."""
    chance = random.Random(seed)
    attempts = count()

    async def persistently(number: int) -> int:
        while True:
            next(attempts)
            call = started(
                log.record("a", f"s{number % 7}", "user", f"text {number}", event_id=f"e{number}")
                if number % 3
                else log.record_many([Draft("a", f"s{number % 7}", "user", f"text {number}", event_id=f"e{number}")])
            )
            for _ in range(chance.randrange(40)):
                await asyncio.sleep(0)
            if chance.random() < 0.7:
                call.cancel()
            try:
                answer = await call
            except asyncio.CancelledError:
                continue
            [episode] = [answer] if number % 3 else answer
            return int(episode.id)

    async with EpisodicLog.open(path, settings=Settings(queue_rows=300, batch_rows=50)) as log:
        ids = await asyncio.gather(*map(persistently, range(2_000)))
        assert next(attempts) > 2_500
        assert (log.stats().queued_rows, log.stats().queued_bytes, log.stats().waiting) == (0, 0, 0)
    assert sql("SELECT id, event_id FROM episodes ORDER BY id") == sorted((ids[n], f"e{n}") for n in range(2_000))
    assert sql("SELECT sum(episodes) FROM sessions") == [(2_000,)]
    assert sql("SELECT count(*) FROM episodes_fts_docsize") == [(2_000,)]


@pytest.mark.parametrize("readers", [1, 3])
async def test_a_storm_of_cancelled_searches_leaves_every_reader_free(path: Path, readers: int) -> None:
    """Searches that are cancelled at random moments take no other's answer away, and leave no snapshot behind."""
    chance = random.Random(readers)
    async with EpisodicLog.open(path, settings=Settings(readers=readers)) as log:
        await log.record_many([Draft("a", f"s{n % 9}", "user", f"refund {n} is late") for n in range(300)])
        expected = await log.search("a", "late refund")

        async def hastily(number: int) -> None:
            call = started(
                log.search("a", "late refund") if number % 4 else log.recall_context("a", f"refund {number}")
            )
            for _ in range(chance.randrange(60)):
                await asyncio.sleep(0)
            if chance.random() < 0.6:
                call.cancel()
            with suppress(asyncio.CancelledError):
                answer = await call
                assert number % 4 == 0 or answer == expected

        await asyncio.gather(*map(hastily, range(600)))
        assert log.stats().readers_idle == readers
        answers = await asyncio.gather(*[log.search("a", "late refund") for _ in range(2 * readers)])
        assert answers == [expected] * (2 * readers)
        # Also the last of them has ended its snapshot, and a write is folded in whole.
        await log.record("a", "s", "user", "one more")
        await log.search("a", "late refund")
        await asyncio.sleep(0.05)
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)


@asynccontextmanager
async def by_task() -> AsyncIterator[Any]:
    """Cancel as asyncio does: once."""
    task = asyncio.current_task()
    assert task is not None
    try:
        yield task.cancel
    except asyncio.CancelledError:
        task.uncancel()


@asynccontextmanager
async def by_scope() -> AsyncIterator[Any]:
    """Cancel as anyio does: again at each await, until the scope is left."""
    with anyio.CancelScope() as scope:
        yield scope.cancel


@pytest.mark.parametrize("cancelling", [by_task, by_scope])
@pytest.mark.parametrize("kind", ["fresh", "log", "read_only", "foreign"])
async def test_opening_that_is_cancelled_leaves_no_thread(path: Path, cancelling: Any, kind: str) -> None:  # noqa: ANN401
    """Cancelled at whatever turn, opening closes what it opened; the file can be opened afterwards."""
    if kind in {"log", "read_only"}:
        async with EpisodicLog.open(path) as log:
            await log.record("a", "s", "user", "kept")
    if kind == "foreign":
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE other (x)")
    before = threading.active_count()
    turns = 0
    opened = False
    while not opened:
        turns += 1 + turns // 2
        async with cancelling() as cancel:
            timer = asyncio.get_running_loop().create_task(later(turns, cancel))
            try:
                async with EpisodicLog.open(path, read_only=kind == "read_only"):
                    opened = timer.done() is False
            except NotOurFileError:
                opened = timer.done() is False
            finally:
                timer.cancel()
        await gone(before)
        if kind == "fresh":
            path.unlink(missing_ok=True)
    assert turns > 10


async def later(turns: int, cancel: Any) -> None:  # noqa: ANN401 - a function of the test's own
    """Cancel after some turns of the event loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    cancel()


async def gone(threads: int) -> None:
    """Wait until no more threads than these are left."""
    for _ in range(500):
        if threading.active_count() <= threads:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"threads are left: {threading.enumerate()}")


@pytest.mark.parametrize("cancelling", [by_task, by_scope])
async def test_closing_that_is_cancelled_goes_on(path: Path, sql: Sql, cancelling: Any) -> None:  # noqa: ANN401
    """Who gives up waiting for the log to close does not keep it open: what was queued is stored all the same."""
    before = threading.active_count()
    log = EpisodicLog.open(path)
    await log.__aenter__()
    with held(path):
        calls = [started(log.record("a", "s", "user", f"{n}")) for n in range(50)]
        await settle()
        async with cancelling() as cancel:
            timer = started(later(5, cancel))
            await log.aclose()
        await timer
        with pytest.raises(ClosedError):
            await log.record("a", "s", "user", "late")
    assert len(await asyncio.gather(*calls)) == 50
    await log.aclose()
    assert sql("SELECT count(*) FROM episodes") == [(50,)]
    await gone(before)


async def test_a_caller_of_a_task_group_that_fails_leaves_the_log_usable(log: EpisodicLog) -> None:
    """When a sibling's error cancels a hundred recording tasks, the log goes on."""

    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError

    async def record_beside() -> None:
        async with asyncio.TaskGroup() as group:
            for n in range(100):
                group.create_task(log.record("a", "s", "user", f"{n}"))
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        await record_beside()
    assert (await log.record("a", "s", "user", "next")).content == "next"
    assert (log.stats().queued_rows, log.stats().queued_bytes) == (0, 0)


async def test_a_deadline_around_record_is_kept_and_the_retry_is_one_row(path: Path) -> None:
    """A caller's own timeout ends its wait while the file is held; the retry with the event id finds one row."""
    async with EpisodicLog.open(path) as log:
        with held(path):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(log.record("a", "s", "user", "x", event_id="e"), 0.05)
            with anyio.move_on_after(0.05) as scope:
                await log.record("a", "s", "user", "x", event_id="e")
            assert scope.cancelled_caught
        episode = await log.record("a", "s", "user", "x", event_id="e")
        assert await log.get(episode.id) == episode
        assert await count_of(log, "s") == 1


async def test_an_error_that_nobody_waits_for_is_not_reported_twice(log: EpisodicLog) -> None:
    """When callers leave in the turn in which they are refused, no future with an unseen error stays behind."""
    await log.record("a", "s", "user", "first", event_id="taken")
    for turns in range(30):
        call = started(log.record("a", "s", "user", "other", event_id="taken"))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled() or isinstance(call.exception(), ConflictError)
