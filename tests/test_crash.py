"""Killed processes and power cuts, in a few rounds; `scripts/crash_test` runs hundreds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "crash_test"
NEEDS_COMPILER = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="a C compiler notes the writes, and there is none"
)

pytestmark = pytest.mark.slow


def crash(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script with this Python."""
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_a_killed_process_loses_nothing_that_it_acknowledged(durability: str) -> None:
    """Acknowledged ⊆ stored, nothing twice, calls whole, order kept, index whole, retries safe: round after round."""
    done = crash("--rounds", "5", "--durability", durability)
    assert (done.returncode, done.stderr) == (0, "")
    figures = json.loads(done.stdout)
    assert figures["acknowledged"] > 0
    assert figures["acknowledged_and_missing"] == 0


@NEEDS_COMPILER
@pytest.mark.parametrize("durability", ["normal", "full"])
def test_a_power_cut_loses_nothing_that_was_synced_and_breaks_no_file(durability: str) -> None:
    """With every commit synced all receipts survive lost writes; without, the file is whole and ends at some moment."""
    lost = 0
    # A kill between a sync and the next write leaves nothing to lose, now and then in all rounds of a run.
    for seed in range(1, 11):
        done = crash("--rounds", "5", "--durability", durability, "--power-cut", "--seed", str(seed))
        assert (done.returncode, done.stderr) == (0, "")
        figures = json.loads(done.stdout)
        assert durability == "normal" or figures["acknowledged_and_missing"] == 0
        lost += figures["lost_writes"]
        if lost:
            break
    assert lost > 0


def test_a_receipt_without_its_row_is_found_out(tmp_path: Path) -> None:
    """The script fails when something that was acknowledged is not there."""
    (tmp_path / "0.ledger").write_text("? 9/1/1\n+ 9/1/1/0 1000000\n", "ascii")
    done = crash("--rounds", "1", "--folder", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "1 acknowledged events are lost, ['9/1/1/0'] among them" in done.stderr
