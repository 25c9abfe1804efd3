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
        with pytest.raises(CorruptError, match="a value in it cannot be"):
            [episode async for episode in log.scan()]
        assert (await log.get(3)).content == "refund 2"


@pytest.mark.parametrize("time", ["9223372036854775807", "'noon'"])
async def test_a_time_of_a_session_that_is_none_is_damage(filled: Path, sql: Sql, time: str) -> None:
    """So it is with the first and the last time of a session, by every call that shows them."""
    sql(f"UPDATE sessions SET last = {time}, outcome = 'success'")  # noqa: S608 - ours
    async with EpisodicLog.open(filled, read_only=True) as log:
        for call in (log.sessions("a"), log.agents()):
            with pytest.raises(CorruptError, match="a value in it cannot be"):
                await call
        with pytest.raises(CorruptError, match="a value in it cannot be"):
            [session async for session in log.resolved()]


async def test_an_episode_without_a_text_is_damage(filled: Path) -> None:
    """A search that meets an episode whose content another program took away says so."""
    with closing(sqlite3.connect(filled)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = replace(sql, 'content    TEXT    NOT NULL', 'content TEXT')")
    with closing(sqlite3.connect(filled)) as db, db:
        db.execute("UPDATE episodes SET content = NULL WHERE id = 2")
    async with EpisodicLog.open(filled, read_only=True) as log:
        for call in (log.search("a", "refund"), log.recall_context("a", "refund")):
            with pytest.raises(CorruptError, match="a value in it cannot be"):
                await call


async def test_an_author_that_is_no_text_names_nobody(filled: Path, sql: Sql) -> None:
    """A number that another program wrote as an author is in nobody's way when a search looks for names."""
    with closing(sqlite3.connect(filled)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = replace(sql, 'author     TEXT', 'author')")
    sql("UPDATE episodes SET author = 17 WHERE id = 2")
    async with EpisodicLog.open(filled, read_only=True) as log:
        assert len((await log.search("a", "refund")).hits) == 3


async def test_a_schema_that_is_no_text_is_damage(filled: Path) -> None:
    """A file whose schema has a byte that is no UTF-8 is told as damaged, by whoever opens it in whatever way."""
    stored = filled.read_bytes()
    filled.write_bytes(stored.replace(b"CREATE INDEX episodes_by_session", b"CREATE INDEX episodes_by_\xffession"))
    assert filled.read_bytes() != stored
    for read_only in (False, True):
        with pytest.raises(CorruptError, match=r"log\.db: the database is damaged"):
            async with EpisodicLog.open(filled, read_only=read_only) as log:
                await log.recent("a")


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


async def test_a_text_that_is_none_is_damage_and_quoted_to_nobody(filled: Path, sql: Sql) -> None:
    """A byte that is no UTF-8 in one user's episode shows nothing of it to whoever meets it."""
    sql("UPDATE episodes SET content = CAST(x'ff736563726574' AS TEXT), author = CAST(x'ff736563726574' AS TEXT)")
    async with EpisodicLog.open(filled, read_only=True) as log:
        for call in (log.get(2), log.recent("a"), log.search("a", "refund"), log.recall_context("a", "refund")):
            with pytest.raises(CorruptError, match=r"a text in it is no UTF-8") as caught:
                await call
            assert "secret" not in str(caught.value)
            assert caught.value.__cause__ is None
        with pytest.raises(CorruptError, match=r"no UTF-8"):
            [episode async for episode in log.replay("s")]
