"""How far long work has come, on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from episodic.faces.cli.text import one_line
from episodic.transfer import Progress as Done

__all__ = ["counting", "shown"]


@contextmanager
def shown(name: str) -> Iterator[Callable[[Done], None] | None]:
    """Show the progress of a transfer while the block runs; yields what to call, None where nobody looks.

    Args:
        name: what is transferred.
    """
    with counting(name, "episodes") as advance:
        yield None if advance is None else lambda done: advance(done.episodes, done.position, done.size)


@contextmanager
def counting(name: str, unit: str) -> Iterator[Callable[[int, int, int | None], None] | None]:
    """Show how far work has come while the block runs; yields what to call, None where nobody looks.

    It is called with the units done, the place reached, and where the end is if that is known.

    Args:
        name: what is worked on.
        unit: what is counted.
    """
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn(f"{{task.fields[done]:,}} {unit}", markup=False),
        TextColumn("{task.fields[rate]:,.0f}/s", markup=False),
        TimeElapsedColumn(),
        TextColumn("left", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(one_line(name), total=None, done=0, rate=0.0)

        def advance(done: int, position: int, size: int | None) -> None:
            elapsed = _task(progress).elapsed or 0.0
            rate = done / elapsed if elapsed else 0.0
            progress.update(task, total=size, completed=position, done=done, rate=rate)

        yield advance


def _task(progress: Progress) -> Task:
    [task] = progress.tasks
    return task
