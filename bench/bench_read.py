"""Reading: replay, recent, search and recall on logs of several sizes; idle, beside a saturated writer, and cold."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.load import saturated
from bench.rounds import Figure, alternate, bar, percentiles
from bench.stage import Corpora, Corpus, Effort, Pool, Stage
from episodic import Draft, EpisodicLog, Filter

# The agent that owns the most episodes, about a third of the corpus: where a search costs most.
BUSIEST = "support-bot"

# Drafts that a thousand tasks record over and over.
WRITTEN = 20_000

Operation: TypeAlias = Callable[[EpisodicLog, Draft, str], Awaitable[object]]
"""One call on a log, about an episode that it holds, or asking a question."""


async def replay(log: EpisodicLog, sample: Draft, _: str) -> object:
    """Go through a session."""
    return [episode.id async for episode in log.replay(sample.session_id)]


async def recent(log: EpisodicLog, sample: Draft, _: str) -> object:
    """Look at the newest episodes of an agent."""
    return await log.recent(sample.agent_id, limit=20)


async def search(log: EpisodicLog, _: Draft, question: str) -> object:
    """Search all that the busiest agent has."""
    return await log.search(BUSIEST, question)


async def recall_context(log: EpisodicLog, _: Draft, question: str) -> object:
    """Recall from all that the busiest agent has."""
    return await log.recall_context(BUSIEST, question)


async def recall_context_of_user(log: EpisodicLog, sample: Draft, question: str) -> object:
    """Recall what one customer said, as a bot does at each turn."""
    return await log.recall_context(sample.agent_id, question, where=Filter(user_id=sample.user_id))


OPERATIONS: Sequence[Operation] = (replay, recent, search, recall_context, recall_context_of_user)
BARRED: Sequence[Operation] = (replay, recent)


class Reads:
    """A log of one size, and single calls on it."""

    def __init__(self, effort: Effort, stage: Stage, pool: Pool, corpus: Corpus) -> None:
        """Open a copy of the corpus, which the writer may write to."""
        self.effort, self.stage, self.corpus = effort, stage, corpus
        self._log = stage.log(corpus.copy(stage.folder))
        self._written = pool.part(0, min(WRITTEN, effort.most_rows))

    def idle(self, operation: Operation, kept: list[float]) -> Figure:
        """Return the p99 of calls while nothing else happens; keeps the seconds of each."""
        return lambda _: self._p99(kept, self._calls(operation))

    def beside_writer(self, operation: Operation, kept: list[float]) -> Figure:
        """Return the p99 of calls while a thousand tasks record; keeps the seconds of each."""

        async def calls() -> list[float]:
            async with saturated(self._log, self._written):
                return await self._calls(operation)

        return lambda _: self._p99(kept, calls())

    def cold(self, operation: Operation) -> list[float]:
        """Return the seconds of first calls on a log that was just opened, its pages not in memory."""
        return [self.stage.run(timed_cold(operation, self.corpus, number)) for number in range(self.effort.cold_calls)]

    def _p99(self, kept: list[float], calls: Coroutine[None, None, list[float]]) -> float:
        seconds = self.stage.run(calls)
        kept += seconds
        return percentiles(seconds)["p99"]

    async def _calls(self, operation: Operation) -> list[float]:
        begun = perf_counter()
        seconds: list[float] = []
        while not seconds or perf_counter() - begun < self.effort.seconds:
            seconds.append(await timed(operation, self._log, self.corpus, len(seconds)))
        return seconds


@pytest.fixture
def reads(effort: Effort, stage: Stage, pool: Pool, corpora: Corpora, size: int) -> Reads:
    """A log of the size that is asked for."""
    return Reads(effort, stage, pool, corpora.get(size))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_read(benchmark: BenchmarkFixture, reads: Reads, size: int, operation: Operation) -> None:
    """The slowest hundredth of single calls beside a writer at saturation, against the same on an idle log."""
    benchmark.group = f"read, {size:,} episodes"
    idle: list[float] = []
    writing: list[float] = []
    reads.idle(operation, [])(0)
    alternate(benchmark, reads.beside_writer(operation, writing), reads.idle(operation, idle), reads.effort.rounds)
    seconds = {"idle": idle, "writing": writing, "cold": reads.cold(operation)}
    benchmark.extra_info.update(
        size=size,
        operation=operation.__name__,
        calls={state: len(kept) for state, kept in seconds.items()},
        **{state: percentiles(kept) for state, kept in seconds.items()},
    )
    if operation in BARRED:
        bar(benchmark, f"{operation.__name__}, {size:,} episodes: p99 beside a saturated writer, against idle", most=10)


async def timed(operation: Operation, log: EpisodicLog, corpus: Corpus, number: int) -> float:
    """Return the seconds that the `number`-th call takes."""
    # 7 and 500 samples have no common factor: neighbours in the corpus are asked about far apart.
    sample = corpus.samples[7 * number % len(corpus.samples)]
    question = corpus.questions[number % len(corpus.questions)]
    begun = perf_counter()
    await operation(log, sample, question)
    return perf_counter() - begun


async def timed_cold(operation: Operation, corpus: Corpus, number: int) -> float:
    """Return the seconds that the first call takes on a log that was just opened, its pages not in memory."""
    drop_from_page_cache(corpus.path)
    async with EpisodicLog.open(corpus.path, read_only=True) as log:
        return await timed(operation, log, corpus, number)


def drop_from_page_cache(path: Path) -> None:
    """Ask the system to forget a file's pages, where it can be asked; written ones only go after a sync."""
    if not hasattr(os, "posix_fadvise"):
        return
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
