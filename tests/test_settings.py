"""How a log is opened: what is refused, and that each setting does what it says."""
# ruff: noqa: ANN401 - values of any wrong type are what is tested

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from episodic import Draft, EpisodicError, EpisodicLog, Settings, SettingsError
from tests.conftest import Sql

PLAN_OF_METADATA = """
EXPLAIN QUERY PLAN SELECT id FROM episodes
WHERE agent_id = 'a' AND metadata ->> '$."KEY"' = 'value' ORDER BY timestamp
"""

WRONG = [
    ("durability", "fast"),
    ("durability", None),
    ("durability", ("full",)),
    *[
        (name, value)
        for name in ("readers", "queue_rows", "queue_bytes", "batch_rows", "hot_cap")
        for value in (0, -1, 1.5, True, "2", None)
        # No cap is what None means.
        if (name, value) != ("hot_cap", None)
    ],
    *[
        (name, value)
        for name in ("submit_timeout", "linger", "busy_timeout")
        for value in (-0.1, float("nan"), float("inf"), 10**400, 2_000_000.5, True, "1", None)
    ],
    *[
        ("indexed_metadata", value)
        for value in ("intent", ["intent"], None, ("",), (1,), ('a"b',), ("a'b",), ("a\\b",), ("a\nb",), ("\ud83d",))
    ],
]


def test_the_defaults_are_valid_and_frozen() -> None:
    """Settings() works, says how many readers there will be, and cannot be changed behind an open log."""
    settings = Settings()
    assert 2 <= settings.readers <= 8
    with pytest.raises(FrozenInstanceError):
        settings.readers = 3  # type: ignore[misc]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_value_that_cannot_work_is_refused_by_name(name: str, value: Any) -> None:
    """A wrong value raises SettingsError, which is a ValueError, naming the setting."""
    with pytest.raises(SettingsError, match=name) as caught:
        Settings(**{name: value})
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, EpisodicError)


@pytest.mark.parametrize("name", ["submit_timeout", "linger", "busy_timeout"])
def test_a_time_of_zero_is_allowed(name: str) -> None:
    """Not waiting at all is a choice; whole numbers of seconds are numbers, too."""
    given: dict[str, Any] = {name: 0}
    assert getattr(Settings(**given), name) == 0


def test_anything_but_settings_is_refused_before_opening(path: Path) -> None:
    """A dict in place of Settings fails at the call to `open`, and makes no file."""
    with pytest.raises(SettingsError, match="dict"):
        EpisodicLog.open(path, settings={"readers": 2})  # type: ignore[arg-type]
    assert not path.exists()


@pytest.mark.parametrize(("durability", "synchronous"), [("normal", 1), ("full", 2)])
async def test_durability_is_the_writers_synchronous_level(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    durability: Any,
    synchronous: int,
) -> None:
    """Only with durability="full" does SQLite sync the WAL at each commit."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def keep(*args: Any, **keywords: Any) -> sqlite3.Connection:
        keywords["check_same_thread"] = False
        made.append(connect(*args, **keywords))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", keep)
    async with EpisodicLog.open(path, settings=Settings(durability=durability)):
        [level] = [
            db.execute("PRAGMA synchronous").fetchone()[0]
            for db in made
            if not db.execute("PRAGMA query_only").fetchone()[0]
        ]
    assert level == synchronous


async def test_readers_is_the_size_of_the_pool(path: Path) -> None:
    """As many reading connections are opened as were asked for, all free at first."""
    async with EpisodicLog.open(path, settings=Settings(readers=3)) as log:
        assert (log.stats().readers, log.stats().readers_idle) == (3, 3)


async def test_batch_rows_bounds_a_transaction_and_splits_no_call(path: Path) -> None:
    """Calls are gathered up to batch_rows; one call of record_many is one transaction whatever its size."""
    async with EpisodicLog.open(path, settings=Settings(batch_rows=10)) as log:
        await asyncio.gather(*[log.record("a", "s", "user", f"{n}") for n in range(95)])
        assert log.stats().largest_batch == 10
        await log.record_many([Draft("a", "s", "user", f"{n}") for n in range(25)])
        assert log.stats().largest_batch == 25


async def test_linger_lets_a_batch_wait_for_company(path: Path) -> None:
    """With linger, calls that come some turns of the loop apart share a transaction."""
    async with EpisodicLog.open(path, settings=Settings(linger=3600, batch_rows=2)) as log:
        first = asyncio.create_task(log.record("a", "s", "user", "one"))
        for _ in range(20):
            await asyncio.sleep(0)
        await asyncio.gather(first, log.record("a", "s", "user", "two"))
        assert (log.stats().batches, log.stats().largest_batch) == (1, 2)


async def test_linger_does_not_hold_up_a_full_batch_or_closing(path: Path) -> None:
    """Nothing waits for company that is full already, and closing waits for none."""
    async with EpisodicLog.open(path, settings=Settings(linger=3600, batch_rows=2)) as log:
        await asyncio.gather(*[log.record("a", "s", "user", "full") for _ in range(2)])
        waiting = asyncio.create_task(log.record("a", "s", "user", "alone"))
        for _ in range(20):
            await asyncio.sleep(0)
    assert (await waiting).id == 3


async def test_nobody_lingers_who_keeps_others_waiting(path: Path) -> None:
    """A queue that is full is written at once, also when a batch could hold more than the whole queue."""
    async with EpisodicLog.open(path, settings=Settings(linger=3600, queue_rows=2)) as log:
        recording = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(7)]
        done, _ = await asyncio.wait(recording, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        assert done
    assert {(await task).id for task in recording[:2]} == {1, 2}


async def test_the_longest_busy_timeout_that_is_allowed_waits(path: Path) -> None:
    """SQLite counts milliseconds in 31 bits; no setting may turn waiting for weeks into giving up at once."""
    with pytest.raises(SettingsError, match="busy_timeout"):
        Settings(busy_timeout=2_000_001)
    async with EpisodicLog.open(path, settings=Settings(busy_timeout=2_000_000)) as log:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        recording = asyncio.create_task(log.record("a", "s", "user", "patient"))
        await asyncio.sleep(0.1)
        assert not recording.done()
        other.close()
        assert (await recording).id == 1


async def test_each_indexed_metadata_key_gets_an_index(path: Path, sql: Sql) -> None:
    """Every key has an index of its own, also one that differs in case only or is no plain name."""
    keys = ("intent", "Intent", "order.id", "größe", "a b", "[0]", "$")
    for _ in range(2):
        async with EpisodicLog.open(path, settings=Settings(indexed_metadata=keys)) as log:
            await log.record("a", "s", "user", "hello", metadata=dict.fromkeys(keys, "value"))
    indexes = sql("SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql LIKE '%metadata ->>%'")
    assert len(indexes) == len(keys)
    for key in keys:
        plan = sql(PLAN_OF_METADATA.replace("KEY", key))
        assert "USING INDEX" in plan[0][-1], (key, plan)
        assert "<expr>=?" in plan[0][-1], (key, plan)
