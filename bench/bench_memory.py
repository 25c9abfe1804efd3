"""Memory: how much a process grows while it imports a large file, and while it replays all of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench import footprint
from bench.rounds import bar
from bench.stage import Effort

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not footprint.STATUS.exists(), reason="memory is read from /proc")
def test_memory(benchmark: BenchmarkFixture, effort: Effort, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Resident memory at its peak, against before."""
    benchmark.group = "memory"
    rows = min(request.config.getoption("memory_rows"), effort.most_rows)
    source, log = tmp_path / "corpus.jsonl", tmp_path / "log.db"
    run("scripts/make_corpus", "--count", str(rows), "--out", str(source))

    def import_and_replay() -> tuple[float, float]:
        return grown_by(log, source), grown_by(log)

    imported, replayed = benchmark.pedantic(import_and_replay, rounds=1)  # type: ignore[no-untyped-call]
    benchmark.extra_info.update(rows=rows, import_mb=imported, replay_mb=replayed)
    bar(benchmark, f"resident memory grows while importing {rows:,} episodes", figure=imported, most=150, unit="MB")
    bar(benchmark, f"resident memory grows while replaying {rows:,} episodes", figure=replayed, most=40, unit="MB")


def grown_by(*paths: Path) -> float:
    """Return by how many MB a new process grows over an import or a replay."""
    answer = run("-m", "bench.footprint", *map(str, paths))
    growth: float = json.loads(answer)["grown_by_mb"]
    return growth


def run(*arguments: str) -> str:
    """Run this Python in the root of the checkout."""
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout
