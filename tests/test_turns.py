"""Taking turns with other writers of one file: in order, in time, and without a pause while there are none."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from episodic import BusyError, EpisodicLog, Settings
from episodic.sqlite.turns import REST, Turns


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Write to a file for as long as the block takes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


async def test_calls_that_find_the_file_locked_keep_their_order(path: Path) -> None:
    """Whatever was asked first has the lower id, although each looks for the lock again and again."""
    async with EpisodicLog.open(path, settings=Settings(batch_rows=2)) as log:
        with lock(path):
            calls = [
                # Every second one needs an answer of its own, and cannot know its id beforehand.
                asyncio.create_task(log.record("a", "s", "user", f"{n}", event_id=f"{n}" if n % 2 else None))
                for n in range(20)
            ]
            await asyncio.sleep(0.1)
            assert not any(call.done() for call in calls)
        assert [(await call).content for call in calls] == [str(n) for n in range(20)]
        ids = [(await call).id for call in calls]
        assert ids == sorted(ids)


async def test_who_finds_the_file_locked_for_too_long_is_told(path: Path) -> None:
    """After `busy_timeout` it is BusyError, nothing is stored, and the next call is stored as soon as that can be."""
    async with EpisodicLog.open(path, settings=Settings(busy_timeout=0.1)) as log:
        with lock(path), pytest.raises(BusyError, match="another process held the database for too long; nothing was"):
            await log.record("a", "s", "user", "first")
        assert (await log.record("a", "s", "user", "second")).id == 1
        assert [episode.content for episode in await log.recent("a")] == ["second"]


async def test_alone_nothing_waits() -> None:
    """While nobody else writes, the second statement is handed over before the first one has ended."""
    turns, gate = Turns(1), anyio.Event()
    running: list[int] = []

    async def run(number: int) -> None:
        running.append(number)
        await gate.wait()

    async with anyio.create_task_group() as group:
        for number in range(2):
            group.start_soon(turns.take, partial(run, number))
        await anyio.wait_all_tasks_blocked()
        assert running == [0, 1]
        gate.set()


async def test_beside_another_there_is_one_at_a_time_and_a_rest_behind_it() -> None:
    """Once another process has written, the lock is left to it between any two statements."""
    turns = Turns(1)
    turns.saw_another()
    spans: list[tuple[float, float]] = []

    async def run() -> None:
        begun = anyio.current_time()
        await anyio.lowlevel.checkpoint()
        spans.append((begun, anyio.current_time()))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(turns.take, run)
    assert len(spans) == 5
    # The clock of the event loop may wake a sleeper by its own resolution too early.
    assert all(later[0] - earlier[1] > REST * 0.9 for earlier, later in pairwise(spans))


async def test_what_waiting_does_not_help_against_is_told_at_once() -> None:
    """A statement that fails otherwise is not tried again, not for a snapshot that is out of date either."""
    calls = 0

    def failing(code: int) -> sqlite3.OperationalError:
        error = sqlite3.OperationalError("no")
        error.sqlite_errorcode = code
        return error

    async def run(code: int) -> None:
        nonlocal calls
        calls += 1
        await anyio.lowlevel.checkpoint()
        raise failing(code)

    turns = Turns(60)
    for code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY_SNAPSHOT):
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="no"):
                await turns.take(partial(run, code))
            turns.saw_another()
    assert calls == 4
