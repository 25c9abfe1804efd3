"""The search index and the log are one: what differs at open is noticed, put right, and told."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from episodic import Draft, Episode, EpisodicLog
from tests.conftest import Sql

COUNTS = "SELECT (SELECT count(*) FROM episodes_fts_docsize), (SELECT count(*) FROM episodes)"

LOSSES = {
    "one row": (
        """INSERT INTO episodes_fts (episodes_fts, rowid, user, author, content)
        SELECT 'delete', place, user, author, content FROM episodes_indexed WHERE id = 4""",
        1,
        "lacks 1 episodes",
    ),
    "all rows": ("INSERT INTO episodes_fts (episodes_fts) VALUES ('delete-all')", 10, "lacks 10 episodes"),
    "the table": ("DROP TABLE episodes_fts", 10, "lacks 10 episodes"),
    "an orphan": ("DELETE FROM episodes WHERE id = 4", 9, "holds deleted episodes; indexing all 9"),
    "an orphan, by turns": ("UPDATE episodes SET id = 40 WHERE id = 4", 10, "holds deleted episodes"),
}


@pytest.fixture
async def filled(path: Path) -> list[Episode]:
    """A closed log of a few episodes."""
    async with EpisodicLog.open(path) as log:
        return await log.record_many([Draft("a", "s", "user", f"about a refund {n}", user_id="u") for n in range(10)])


def intact(path: Path) -> bool:
    """Tell whether the search index is exactly that of the log, by FTS5's own strict check."""
    with closing(sqlite3.connect(path)) as db:
        try:
            db.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError:
            return False
        [(indexed, logged)] = db.execute(COUNTS)
    return bool(indexed == logged)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the log has warned about."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(("loss", "reindexed", "warning"), LOSSES.values(), ids=LOSSES.keys())
async def test_an_index_that_differs_from_the_log_is_healed_at_open_and_told(  # noqa: PLR0917
    path: Path,
    sql: Sql,
    filled: list[Episode],
    caplog: pytest.LogCaptureFixture,
    loss: str,
    reindexed: int,
    warning: str,
) -> None:
    """Rows that the index lost, or holds of deleted episodes, are noticed, put right, logged and counted; once."""
    sql(loss)
    assert loss == LOSSES["the table"][0] or not intact(path)
    async with EpisodicLog.open(path) as log:
        assert log.stats().reindexed == reindexed
        assert len((await log.search("a", "refund", limit=20)).hits) == sql("SELECT count(*) FROM episodes")[0][0]
    assert [warning in message and str(path) in message for message in warnings_in(caplog)] == [True]
    assert intact(path)
    async with EpisodicLog.open(path) as log:
        assert log.stats().reindexed == 0
    assert len(warnings_in(caplog)) == 1


async def test_what_a_build_without_fts5_wrote_is_indexed_at_the_next_open(
    path: Path, filled: list[Episode], caplog: pytest.LogCaptureFixture, without_fts5: Callable[[], None]
) -> None:
    """A build without FTS5 writes, reads and searches the same file; a build with it indexes what is missing."""
    async with EpisodicLog.open(path) as log:
        assert log.stats().mode == "like"
        await log.record("a", "s", "user", "another refund", user_id="u")
        assert len((await log.search("a", "refund", limit=20)).hits) == 11
    assert not warnings_in(caplog)
    without_fts5()
    async with EpisodicLog.open(path) as log:
        assert (log.stats().mode, log.stats().reindexed) == ("fts", 1)
        assert len((await log.search("a", "refund", limit=20)).hits) == 11
    assert intact(path)
    assert len(warnings_in(caplog)) == 1


async def test_a_file_that_a_build_without_fts5_made_gets_its_index_later(
    path: Path, caplog: pytest.LogCaptureFixture, without_fts5: Callable[[], None]
) -> None:
    """The schema of a log is the same with and without FTS5, but for the index, which comes when it can."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"refund {n}") for n in range(5)])
    without_fts5()
    async with EpisodicLog.open(path, read_only=True) as log:
        assert log.stats().mode == "like"
        assert len((await log.search("a", "refund")).hits) == 5
    async with EpisodicLog.open(path) as log:
        assert (log.stats().mode, log.stats().reindexed) == ("fts", 5)
    assert intact(path)


async def test_opening_a_whole_log_warns_about_nothing(
    path: Path, filled: list[Episode], caplog: pytest.LogCaptureFixture
) -> None:
    """An index that is as it should be is left alone."""
    async with EpisodicLog.open(path) as log:
        assert log.stats().reindexed == 0
    assert not warnings_in(caplog)
    assert intact(path)
