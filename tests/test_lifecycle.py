"""Closing, and who may use the log where: nothing is lost silently, nothing hangs, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from episodic import (
    ClosedError,
    Draft,
    Episode,
    EpisodicLog,
    Settings,
    WrongLoopError,
)
from tests.conftest import Sql, run_script

pytestmark = pytest.mark.usefixtures("no_thread_left")

# Every kind of call on an open log, each as one that can be awaited.
CALLS: dict[str, Callable[[EpisodicLog], Awaitable[object]]] = {
    "record": lambda log: log.record("a", "s", "user", "x"),
    "record_many": lambda log: log.record_many([Draft("a", "s", "user", "x")]),
    "resolve": lambda log: log.resolve("a", "s", "success"),
    "get": lambda log: log.get(1),
    "recent": lambda log: log.recent("a"),
    "search": lambda log: log.search("a", "x"),
    "recall_context": lambda log: log.recall_context("a", "x"),
    "sessions": lambda log: log.sessions("a"),
    "agents": lambda log: log.agents(),
    "around": lambda log: log.around(1),
    "replay": lambda log: anext(log.replay("s")),
    "scan": lambda log: anext(log.scan()),
    "follow": lambda log: anext(log.follow(0)),
}


async def settle() -> None:
    """Let every task go on until it waits."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_closing_with_fifty_in_flight_stores_them(path: Path, sql: Sql) -> None:
    """What was queued when the log is closed is committed, and its callers are told."""
    async with EpisodicLog.open(path, settings=Settings(batch_rows=5)) as log:
        calls = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(50)]
        await asyncio.sleep(0)
    assert all(call.done() for call in calls)
    assert [call.result().id for call in calls] == list(range(1, 51))
    assert sql("SELECT count(*) FROM episodes") == [(50,)]


async def test_a_thousand_tasks_that_nobody_waits_for_are_stored_or_told(path: Path, sql: Sql) -> None:
    """At the end of the block each task that recorded has its receipt; each that came too late has ClosedError."""
    async with EpisodicLog.open(path, settings=Settings(queue_rows=100)) as log:
        early = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(1_000)]
        await asyncio.sleep(0)
        late = [asyncio.create_task(log.record("a", "late", "user", f"{n}")) for n in range(100)]
    answers = await asyncio.gather(*early, *late, return_exceptions=True)
    stored = [answer for answer in answers if isinstance(answer, Episode)]
    assert {type(answer) for answer in answers} <= {Episode, ClosedError}
    assert len(stored) >= 100
    assert sorted(sql("SELECT content FROM episodes")) == sorted((episode.content,) for episode in stored)


def test_a_script_that_waits_for_none_of_its_tasks_loses_none_silently(path: Path, sql: Sql) -> None:
    """A thousand fire-and-forget tasks and a normal exit: all of them are in the file, and the process ends."""
    done = run_script(
        """
import asyncio, sys
from episodic import EpisodicLog

async def main():
    async with EpisodicLog.open(sys.argv[1]) as log:
        tasks = {asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(1000)}
        await asyncio.sleep(0)

asyncio.run(main())
""",
        path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sql("SELECT count(*) FROM episodes") == [(1_000,)]


async def test_closing_twice_at_once_and_again_is_closing(path: Path) -> None:
    """Any number of tasks may close the log; each waits until it is closed."""
    log = EpisodicLog.open(path)
    await log.aclose()
    await log.__aenter__()
    call = asyncio.create_task(log.record("a", "s", "user", "x"))
    await asyncio.sleep(0)
    await asyncio.gather(*[log.aclose() for _ in range(5)])
    assert call.done()
    assert [file.name for file in path.parent.iterdir()] == ["log.db"]
    await log.aclose()


async def test_a_log_may_be_closed_by_another_task_than_opened_it(path: Path) -> None:
    """Opening and closing are not bound to a task, as a web framework's startup and shutdown are not."""
    log = EpisodicLog.open(path)
    await asyncio.create_task(log.__aenter__())
    await log.record("a", "s", "user", "x")
    await asyncio.create_task(log.aclose())
    assert "closed" in repr(log)


async def test_an_error_in_the_block_passes_unwrapped_and_closes(path: Path) -> None:
    """The caller's own exception is what rises, and the log is closed behind it."""
    error = LookupError("own")

    async def fail() -> None:
        async with EpisodicLog.open(path) as log:
            await log.record("a", "s", "user", "x")
            raise error

    with pytest.raises(LookupError) as caught:
        await fail()
    assert caught.value is error


async def test_a_log_is_entered_once(path: Path) -> None:
    """A log that is open, being opened, or was closed cannot be entered again; a second object can."""
    log = EpisodicLog.open(path)
    first, second = await asyncio.gather(log.__aenter__(), log.__aenter__(), return_exceptions=True)
    assert first is log
    assert isinstance(second, ClosedError)
    await log.aclose()
    with pytest.raises(ClosedError, match=r"make another with EpisodicLog\.open"):
        await log.__aenter__()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_a_log_that_is_not_open_refuses_every_call(
    path: Path, call: Callable[[EpisodicLog], Awaitable[object]]
) -> None:
    """Before opening and after closing each call raises ClosedError at once and says what to do."""
    log = EpisodicLog.open(path)
    with pytest.raises(ClosedError, match="async with"):
        await call(log)
    async with log:
        await log.record("a", "s", "user", "x")
    with pytest.raises(ClosedError, match="open it again"):
        await call(log)
    with pytest.raises(ClosedError):
        log.stats()


async def test_an_iteration_that_outlives_the_log_ends_with_an_error(path: Path) -> None:
    """A reader that is in the middle of a replay or waits in follow learns that the log was closed."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"{n}") for n in range(1_000)])
        replaying, following = log.replay("s"), log.follow(0)
        await anext(replaying)
        for _ in range(1_000):
            await anext(following)
        waiting = asyncio.ensure_future(anext(following))
        await settle()
    with pytest.raises(ClosedError):
        await waiting
    with pytest.raises(ClosedError):
        _ = [episode async for episode in replaying]


async def test_repr_shows_the_live_state(path: Path) -> None:
    """What is queued, how many readers are free, and whether the log is open can be read off."""
    log = EpisodicLog.open(path, settings=Settings(readers=2, queue_rows=100))
    assert repr(log) == f"<EpisodicLog '{path}' not open>"
    async with log:
        assert repr(log) == f"<EpisodicLog '{path}' queue 0/100, readers 2/2 idle>"
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            calls = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(7)]
            await settle()
            assert repr(log) == f"<EpisodicLog '{path}' queue 7/100, readers 2/2 idle>"
            assert log.stats().queued_rows == 7
            assert log.stats().queued_bytes > 7 * len('["a","s","user","0"]')
        await asyncio.gather(*calls)
        async with EpisodicLog.open(path, read_only=True, settings=Settings(readers=3)) as reading:
            assert repr(reading) == f"<EpisodicLog '{path}' readers 3/3 idle>"
    assert repr(log) == f"<EpisodicLog '{path}' closed>"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_log_refuses_to_be_used_in_another_event_loop(
    path: Path, call: Callable[[EpisodicLog], Awaitable[object]]
) -> None:
    """In a second loop, in another thread's, or after its own has ended, each call is WrongLoopError at once."""

    async def use(log: EpisodicLog) -> None:
        with pytest.raises(WrongLoopError, match="another event loop"):
            await call(log)

    log = EpisodicLog.open(path)
    with asyncio.Runner() as own:
        own.run(log.__aenter__())
        own.run(log.record("a", "s", "user", "x"))
        with asyncio.Runner() as other:
            other.run(use(log))
        thread = threading.Thread(target=lambda: asyncio.run(use(log)))
        thread.start()
        thread.join()
        own.run(log.aclose())
    with asyncio.Runner() as later:
        later.run(use(log))


def test_closing_and_stats_belong_to_the_logs_own_loop(path: Path) -> None:
    """A log cannot be closed or asked for its state from elsewhere, not even where no loop runs."""

    async def close(log: EpisodicLog) -> None:
        with pytest.raises(WrongLoopError):
            await log.aclose()

    log = EpisodicLog.open(path)
    with asyncio.Runner() as own:
        own.run(log.__aenter__())
        with pytest.raises(WrongLoopError):
            log.stats()
        with asyncio.Runner() as other:
            other.run(close(log))
        own.run(log.aclose())


FORKING = """
import asyncio, os, sys
from episodic import EpisodicLog, WrongLoopError

async def outcome(call):
    try:
        return await call
    except WrongLoopError as error:
        return "forked" if "fork" in str(error) else "another loop"

async def in_child(log, path):
    answers = [await outcome(log.record("a", "s", "user", "child")), await outcome(anext(log.replay("s")))]
    answers += [await outcome(log.aclose()), await outcome(EpisodicLog.open(path).__aenter__())]
    async with EpisodicLog.open(path + ".child") as own:
        answers.append((await own.record("a", "s", "user", "own file")).id)
    return answers

runner = asyncio.Runner()
log = EpisodicLog.open(sys.argv[1])
runner.run(log.__aenter__())
runner.run(log.record("a", "s", "user", "before"))
if not (child := os.fork()):
    print(asyncio.run(in_child(log, sys.argv[1])), flush=True)
    os._exit(0)
status = os.waitpid(child, 0)[1]
runner.run(log.record("a", "s", "user", "after"))
runner.run(log.aclose())
runner.close()
# Closed before the fork: the child may open it.
if not (child := os.fork()):
    async def again():
        async with EpisodicLog.open(sys.argv[1]) as own:
            print((await own.record("a", "s", "user", "child")).id, flush=True)
    asyncio.run(again())
    os._exit(0)
sys.exit(status or os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_log_refuses_to_be_used_behind_a_fork(path: Path, sql: Sql) -> None:
    """In a forked child the log, and its file as long as the parent had it open, are WrongLoopError, never a hang."""
    done = run_script(FORKING, path, options=("-W", "ignore::DeprecationWarning"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(["forked"] * 4 + [1]), "3"]
    assert sql("SELECT content FROM episodes ORDER BY id") == [("before",), ("after",), ("child",)]


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("asyncio.run(main())", id="asyncio.run"),
        pytest.param("asyncio.new_event_loop().run_until_complete(main())", id="a loop that is never closed"),
    ],
)
def test_a_script_that_never_closes_the_log_is_warned_and_ends(path: Path, sql: Sql, ending: str) -> None:
    """When a script raises after opening, its own error and a ResourceWarning are what it shows, and it exits."""
    done = run_script(
        """
import asyncio, sys
from episodic import EpisodicLog

async def main():
    global log
    log = EpisodicLog.open(sys.argv[1])
    await log.__aenter__()
    await log.record("a", "s", "user", "x")
    raise LookupError("own")

"""
        + ending,
        path,
        options=("-W", "always::ResourceWarning"),
    )
    assert done.returncode == 1
    assert "LookupError: own" in done.stderr
    assert f"ResourceWarning: {path}: the log was never closed" in done.stderr
    assert sql("SELECT content FROM episodes") == [("x",)]


async def test_a_log_that_was_closed_does_not_warn(path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Nothing is said about a log that was closed, or that was never opened."""
    EpisodicLog.open(path)
    log = EpisodicLog.open(path)
    await log.__aenter__()
    await log.aclose()
    del log
    gc.collect()
    assert not recwarn.list


def test_a_log_that_asyncio_run_leaves_open_is_closed_by_it(path: Path) -> None:
    """With searches done and others under way, the file stands alone afterwards, and only the warning is said."""
    done = run_script(
        """
import asyncio, sys
from episodic import EpisodicLog

async def main():
    log = EpisodicLog.open(sys.argv[1])
    await log.__aenter__()
    await log.record("a", "s", "user", "refund me")
    await log.search("a", "refund")
    global under_way
    under_way = [asyncio.create_task(log.search("a", "refund")) for _ in range(5)]
    await asyncio.sleep(0)

for _ in range(10):
    asyncio.run(main())
""",
        path,
        options=("-W", "ignore::ResourceWarning"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [file.name for file in path.parent.iterdir()] == [path.name]
