"""How far long work has come, on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from episodic.faces.cli.text import one_line
from episodic.transfer import Progress as Done

__all__ = ["shown"]


@contextmanager
def shown(name: str) -> Iterator[Callable[[Done], None] | None]:
    """Show the progress of a transfer while the block runs; yields what to call, None where nobody looks.

    Args:
        name: what is transferred.
    """
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[episodes]:,} episodes", markup=False),
        TextColumn("{task.fields[rate]:,.0f}/s", markup=False),
        TimeElapsedColumn(),
        TextColumn("left", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(one_line(name), total=None, episodes=0, rate=0.0)

        def on_progress(done: Done) -> None:
            elapsed = _task(progress).elapsed or 0.0
            rate = done.episodes / elapsed if elapsed else 0.0
            progress.update(task, total=done.size, completed=done.position, episodes=done.episodes, rate=rate)

        yield on_progress


def _task(progress: Progress) -> Task:
    [task] = progress.tasks
    return task
