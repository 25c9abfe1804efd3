"""What all benchmarks share: their options, one event loop each, and the corpora, made once in a run."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.stage import Corpora, Effort, Pool, Stage


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the command line choose how much is measured."""
    group = parser.getgroup("episodic")
    group.addoption(
        "--sizes", type=_sizes, default=(10_000, 100_000), metavar="N,...", help="episodes in the logs that are read"
    )
    group.addoption(
        "--memory-rows", type=int, default=1_000_000, metavar="N", help="episodes to import where memory is measured"
    )
    group.addoption("--rounds", type=int, default=5, metavar="N", help="rounds in which ours and a peer take turns")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a benchmark that asks for a size each of the sizes."""
    if "size" in metafunc.fixturenames:
        metafunc.parametrize("size", metafunc.config.getoption("sizes"), ids="{:,}".format)


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, object]) -> None:
    """Add what the figures depend on and pytest-benchmark does not know."""
    machine_info["sqlite"] = sqlite3.sqlite_version


@pytest.fixture
def effort(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> Effort:
    """How much to do: next to nothing where benchmarks are disabled and each runs once, as a test."""
    if benchmark.disabled:
        return Effort(rounds=1, most_rows=100, seconds=0.0, cold_calls=1)
    return Effort(rounds=request.config.getoption("rounds"), most_rows=10**9, seconds=1.0, cold_calls=20)


@pytest.fixture(scope="session")
def pool() -> Pool:
    """The drafts that are written, drawn as far as they are needed."""
    return Pool(seed=7)


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    """The logs that are read."""
    return Corpora(tmp_path_factory.mktemp("corpora"), seed=11)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """An event loop of this benchmark's own, which closes what was opened in it."""
    with asyncio.Runner() as runner:
        stage = Stage(runner, tmp_path)
        yield stage
        stage.close()


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size.replace("_", "")) for size in text.split(","))
