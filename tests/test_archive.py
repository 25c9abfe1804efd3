"""The archive: what an agent has beyond its newest few steps aside, is found as before, and costs the index nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodic import Draft, EpisodicLog, Filter, Settings
from tests.conftest import Runner, Sql, until
from tests.test_healing import intact
from tests.test_query_plans import Explainer
from tests.test_scope import all_of

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
HOT = Settings(hot_cap=5)
ARCHIVED = "SELECT count(*) FROM episodes WHERE archived"


def drafts(count: int, agent_id: str = "a") -> list[Draft]:
    """Make episodes a minute apart."""
    return [
        Draft(agent_id, "s", "user", f"refund {n}", user_id="u", timestamp=NOON + timedelta(minutes=n))
        for n in range(count)
    ]


async def test_the_newest_stay_hot_and_everything_is_found(path: Path) -> None:
    """Beyond the cap an agent's episodes are archived and say so; `recent` leaves them out, nothing else does."""
    async with EpisodicLog.open(path, settings=HOT) as log:
        await log.record_many(drafts(8))
        for draft in drafts(3, "b"):
            await log.record_many([draft])
        assert [e.content for e in await log.recent("a", 99)] == [f"refund {n}" for n in (7, 6, 5, 4, 3)]
        assert [e.content for e in await log.recent("a", 99, where=Filter(archived=True))] == [
            f"refund {n}" for n in (2, 1, 0)
        ]
        assert len(await log.recent("b", 99)) == 3
        found = await log.search("a", "refund", 99)
        assert {hit.episode.content: hit.episode.archived for hit in found.hits} == {
            f"refund {n}": n < 3 for n in range(8)
        }
        recalled = await log.recall_context("a", "refund 1", 99)
        assert len(recalled.items) == len(await all_of(log.replay("s", agent_id="a"))) == 8
        assert len((await log.search("a", "refund", 99, Filter(archived=True))).hits) == 3
        assert (await log.agents())[0].episodes == 8
        assert [s.episodes for s in await log.sessions("a")] == [8]


@settings(max_examples=30, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=6), min_size=1, max_size=8
    ),
    cap=st.integers(1, 6),
)
async def test_the_hot_ones_are_the_newest_in_whatever_order_they_came(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, int]]], cap: int
) -> None:
    """After each commit the hot ones are the newest of those that were hot, in the order of (timestamp, id)."""
    path = tmp_path_factory.mktemp("hot") / "log.db"
    hot: dict[str, list[tuple[datetime, int]]] = {"a": [], "b": []}
    async with EpisodicLog.open(path, settings=Settings(hot_cap=cap)) as log:
        for batch in batches:
            recorded = await log.record_many(
                Draft(agent_id, "s", "user", "x", timestamp=NOON + timedelta(minutes=n)) for agent_id, n in batch
            )
            for agent_id, kept in hot.items():
                kept += [(e.timestamp, e.id) for e in recorded if e.agent_id == agent_id]
                hot[agent_id] = sorted(kept, reverse=True)[:cap]
        for agent_id, kept in hot.items():
            assert [(e.timestamp, e.id) for e in await log.recent(agent_id, 99)] == kept


async def test_what_others_left_hot_is_archived_while_nobody_writes(path: Path, sql: Sql) -> None:
    """A log that was filled without a cap comes under it piece by piece, unasked."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([*drafts(1_300), *drafts(20, "b")])
    assert sql(ARCHIVED) == [(0,)]
    async with EpisodicLog.open(path, settings=HOT) as log:
        await until(lambda: sql(ARCHIVED) == [(1_310,)])
        assert [e.content for e in await log.recent("b", 99)] == [f"refund {n}" for n in (19, 18, 17, 16, 15)]
    assert intact(path)


async def test_without_a_cap_nothing_is_archived(path: Path, sql: Sql) -> None:
    """What is archived stays so for a writer without a cap, and nothing is added."""
    async with EpisodicLog.open(path, settings=HOT) as log:
        await log.record_many(drafts(8))
    async with EpisodicLog.open(path) as log:
        await log.record_many(drafts(8))
    assert sql(ARCHIVED) == [(3,)]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note each statement that writes to the tables of the search index, on every connection that is made meanwhile.

    FTS5 writes them with statements of its own, which SQLite reports as it does those of a trigger.
    """
    connect = sqlite3.connect
    written: list[str] = []

    def note(statement: str) -> None:
        if "episodes_fts_" in statement and not statement.lstrip("- ").upper().startswith("SELECT"):
            written.append(statement)

    def connect_noting(*args: object, **keywords: object) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **keywords)  # type: ignore[call-overload]
        db.set_trace_callback(note)
        return db

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_noting)
        yield written


INDEX = "SELECT id, hex(block) FROM episodes_fts_data UNION ALL SELECT id, hex(sz) FROM episodes_fts_docsize ORDER BY 1"


async def test_archiving_writes_nothing_to_the_index(path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flipping the flag of hundreds of episodes changes no byte of the index and runs no statement on its tables."""
    async with EpisodicLog.open(path) as log:
        await log.record_many(drafts(400))
    before = sql(INDEX)
    with counted(monkeypatch) as written:
        async with EpisodicLog.open(path, settings=HOT) as log:
            opened = len(written)
            await until(lambda: sql(ARCHIVED) == [(395,)])
            assert len(written) == opened
            assert sql(INDEX) == before
            await log.record("a", "s", "user", "one more")
            assert len(written) > opened


async def test_a_batch_costs_the_index_the_same_with_a_cap(path: Path, tmp_path: Path) -> None:
    """The index of a log that archives as it writes is byte for byte that of one that does not."""
    indexes = []
    for file, chosen in ((path, HOT), (tmp_path / "other.db", Settings())):
        async with EpisodicLog.open(file, settings=chosen) as log:
            for n in range(0, 60, 6):
                await log.record_many(drafts(60)[n : n + 6])
        db = sqlite3.connect(file)
        indexes.append(db.execute(INDEX).fetchall())
        db.close()
    assert indexes[0] == indexes[1]


async def test_the_hot_ones_are_found_through_their_own_index(path: Path) -> None:
    """However many are archived, the newest hot ones are looked up and nothing is sorted."""
    async with EpisodicLog.open(path, settings=HOT) as log:
        await log.record_many(drafts(500))
        assert len(await log.recent("a", 99)) == 5
    explainer = Explainer(path)
    plan = explainer.explain(
        "SELECT e.id FROM episodes AS e INDEXED BY episodes_hot WHERE e.agent_id = ? AND e.archived = 0 "
        "AND e.timestamp BETWEEN ? AND ? ORDER BY e.timestamp DESC, e.id DESC LIMIT ?",
        ("a", 0, 2**62, 9),
    )
    assert plan == ["SEARCH e USING INDEX episodes_hot (agent_id=? AND timestamp>? AND timestamp<?)"]


async def test_the_command_line_shows_hot_ones_and_asks_for_the_others(run: Runner) -> None:
    """`recent` leaves the archive out, `--archived` shows it, and search says nothing less than before."""
    async with EpisodicLog.open(run.db, settings=HOT) as log:
        await log.record_many(drafts(8))
    assert run("recent", "--limit", "99").stdout.count("refund") == 5
    assert run("recent", "--limit", "99", "--archived").stdout.count("refund") == 3
    assert run("search", "refund", "--limit", "99").stdout.count("refund") == 8
    assert run("search", "refund", "--limit", "99", "--hot").stdout.count("refund") == 5
