"""A file that something else has damaged: a typed error that says so, and never a wrong answer or a traceback."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from episodic import CorruptError, Draft, EpisodicLog, StorageError
from tests.conftest import Runner, Sql


@pytest.fixture
async def filled(path: Path) -> Path:
    """A closed log of a few episodes."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"refund {n}") for n in range(3)])
    return path


@pytest.mark.parametrize("time", ["9223372036854775807", "'noon'"])
async def test_a_time_that_is_none_is_damage(filled: Path, sql: Sql, time: str) -> None:
    """What another program wrote as a time and cannot be one is told, by every read that meets it."""
    sql(f"UPDATE episodes SET timestamp = {time} WHERE id = 2")  # noqa: S608 - ours
    async with EpisodicLog.open(filled, read_only=True) as log:
        with pytest.raises(CorruptError, match=r"log\.db: the database is damaged; restore a backup"):
            await log.get(2)
        with pytest.raises(CorruptError, match="the time of an episode is none"):
            [episode async for episode in log.scan()]
        assert (await log.get(3)).content == "refund 2"


async def test_a_log_without_its_state_is_damaged(filled: Path, sql: Sql) -> None:
    """Without the next id nothing can be recorded; opening says so instead of starting anew."""
    sql("DELETE FROM log_state")
    with pytest.raises(CorruptError, match="log_state has 0 rows"):
        async with EpisodicLog.open(filled):
            pass


async def test_a_role_that_there_is_not_is_shown_as_it_is(run: Runner) -> None:
    """A role that another program slipped in is no reason not to show a conversation."""
    async with EpisodicLog.open(run.db) as log:
        await log.record("a", "s", "user", "hello")
    with closing(sqlite3.connect(run.db)) as db, db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("UPDATE episodes SET role = 'robot'")
    shown = run("replay", "s")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "robot" in shown.stdout
    assert "robot" in run("recent").stdout


async def test_an_error_while_reading_says_nothing_of_what_was_stored(filled: Path, sql: Sql) -> None:
    """Whoever only reads is not told that nothing was stored."""
    async with EpisodicLog.open(filled, read_only=True) as log:
        sql("DROP INDEX episodes_by_agent")
        with pytest.raises(StorageError, match="the database failed") as caught:
            await log.recent("a")
    assert "stored" not in str(caught.value)
