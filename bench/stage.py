"""Where a benchmark takes place: one event loop, a folder, and the drafts and logs that it works on."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, TypeVar

from episodic import Draft, EpisodicLog
from episodic.corpus import episodes

__all__ = ["CHUNK", "Corpora", "Corpus", "Effort", "Pool", "Stage", "rate"]

T = TypeVar("T")

# Rows in one call of record_many that fills a corpus.
CHUNK = 2_000

# What is asked of a corpus is drawn from this many of its episodes, spread over all of it.
SAMPLES = 500


class Effort(NamedTuple):
    """How much a benchmark does.

    Attributes:
        rounds: rounds in which ours and a peer take turns.
        most_rows: rows of one round at most.
        seconds: length of a round of single calls; each makes at least one.
        cold_calls: calls on a log that was just opened.
    """

    rounds: int
    most_rows: int
    seconds: float
    cold_calls: int


class Pool:
    """The drafts of one corpus, drawn as far as they are asked for; nobody writes one twice to the same log."""

    def __init__(self, seed: int) -> None:
        """Begin a corpus."""
        self._left = episodes(seed, 10**9)
        self._drawn: list[Draft] = []

    def part(self, number: int, rows: int) -> Sequence[Draft]:
        """Return the `number`-th `rows` drafts."""
        end = (number + 1) * rows
        self._drawn.extend(islice(self._left, max(0, end - len(self._drawn))))
        return self._drawn[end - rows : end]


class Stage:
    """One event loop and what was opened in it."""

    def __init__(self, runner: asyncio.Runner, folder: Path) -> None:
        """Take an event loop and an empty folder."""
        self.run = runner.run
        self.folder = folder
        self._opened = AsyncExitStack()

    def enter(self, opening: AbstractAsyncContextManager[T]) -> T:
        """Open something until the benchmark ends."""
        return self.run(self._opened.enter_async_context(opening))

    def log(self, path: Path | None = None) -> EpisodicLog:
        """Open a log, a new one unless there is a file."""
        return self.enter(EpisodicLog.open(path or self.folder / "ours.db"))

    def close(self) -> None:
        """Close all that was opened."""
        self.run(self._opened.aclose())


@dataclass(frozen=True, slots=True)
class Corpus:
    """A log to read, closed.

    Attributes:
        path: its file, which nobody writes to.
        samples: some of its episodes, spread over all of it.
        questions: what other customers than these say.
    """

    path: Path
    samples: Sequence[Draft]
    questions: Sequence[str]

    def copy(self, folder: Path) -> Path:
        """Copy the file for who writes to it, so that each benchmark begins with the same size."""
        return Path(shutil.copy(self.path, folder / "copy.db"))


class Corpora:
    """Logs by their size, made when they are first asked for."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Remember where to make them."""
        self._folder = folder
        self._seed = seed
        self._made: dict[int, Corpus] = {}

    def get(self, size: int) -> Corpus:
        """Return the log of this size."""
        if size not in self._made:
            path = self._folder / f"{size}.db"
            samples = asyncio.run(_fill(path, self._seed, size))
            others = episodes(self._seed + 1, 10 * SAMPLES)
            self._made[size] = Corpus(path, samples, [draft.content for draft in others if draft.role == "user"])
        return self._made[size]


def rate(rows: int, work: Callable[[], object]) -> float:
    """Return the rows per second of some work."""
    begun = perf_counter()
    work()
    return rows / (perf_counter() - begun)


async def _fill(path: Path, seed: int, size: int) -> Sequence[Draft]:
    samples: list[Draft] = []
    drafts = episodes(seed, size)
    async with EpisodicLog.open(path) as log:
        while chunk := list(islice(drafts, CHUNK)):
            await log.record_many(chunk)
            samples += chunk[:: max(1, size // SAMPLES)]
    return samples
