"""What a log tells of its own work, and how it keeps its write-ahead log short."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from episodic import Draft, EpisodicLog, Settings, writer
from episodic.events import (
    BatchCommitted,
    Checkpointed,
    Event,
    IndexHealed,
    QueueFull,
    SlowBatch,
    WalGrown,
)
from episodic.sqlite import wal
from tests.conftest import Sql, until

# One word of a megabyte: quickly indexed, and a page of the file for each few kilobytes.
HEAVY = "x" * 2**20


async def write(log: EpisodicLog, size: int) -> None:
    """Let the write-ahead log grow by so many bytes at least."""
    for n in range(-(-size // len(HEAVY))):
        await log.record("a", "s", "user", f"{n} {HEAVY}")


async def test_each_batch_is_told(path: Path) -> None:
    """A batch is told once it is committed, with its rows, its time and what still waits."""
    events: list[Event] = []
    async with EpisodicLog.open(path, on_event=events.append) as log:
        await log.record_many([Draft("a", "s", "user", f"hello {n}") for n in range(3)])
        [event] = events
        assert isinstance(event, BatchCommitted)
        assert (event.rows, event.queued_rows) == (3, 0)
        assert event.seconds > 0
        await log.resolve("a", "s", "success")
        assert len(events) == 1


async def test_a_slow_batch_is_told_and_warned_of(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch that another process holds up is told beside its commit, and stands in the log of the program."""
    monkeypatch.setattr(writer, "SLOW_SECONDS", 0.2)
    events: list[Event] = []
    async with EpisodicLog.open(path, on_event=events.append) as log:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            call = asyncio.create_task(log.record("a", "s", "user", "hello"))
            await asyncio.sleep(0.3)
            other.execute("ROLLBACK")
        await call
    committed, slow = events
    assert isinstance(committed, BatchCommitted)
    assert slow == SlowBatch(1, committed.seconds)
    assert [record.message for record in caplog.records if "took" in record.message] == [
        f"a batch of 1 episodes took {committed.seconds:.1f} s to commit"
    ]


async def test_a_full_queue_is_told_once(path: Path) -> None:
    """The first call that waits for room is told, those that wait behind it are not."""
    events: list[Event] = []
    async with EpisodicLog.open(path, settings=Settings(queue_rows=2), on_event=events.append) as log:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            calls = [asyncio.create_task(log.record("a", "s", "user", f"hello {n}")) for n in range(9)]
            await until(lambda: log.stats().waiting == 7)
            other.execute("ROLLBACK")
        await asyncio.gather(*calls)
    full = [event for event in events if isinstance(event, QueueFull)]
    assert full[0].queued_rows == 2
    assert full[0].queued_bytes > 0
    assert len(full) == 1


async def test_an_index_that_was_healed_is_told(path: Path, sql: Sql) -> None:
    """What the search index lacked at open is told, with how many episodes were indexed."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"refund {n}") for n in range(5)])
    sql("DROP TABLE episodes_fts")
    events: list[Event] = []
    async with EpisodicLog.open(path, on_event=events.append) as log:
        assert events == [IndexHealed(5)]
        assert len((await log.search("a", "refund")).hits) == 5


async def test_a_listener_that_fails_harms_nobody(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What `on_event` raises is logged with the event, and the call that caused it has its answer."""

    def fail(_event: Event) -> None:
        msg = "no disk for metrics"
        raise OSError(msg)

    async with EpisodicLog.open(path, on_event=fail) as log:
        assert (await log.record("a", "s", "user", "hello")).id == 1
        assert (await log.record("a", "s", "user", "hello")).id == 2
    failed = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.message.partition("(")[0] for record in failed] == ["on_event failed with BatchCommitted"] * 2
    assert failed[0].exc_info is not None
    assert "no disk for metrics" in str(failed[0].exc_info[1])


async def test_the_write_ahead_log_is_folded_in_before_it_grows(path: Path) -> None:
    """Each time that 40 MB have come it is folded in, which is told, and written over; nothing is lost on the way."""
    events: list[Event] = []
    async with EpisodicLog.open(path, on_event=events.append) as log:
        for times in range(1, 4):
            await write(log, wal.FOLDED_AT)
            folded = [event for event in events if isinstance(event, Checkpointed)]
            assert len(folded) == times
            assert wal.FOLDED_AT <= folded[-1].wal_bytes < 1.2 * wal.FOLDED_AT
            assert folded[-1].seconds > 0
            assert log.stats().wal_bytes < 1.2 * wal.FOLDED_AT
        assert log.stats().file_bytes > wal.FOLDED_AT
        assert sum([1 async for _ in log.replay("s")]) == log.stats().recorded


async def test_a_reader_in_the_way_is_told_and_stops_nobody(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Beside a reader that keeps to an earlier state all is recorded, and the size told until it shrinks again."""
    events: list[Event] = []

    def grown() -> list[int]:
        return [event.wal_bytes for event in events if isinstance(event, WalGrown)]

    async with EpisodicLog.open(path, on_event=events.append) as log:
        await log.record("a", "s", "user", "hello")
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM episodes").fetchone() == (1,)
            await write(log, wal.BOUND + 2 * wal.FOLDED_AT)
            assert reader.execute("SELECT count(*) FROM episodes").fetchone() == (1,)
        assert len(grown()) >= 2
        assert grown() == sorted(grown())
        assert grown()[0] > wal.BOUND
        assert not any(isinstance(event, Checkpointed) for event in events)
        [warning] = [record.message for record in caplog.records if "has grown" in record.message]
        assert warning.startswith(f"{path}: its write-ahead log has grown to {grown()[0]} bytes: a reader keeps")

        told = len(grown())
        await write(log, wal.FOLDED_AT)
        assert len(grown()) == told
        assert any(isinstance(event, Checkpointed) for event in events)
        assert log.stats().wal_bytes < wal.BOUND
