"""The commands that care for a log as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.text import Text

from episodic.faces.cli.exits import OK, UNUSABLE
from episodic.faces.cli.options import awaited, command, db_option, json_option
from episodic.faces.cli.progress import counting
from episodic.faces.cli.screen import Screen, note
from episodic.faces.cli.text import one_line, printable_path, sized
from episodic.health import Finding
from episodic.maintenance import back_up, diagnose, repair
from episodic.maintenance import restore as restore_log
from episodic.maintenance import vacuum as vacuum_log

__all__ = ["backup", "doctor", "restore", "vacuum"]

STYLES = {"ok": "green", "warning": "yellow", "fault": "bold red", "unknown": "dim"}


@command("backup")
@click.argument("target", type=click.Path(path_type=Path))
@db_option
@json_option
@awaited
async def backup(*, target: Path, db: Path, as_json: bool) -> int:
    """Copy the log into TARGET, also while bots write to it.

    TARGET is one file, which appears when it is complete and checked: SQLite's integrity check, the search index word
    by word, and as many episodes as the log has.
    """
    with _pages(target) as on_pages:
        episodes = await back_up(db, target, on_pages=on_pages)
    _print_copy(target, episodes, "backed up", as_json=as_json)
    return OK


@command("restore")
@click.argument("source", metavar="BACKUP", type=click.Path(path_type=Path))
@db_option
@json_option
@awaited
async def restore(*, source: Path, db: Path, as_json: bool) -> int:
    """Make a log of BACKUP.

    It is made at the path that --db names, where nothing may be; BACKUP stays, and is checked as well.
    """
    with _pages(db) as on_pages:
        episodes = await restore_log(source, db, on_pages=on_pages)
    _print_copy(db, episodes, "restored", as_json=as_json)
    return OK


@command("vacuum")
@db_option
@json_option
@awaited
async def vacuum(*, db: Path, as_json: bool) -> int:
    """Give free space in the log back to the disk.

    The search index is put into one piece, too; writers wait meanwhile.
    """
    before, after, is_folded = await vacuum_log(db)
    screen = Screen.open()
    if as_json:
        screen.records([{"file": printable_path(db), "bytes_before": before, "bytes_after": after}])
    else:
        screen.line(f"{one_line(str(db))}: {sized(before)} before, {sized(after)} now")
    if not is_folded:
        note("a reader keeps to an earlier state of the log; the file shrinks once that has gone on")
    return OK


@command("doctor", exits="A fault that is found, and not repaired, is 3.")
@db_option
@click.option("--deep", is_flag=True, help="Compare the search index word by word; writers wait, 5 s for a million.")
@click.option(
    "--repair",
    "is_to_repair",
    is_flag=True,
    help="Compare as --deep does, and make the index anew if it has a fault.",
)
@json_option
@awaited
async def doctor(*, db: Path, deep: bool, is_to_repair: bool, as_json: bool) -> int:
    """Say what can be seen of the log's health.

    That is SQLite's version, disk, access, pages, counts, search index. What it cannot see: a flipped bit inside a
    text, and what a disk loses that promises to keep it.
    """
    findings = await diagnose(db, deep=deep or is_to_repair)
    screen = Screen.open()
    if is_to_repair and any(one.name == "index" and one.state == "fault" for one in findings):
        indexed = await repair(db)
        findings = await diagnose(db, deep=True)
        findings.append(Finding("repair", "ok", f"the search index was made anew from {indexed:,} episodes"))
    elif is_to_repair:
        findings.append(Finding("repair", "ok", "the search index has no fault that was found; nothing was changed"))
    if as_json:
        screen.records([one._asdict() for one in findings])
    else:
        for one in findings:
            screen.line(Text(f"{one.state:<8}", STYLES[one.state]), Text(f"{one.name:<8}", "dim"), one_line(one.text))
    return UNUSABLE if any(one.state == "fault" for one in findings) else OK


@contextmanager
def _pages(target: Path) -> Iterator[Callable[[int, int], None] | None]:
    """Show the progress of a copy."""
    with counting(target.name, "pages") as advance:
        yield None if advance is None else lambda done, total: advance(done, done, total)


def _print_copy(target: Path, episodes: int, done: str, *, as_json: bool) -> None:
    size, screen = target.stat().st_size, Screen.open()
    if as_json:
        screen.records([{"file": printable_path(target), "episodes": episodes, "bytes": size}])
    else:
        screen.line(f"{done} {episodes:,} episodes, {sized(size)}, to {one_line(str(target))}")
