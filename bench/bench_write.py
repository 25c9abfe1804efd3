"""Writing: acknowledged records of one task up to ten thousand, bulk, a busy event loop, and what the peers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.load import half_busy, record_all, spread_over
from bench.peers import Write, agents_sessions, langgraph_store, one_commit_each, plain
from bench.rounds import Figure, alternate, bar, percentiles
from bench.stage import CHUNK, Effort, Pool, Stage, rate
from episodic import Draft, EpisodicLog

PLAIN = "plain sqlite3 + executemany"

# Rows of a round, so that it takes about a second, most of which is neither its beginning nor its end.
ROWS = {1: 3_000, 10: 10_000, 100: 20_000, 1_000: 30_000, 10_000: 60_000}
MANY = 1_000

Insert: TypeAlias = Callable[[Sequence[Draft]], None]


class Rival(NamedTuple):
    """A peer in the event loop: its name, how to open it, its tasks, and the rows that it writes in about a second."""

    name: str
    opening: Callable[[Path], AbstractAsyncContextManager[Write]]
    tasks: int
    rows: int


RIVALS = (
    Rival("one commit each, aiosqlite", one_commit_each, 100, 3_000),
    Rival("LangGraph AsyncSqliteStore", langgraph_store, MANY, 20_000),
    Rival("OpenAI Agents AsyncSQLiteSession", agents_sessions, 100, 500),
)


class Writers:
    """Ours and plain sqlite3, measured on the same drafts in the rounds of the same number."""

    def __init__(self, effort: Effort, stage: Stage, pool: Pool) -> None:
        """Take what the fixtures prepared."""
        self.effort, self.stage, self.pool = effort, stage, pool
        self.seconds: list[float] = []

    def ours(self, tasks: int) -> Figure:
        """Return the rate of acknowledged records from so many tasks on a new log."""
        log, rows = self.stage.log(), self.rows(tasks)

        def measure(number: int) -> float:
            drafts = self.pool.part(number, rows)
            return rate(rows, lambda: self.seconds.extend(self.stage.run(record_all(log, drafts, tasks))))

        return measure

    def plain(self, tasks: int) -> Figure:
        """Return the rate of plain sqlite3 on what so many tasks would record."""
        insert, rows = self.stage.enter(plain(self.stage.folder)), self.rows(tasks)

        def measure(number: int) -> float:
            drafts = self.pool.part(number, rows)
            return rate(rows, lambda: insert(drafts))

        return measure

    def rows(self, tasks: int) -> int:
        """Return how many rows a round has."""
        return min(ROWS[tasks], self.effort.most_rows)


@pytest.fixture
def writers(effort: Effort, stage: Stage, pool: Pool) -> Writers:
    """Ours and plain sqlite3."""
    return Writers(effort, stage, pool)


@pytest.mark.parametrize("tasks", ROWS, ids="{:,}".format)
def test_record(benchmark: BenchmarkFixture, writers: Writers, tasks: int) -> None:
    """Acknowledged records of many tasks, against sqlite3 with nobody waiting."""
    benchmark.group = "record"
    alternate(benchmark, writers.ours(tasks), writers.plain(tasks), writers.effort.rounds)
    benchmark.extra_info.update(percentiles(writers.seconds), tasks=tasks, against=PLAIN)
    if tasks == MANY:
        bar(benchmark, f"acknowledged record, {MANY:,} tasks, against {PLAIN}", least=0.9)


@pytest.mark.parametrize("calls", [1, 2])
def test_record_many(benchmark: BenchmarkFixture, writers: Writers, calls: int) -> None:
    """Bulk: one call after the other, or always two at a time."""
    benchmark.group = "record_many"
    log, rows, stage = writers.stage.log(), writers.rows(MANY), writers.stage

    def ours(number: int) -> float:
        drafts = writers.pool.part(number, rows)
        return rate(rows, lambda: stage.run(record_chunks(log, drafts, calls)))

    alternate(benchmark, ours, writers.plain(MANY), writers.effort.rounds)
    benchmark.extra_info.update(calls=calls, against=PLAIN)
    if calls == 1:
        bar(benchmark, f"record_many in bulk, against {PLAIN}", least=1.0)


def test_record_beside_busy_loop(benchmark: BenchmarkFixture, writers: Writers) -> None:
    """Acknowledged records while the event loop's thread has other work for half of the time, against without."""
    benchmark.group = "record, busy event loop"
    log, rows, stage = writers.stage.log(), writers.rows(MANY), writers.stage

    async def busy(drafts: Sequence[Draft]) -> None:
        async with half_busy():
            await record_all(log, drafts, MANY)

    def with_work(number: int) -> float:
        drafts = writers.pool.part(2 * number + 1, rows)
        return rate(rows, lambda: stage.run(busy(drafts)))

    def without(number: int) -> float:
        drafts = writers.pool.part(2 * number, rows)
        return rate(rows, lambda: stage.run(record_all(log, drafts, MANY)))

    alternate(benchmark, with_work, without, writers.effort.rounds)
    benchmark.extra_info.update(against="an event loop with nothing else to do")
    bar(benchmark, f"record, {MANY:,} tasks, beside a task that is busy half of the time, against without", least=0.7)


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_record_against_rival(benchmark: BenchmarkFixture, writers: Writers, rival: Rival) -> None:
    """Acknowledged records of a thousand tasks, against another way to write from an event loop."""
    benchmark.group = "record, peers"
    stage, rows = writers.stage, min(rival.rows, writers.effort.most_rows)
    write = stage.enter(rival.opening(stage.folder))

    def peer(number: int) -> float:
        drafts = writers.pool.part(number, rows)
        return rate(rows, lambda: stage.run(spread_over(rival.tasks, drafts, write)))

    alternate(benchmark, writers.ours(MANY), peer, writers.effort.rounds)
    benchmark.extra_info.update(tasks=rival.tasks, against=rival.name)
    if rival.opening is one_commit_each:
        bar(benchmark, f"record, {MANY:,} tasks, against one commit each by {rival.tasks} tasks", least=15)


async def record_chunks(log: EpisodicLog, drafts: Sequence[Draft], calls: int) -> None:
    """Write drafts in bulk, so many calls at a time."""
    left = iter(range(0, len(drafts), CHUNK))

    async def work() -> None:
        for start in left:
            await log.record_many(drafts[start : start + CHUNK])

    async with asyncio.TaskGroup() as group:
        for _ in range(calls):
            group.create_task(work())
