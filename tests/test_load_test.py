"""`scripts/load_test`: what it reports is what it did."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from episodic import EpisodicLog

SCRIPT = Path(__file__).parents[1] / "scripts" / "load_test"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script with this Python."""
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


async def test_every_call_of_an_offered_load_is_reported_and_every_record_is_in_the_file(path: Path) -> None:
    """Done, failed and missed calls add up to what was offered, and each record that counts as done is stored."""
    done = run(
        "--db",
        path,
        "--seconds",
        "1",
        "--load",
        "100",
        "--tasks",
        "20",
        "--mix",
        "record=6,recall=3,replay=1",
        "--json",
    )

    report = json.loads(done.stdout)
    operations = report["operations"]
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(one["done"] for one in operations.values()) + report["missed"] == 100
    assert all(
        one["p50_ms"] <= one["p95_ms"] <= one["p99_ms"] <= one["max_ms"] for one in operations.values() if one["done"]
    )
    async with EpisodicLog.open(path, read_only=True) as log:
        assert sum([agent.episodes for agent in await log.agents()]) == operations["record"]["done"]


def test_a_log_that_cannot_be_opened_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    """No traceback, and nothing on stdout."""
    done = run("--db", tmp_path / "missing" / "log.db")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("load_test: ")
    assert done.stderr.count("\n") == 1


def test_arguments_that_make_no_sense_are_exit_code_2(path: Path) -> None:
    """An operation that there is not, a load of nothing."""
    assert run("--db", path, "--mix", "forget=1").returncode == 2
    assert run("--db", path, "--load", "0").returncode == 2
    assert not path.exists()
