"""The commands that take episodes out of a log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import click

from episodic.faces.cli.exits import NOTHING, OK, UNUSABLE
from episodic.faces.cli.options import agent_option, awaited, command, db_option, filter_options, instant, json_option
from episodic.faces.cli.progress import counting
from episodic.faces.cli.screen import Screen, stamp
from episodic.log import EpisodicLog
from episodic.model import Filter

__all__ = ["erase", "retain"]

LOOK_SECONDS = 0.2

AnswerT = TypeVar("AnswerT")

dry_run_option = click.option("--dry-run", is_flag=True, help="Only count; nothing is changed.")


@command("retain")
@click.option(
    "--older-than",
    metavar="TIME",
    callback=instant,
    required=True,
    help="What happened before this: 90d ago, or 2026-01-05T09:00Z (UTC without a zone).",
)
@db_option
@agent_option("of all")
@filter_options()
@dry_run_option
@json_option
@awaited
async def retain(
    *, older_than: datetime, db: Path, agent_id: str | None, where: Filter | None, dry_run: bool, as_json: bool
) -> int:
    """Remove what is older than a time.

    It leaves every answer at once, and the file a little at a time, so that bots go on. The space is used again;
    `episodic vacuum` gives it back to the disk.
    """
    async with EpisodicLog.open(db, read_only=True) as log:
        count = await log.retain(older_than=older_than, agent_id=agent_id, where=where, dry_run=True)
    if not dry_run:
        async with EpisodicLog.open(db) as log:
            removing = log.retain(older_than=older_than, agent_id=agent_id, where=where)
            count = await _watched(log, removing, count, db)
    screen = Screen.open()
    if as_json:
        screen.records([{"older_than": older_than, "episodes": count, "dry_run": dry_run}])
    else:
        screen.line(f"{'would remove' if dry_run else 'removed'} {count:,} episodes from before {stamp(older_than)}")
    return OK


@command("erase", exits="An erasure that is pending is 3.")
@db_option
@agent_option("of all")
@filter_options()
@dry_run_option
@json_option
@awaited
async def erase(*, db: Path, agent_id: str | None, where: Filter | None, dry_run: bool, as_json: bool) -> int:
    """Erase a user or a session to the last byte.

    Or whatever else the options say together. Episodes, search index, free space and write-ahead log are cleared, and
    then looked through; what is printed is the receipt. Bots wait for some seconds while the file is rewritten.
    """
    async with EpisodicLog.open(db, read_only=True) as log:
        receipt = await log.erase(agent_id=agent_id, where=where, dry_run=True)
    if not dry_run:
        async with EpisodicLog.open(db) as log:
            receipt = await _watched(log, log.erase(agent_id=agent_id, where=where), receipt.episodes, db)
    screen = Screen.open()
    if as_json:
        screen.records([receipt])
    else:
        screen.line(str(receipt))
    if receipt.state == "pending":
        return UNUSABLE
    # A name that was mistyped in a request must not pass for one that was met.
    is_idle = not receipt.episodes and not receipt.looked_at
    return NOTHING if is_idle else OK


async def _watched(log: EpisodicLog, removing: Awaitable[AnswerT], due: int, db: Path) -> AnswerT:
    """Await a removal, and show how far it has come."""
    with counting(db.name, "episodes") as advance:
        removal = asyncio.ensure_future(removing)
        try:
            while advance is not None and not removal.done():
                await asyncio.wait([removal], timeout=LOOK_SECONDS)
                done = log.stats().removed
                advance(done, min(done, due), due)
            return await removal
        finally:
            removal.cancel()
