"""What is done while nobody writes: the search index is merged, a little at a time, and never in anybody's way."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from episodic import Draft, EpisodicLog, Settings, upkeep
from tests.conftest import Sql
from tests.test_healing import intact

SEGMENTS = "SELECT count(DISTINCT segid) FROM episodes_fts_idx"
PATIENCE = 10.0

# What `append` in batches of its own leaves: fewer than the 16 that FTS5 merges by itself.
BATCHES = 12


async def fill(log: EpisodicLog) -> None:
    """Record some batches, each of which makes a segment of the index."""
    for n in range(BATCHES):
        await log.record_many([Draft("a", f"s{n}", "user", f"refund {n} of order {i}") for i in range(100)])


async def merged(sql: Sql) -> bool:
    """Wait until the index has one segment a level at the most; tell whether it came to that."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while asyncio.get_running_loop().time() < deadline:
        if sql(SEGMENTS)[0][0] <= 2:
            return True
        await asyncio.sleep(0.02)
    return False


async def test_the_index_is_merged_once_nobody_writes(log: EpisodicLog, path: Path, sql: Sql) -> None:
    """What many small batches have left in pieces is put together, and finds and counts what it did before."""
    await fill(log)
    assert sql(SEGMENTS) == [(BATCHES,)]
    before = await log.search("a", "refund 7 order 70", 50)
    assert await merged(sql)
    assert await log.search("a", "refund 7 order 70", 50) == before
    assert intact(path)


async def test_what_others_left_is_merged_after_opening(path: Path, sql: Sql) -> None:
    """A program that only imports and ends leaves the merging to whoever opens the log next for longer."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
    assert sql(SEGMENTS) == [(BATCHES,)]
    async with EpisodicLog.open(path):
        assert await merged(sql)


async def test_nothing_is_merged_while_somebody_writes(
    log: EpisodicLog, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that keep coming keep the merging off."""
    monkeypatch.setattr(upkeep, "QUIET_SECONDS", 0.2)
    await fill(log)
    for n in range(3):
        await log.record("a", "s", "user", f"message {n}")
        await asyncio.sleep(0.02)
    assert sql(SEGMENTS) == [(BATCHES + 3,)]


async def test_a_log_that_is_only_read_is_not_touched(path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that look change nothing."""
    monkeypatch.setattr(upkeep, "QUIET_SECONDS", 0.01)
    async with EpisodicLog.open(path) as log:
        await fill(log)
    before = path.read_bytes()
    async with EpisodicLog.open(path, read_only=True) as log:
        await log.search("a", "refund")
        await asyncio.sleep(0.1)
    assert path.read_bytes() == before


async def test_merging_that_fails_is_told_and_tried_again(
    path: Path, sql: Sql, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another program holds the file nothing is merged; a warning says so, and the next quiet time makes up."""
    monkeypatch.setattr(upkeep, "QUIET_SECONDS", 0.05)
    async with EpisodicLog.open(path, settings=Settings(busy_timeout=0.01)) as log:
        with caplog.at_level(logging.WARNING, "episodic"), closing(sqlite3.connect(path, timeout=0)) as other:
            await fill(log)
            other.execute("BEGIN IMMEDIATE")
            for _ in range(200):
                if caplog.records:
                    break
                await asyncio.sleep(0.01)
            other.execute("ROLLBACK")
        [warning] = [record.getMessage() for record in caplog.records]
        assert warning.startswith("tidying failed, searches stay as quick as they are")
        await log.record("a", "s", "user", "hello")
        assert await merged(sql)


@pytest.mark.usefixtures("without_fts5", "no_thread_left")
async def test_without_an_index_there_is_nothing_to_merge(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build without FTS5 goes on as always."""
    monkeypatch.setattr(upkeep, "QUIET_SECONDS", 0.01)
    async with EpisodicLog.open(path) as log:
        await log.record("a", "s", "user", "hello")
        await asyncio.sleep(0.1)
        await log.record("a", "s", "user", "again")


@pytest.mark.usefixtures("no_thread_left")
async def test_a_log_closes_in_the_middle_of_merging(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing waits for the piece that is under way at the most, and leaves a whole index."""
    monkeypatch.setattr(upkeep, "QUIET_SECONDS", 0.0)
    for _ in range(5):
        async with EpisodicLog.open(path) as log:
            await fill(log)
            await asyncio.sleep(0.002)
    assert intact(path)
