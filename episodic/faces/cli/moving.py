"""The commands that bring episodes in and out."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import get_args

import click

from episodic.errors import TransferError
from episodic.faces.cli.exits import OK, NothingFoundError
from episodic.faces.cli.options import agent_option, awaited, command, db_option, filter_options
from episodic.faces.cli.progress import shown
from episodic.faces.cli.screen import Screen, json_output, note
from episodic.faces.cli.text import one_line, printable_path
from episodic.log import EpisodicLog
from episodic.model import Filter
from episodic.transfer import Format, Progress, export_file, import_file
from episodic.transfer.progress import counted

__all__ = ["export", "import_"]

STREAM = "-"


@command("import", exits="What was imported before an error stays; the message says how to go on.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@db_option
@click.option("--agent", "agent_id", metavar="ID", help="The agent of lines that name none; else the file's name.")
@click.option("--format", "form", type=click.Choice(get_args(Format)), help="What FILE is; found out by its content.")
@click.option(
    "--skip", metavar="N", type=click.IntRange(min=0), default=0, help="Leave out N lines or rows of one FILE."
)
@click.option("--json", "as_json", is_flag=True, help="Write what was done as JSON lines.")
@awaited
async def import_(
    *, files: Sequence[str], db: Path, agent_id: str | None, form: Format | None, skip: int, as_json: bool
) -> int:
    """Import files into the log.

    The log is made if there is none, and - is standard input. FILE is episodic's own JSON lines as `export` writes
    them, OpenAI chat as JSON lines with `messages`, both also packed by gzip, or an SQLite database with a table
    `episodes`, which is only read.
    """
    if skip and len(files) > 1:
        msg = "--skip goes with one FILE only"
        raise click.UsageError(msg)
    _check_files(files, db)
    screen = Screen.open()
    async with _filling(db) as log:
        for name in files:
            began = time.monotonic()
            done = await _import(log, name, agent_id, form, skip)
            seconds = time.monotonic() - began
            if as_json:
                screen.records([{"file": printable_path(name), **_counts(done), "seconds": round(seconds, 3)}])
            else:
                rate = f"{done.episodes / seconds:,.0f}/s" if seconds else "at once"
                screen.line(f"imported {_told(done)} from {one_line(name)} in {seconds:.1f} s ({rate})")
            screen.flush()
    return OK


@command("export", exits="With nothing to export the file is empty.")
@click.argument("file", default=STREAM)
@db_option
@agent_option("all of them")
@filter_options()
@awaited
async def export(*, file: str, db: Path, agent_id: str | None, where: Filter | None) -> int:
    """Export episodes as JSON lines.

    To FILE, or to standard output. FILE is packed by gzip if its name ends in .gz, and appears only when it is
    complete. `import` reads it back; how sessions ended goes along.
    """
    async with EpisodicLog.open(db, read_only=True) as log:
        target = json_output() if file == STREAM else Path(file)
        with shown(Path(file).name) as on_progress:
            done = await export_file(log, target, agent_id=agent_id, where=where, on_progress=on_progress)
    if not done.episodes:
        msg = "there was nothing to export"
        raise NothingFoundError(msg)
    if file != STREAM:
        Screen.open().line(f"exported {_told(done)} to {one_line(file)}")
    return OK


def _check_files(files: Sequence[str], db: Path) -> None:
    """Find out that a file is not there before a log is made."""
    for name in files:
        if name == STREAM:
            continue
        path = Path(name)
        if not path.exists():
            msg = f"{name} does not exist; check the path"
            raise TransferError(msg)
        if db.exists() and path.samefile(db):
            msg = f"{name} is the log itself"
            raise TransferError(msg)


@asynccontextmanager
async def _filling(db: Path) -> AsyncIterator[EpisodicLog]:
    """Open the log; one that was not there before, and is still empty when the block fails, is taken away again."""
    made = _to_be_made(db)
    is_empty = False
    try:
        async with EpisodicLog.open(db) as log:
            try:
                yield log
            except BaseException:
                is_empty = not await log.newest_id()
                raise
    finally:
        if made is not None and is_empty:
            _take_away(made)


def _to_be_made(db: Path) -> Path | None:
    """Return the file that opening a log will make, behind whatever links; None when it is there."""
    path = Path(os.path.realpath(db))
    return None if path.exists() else path


def _take_away(path: Path) -> None:
    """Remove a log that is closed; as long as its write-ahead log is there, another program has it open."""
    if not path.with_name(f"{path.name}-wal").exists():
        path.unlink(missing_ok=True)


async def _import(log: EpisodicLog, name: str, agent_id: str | None, form: Format | None, skip: int) -> Progress:
    reached = Progress(skip, 0, 0, 0, None)
    with shown(Path(name).name) as show:

        def on_progress(done: Progress) -> None:
            nonlocal reached
            reached = done
            if show is not None:
                show(done)

        if name == STREAM and sys.stdin is None:
            msg = "standard input is closed"
            raise click.UsageError(msg)
        source = sys.stdin.buffer if name == STREAM else Path(name)
        try:
            return await import_file(log, source, form=form, agent_id=agent_id, skip=skip, on_progress=on_progress)
        except asyncio.CancelledError:
            note(f"interrupted: {_told(reached)} of {name} are imported; to go on, --skip {reached.lines}")
            raise


def _counts(done: Progress) -> dict[str, int]:
    return {"lines": done.lines, "episodes": done.episodes, "outcomes": done.outcomes}


def _told(done: Progress) -> str:
    outcomes = f" and the outcomes of {counted(done.outcomes, 'session')}" if done.outcomes else ""
    return f"{counted(done.episodes, 'episode')}{outcomes}"
