"""What the README says was run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    """Return the README's code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def run(command: list[str], folder: Path) -> str:
    """Run a command in a folder of its own, with the `episodic` command of this Python in front."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("block", blocks("python"))
def test_each_example_runs_as_it_stands(block: str, tmp_path: Path) -> None:
    """The examples are whole programs, warnings are errors, and they print what they promise."""
    assert run([sys.executable, "-W", "error", "-c", block], tmp_path).strip()


def test_the_commands_of_the_command_line_section_run_as_they_stand(tmp_path: Path) -> None:
    """From the demo to the round trip, line by line in one shell."""
    [script] = [block for block in blocks("sh") if "episodic demo" in block]
    printed = run(["bash", "-euc", script.replace("episodic ", f"{sys.executable} -m episodic ")], tmp_path)
    assert "record" in printed
    assert (tmp_path / "copy.db").stat().st_size > (tmp_path / "desk.jsonl.gz").stat().st_size


def test_every_script_that_is_named_is_there() -> None:
    """A reader who copies a command finds its script."""
    root = README.parent
    named = set(re.findall(r"\bscripts/\w+", README.read_text("utf-8")))
    assert named
    assert all(os.access(root / name, os.X_OK) for name in named)
