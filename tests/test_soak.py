"""`scripts/soak`, in a short form: it lives, it counts, and it tells what grows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "soak"
MEBIBYTE = 2**20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script with this Python."""
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def soak() -> Any:  # noqa: ANN401 - a module that no type checker sees
    """The script as a module."""
    loader = SourceFileLoader("soak", str(SCRIPT))
    spec = spec_from_loader("soak", loader)
    assert spec is not None
    module = sys.modules["soak"] = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_log_that_is_lived_with_loses_nothing_and_keeps_no_file_thread_or_task(tmp_path: Path) -> None:
    """Six short lives on one file: every kind of call was made, and at rest there is what there was before."""
    done = run("--seconds", "7", "--life", "1", "--keep", "3", "--folder", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    figures = json.loads(done.stdout)
    assert figures["lives"] >= 6
    made = figures["calls"]
    for kind in ("record", "recall_context", "replay", "questions", "followed", "retained", "erasures done"):
        assert made[kind] > 0
    for kind in ("files", "threads", "tasks"):
        first, last = figures["at_rest"][kind]
        assert first == last
    assert (tmp_path / "soak.db").exists()


@pytest.mark.parametrize(
    ("name", "figure", "values"),
    [
        ("open files", "files", range(9, 39)),
        ("threads", "threads", [3] * 20 + [4] * 10),
        ("tasks", "tasks", [1] * 28 + [2] * 10),
        ("objects", "objects", range(100_000, 130_000, 1_000)),
        ("memory at rest", "rss", range(100 * MEBIBYTE, 160 * MEBIBYTE, 2 * MEBIBYTE)),
    ],
)
def test_what_grows_is_told(soak: Any, name: str, figure: str, values: Sequence[int]) -> None:  # noqa: ANN401
    """One figure that rises all the time is named, with its first and its last value."""
    flat = soak.Sample(50 * MEBIBYTE, 9, 3, 1, 100_000)
    rest = [flat._replace(**{figure: value}) for value in values]
    [fault] = soak.grown(rest, [60 * MEBIBYTE] * len(rest))
    assert fault.startswith(f"{name}: ")


def test_what_is_flat_behind_its_beginning_is_none(soak: Any) -> None:  # noqa: ANN401
    """What rises while it warms up, or goes up and down, has not grown."""
    flat = soak.Sample(50 * MEBIBYTE, 9, 3, 1, 100_000)
    rest = [flat._replace(rss=n * MEBIBYTE, files=n) for n in range(9)] + [flat, flat, flat._replace(files=10)] * 8
    assert soak.grown(rest, [60 * MEBIBYTE] * 30) == []


def test_a_life_that_is_too_short_to_show_anything_is_exit_code_2(tmp_path: Path) -> None:
    """Nothing is begun then."""
    for arguments in (("--seconds", "5"), ("--rate", "0"), ("--rate", "1", "--keep", "1")):
        done = run(*arguments, "--folder", tmp_path / "none")
        assert (done.returncode, done.stdout) == (2, "")
    assert not (tmp_path / "none").exists()
