"""Each statement that reads finds its rows through the index meant for it, whatever the filter adds.

The statements are caught on their way to SQLite and explained with the values that they were given.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from episodic import Draft, EpisodicLog, Filter, Settings
from episodic.ports import Cursor, Lookup, Scope, Span
from episodic.sqlite.connect import place
from episodic.sqlite.filters import Indexes
from episodic.sqlite.frequencies import Frequencies
from episodic.sqlite.readers import SqliteReader

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
CURSOR = Cursor(1_714_564_800_000_000, 3)
LATEST = CURSOR.micros + 1
SETTINGS = Settings(indexed_metadata=("order",))

# The span of a scope that lies anywhere.
ANYWHERE = Span(1, 2**63 - 1, is_whole=True)


# One value for each field of a filter; every combination of them is tried.
FIELDS: dict[str, Any] = {
    "user_id": "u1",
    "session_id": "s1",
    "roles": ("user",),
    "outcome": "success",
    "since": NOON,
    "until": NOON,
    "metadata": {"order": "ORD-1"},
    "archived": False,
}
FILTERS = [
    Filter(**{name: FIELDS[name] for name in names}) for n in range(len(FIELDS)) for names in combinations(FIELDS, n)
]


class Noting(sqlite3.Connection):
    """A connection that keeps the statements it was asked, with their parameters."""

    def __init__(self, *args: Any, **keywords: Any) -> None:  # noqa: ANN401 - as sqlite3's own
        """Begin with none."""
        super().__init__(*args, **keywords)
        self.asked: list[tuple[str, Sequence[Any]]] = []

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3's own
        """Note the statement and run it."""
        self.asked.append((sql, parameters))
        return super().execute(sql, parameters)


class Explainer:
    """A reader over a connection that notes what it is asked, so that it can be explained."""

    def __init__(self, path: Path) -> None:
        """Connect to a file; `opened` makes the reader."""
        self._path = path
        self._connections: list[Noting] = []
        self._db = aiosqlite.Connection(self._connect, iter_chunk_size=64)

    async def opened(self, *, fts: bool) -> SqliteReader:
        """Open the connection and put a reader on it."""
        self._db = await self._db
        [[index]] = await self._db.execute_fetchall(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND name LIKE 'episodes_by_metadata_%'"
        )
        indexes = Indexes({"order": index}, hot=False)
        return SqliteReader(self._db, place(self._path, read_only=True), indexes, Frequencies(), fts=fts)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._db.close()

    async def plan_of(self, call: Awaitable[object]) -> list[str]:
        """Run a call of the reader, and explain the last statement that it asked: the one that answers."""
        await call
        [plan] = self.last_plans(1)
        return plan

    def last_plans(self, count: int) -> list[list[str]]:
        """Explain the last statements that the reader asked."""
        return [self.explain(*one) for one in self._connections[0].asked[-count:]]

    def explain(self, sql: str, parameters: Sequence[Any]) -> list[str]:
        """Explain a statement with the values given."""
        with closing(sqlite3.connect(self._path)) as db:
            return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]

    def _connect(self) -> Noting:
        connection = sqlite3.connect(self._path, factory=Noting)
        self._connections.append(connection)
        return connection


@pytest.fixture(params=["no statistics", "statistics"])
async def db(path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Explainer]:
    """A log of one big agent, so that its index looks useless to whoever counts, and a connection to it."""
    async with EpisodicLog.open(path, settings=SETTINGS) as log:
        await log.record_many(
            Draft("a", f"s{n % 50}", "user", "refund", user_id=f"u{n % 3}", metadata={"order": f"ORD-{n % 40}"})
            for n in range(2_000)
        )
        await log.resolve("a", "s1", "success")
    if request.param == "statistics":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("ANALYZE")
    explainer = Explainer(path)
    yield explainer
    await explainer.aclose()


@pytest.fixture
async def reader(db: Explainer) -> SqliteReader:
    """A reader of the log over that connection."""
    return await db.opened(fts=True)


def index_for(where: Filter) -> str:
    """Name the index that brings in the fewest episodes: a session's, a user's, a rare value's, or the agent's."""
    if where.session_id is not None:
        return "episodes_by_session (session_id=?"
    if where.user_id is not None:
        return "episodes_by_user (agent_id=? AND user_id=?"
    if where.metadata is not None:
        return "episodes_by_metadata_... (agent_id=? AND <expr>=?"
    return "episodes_by_agent (agent_id=?"


def assert_uses(step: str, index: str) -> None:
    """Check which index a step of a plan uses; what the index of a metadata key is called is its own affair."""
    named = re.sub(r"(episodes_by_metadata_)\S+", r"\1...", step).replace(" COVERING ", " ")
    assert named.startswith(f"SEARCH e USING INDEX {index}")


def assert_looked_up(plan: list[str], index: str, *, behind_cursor: bool) -> None:
    """Check that episodes come through the index, in its order, and are never scanned or sorted.

    Behind a cursor there are two looks: the rest of its instant, where the ids behind its own are looked up, too, and
    the rest of the scope.
    """
    searches = [step for step in plan if step.startswith("SEARCH e USING") and "rowid=?" not in step]
    assert len(searches) == 1 + behind_cursor
    for search in searches:
        assert_uses(search, index)
    assert [step for step in searches if re.search(r"timestamp=\? AND (rowid|id)[<>]\?\)", step)] == searches[
        :behind_cursor
    ]
    assert_no_scan(plan)
    assert not [step for step in plan if "TEMP B-TREE" in step]


def assert_no_scan(plan: list[str]) -> None:
    """Check that nothing reads a whole table: what is scanned is the answer of a step before, or a JSON text.

    Whether anything is withdrawn at all is one look at the first row of `leaving`.
    """
    scans = [step for step in plan if step.startswith("SCAN ")]
    known = {step.split()[-1] for step in plan if step.startswith(("CO-ROUTINE", "MATERIALIZE"))}
    known |= {"n", "CONSTANT", "leaving"}
    assert [step for step in scans if "VIRTUAL TABLE" not in step and step.split()[1] not in known] == []


async def test_the_newest_come_through_the_narrowest_index(db: Explainer, reader: SqliteReader) -> None:
    """Under every combination of filters, `recent` walks one index from its end and sorts nothing."""
    for where in FILTERS:
        scope = Scope("a", where)
        for before in (None, CURSOR):
            plan = await db.plan_of(reader.recent(scope, limit=5, latest=LATEST, before=before))
            assert_looked_up(plan, index_for(where), behind_cursor=before is not None)


async def test_a_replay_goes_by_the_session(db: Explainer, reader: SqliteReader) -> None:
    """Under every combination of filters a replay walks episodes_by_session, with and without an agent."""
    for where in FILTERS:
        if where.session_id is not None:
            for agent_id in (None, "a"):
                for after in (None, CURSOR):
                    plan = await db.plan_of(reader.replay(Scope(agent_id, where), limit=5, after=after))
                    assert_looked_up(plan, index_for(where), behind_cursor=after is not None)


async def test_turns_around_go_by_the_session(db: Explainer, reader: SqliteReader) -> None:
    """The turns before an episode and those after it walk episodes_by_session."""
    [center] = await reader.fetch(Scope(None, None), [7])
    for where in FILTERS:
        scope = Scope(None, replace(where, session_id="s6"))
        for before, after in ((2, 0), (0, 2)):
            plan = await db.plan_of(reader.around(scope, center, before=before, after=after))
            assert_looked_up(plan, "episodes_by_session (session_id=?", behind_cursor=True)


async def test_a_scan_goes_by_the_rowid(db: Explainer, reader: SqliteReader) -> None:
    """Under every combination of filters a scan reads the table from its cursor on, in its own order."""
    for where in FILTERS:
        for agent_id in (None, "a"):
            plan = await db.plan_of(reader.scan(Scope(agent_id, where), limit=5, after=3, upto=9))
            assert "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in plan
            assert_no_scan(plan)
            assert not [step for step in plan if "TEMP B-TREE" in step]


async def test_episodes_by_id_go_by_the_rowid(db: Explainer, reader: SqliteReader) -> None:
    """Under every combination of filters `fetch` looks each id up."""
    for where in FILTERS:
        plan = await db.plan_of(reader.fetch(Scope("a", where), [1, 2, 3]))
        assert plan[:2] == [
            "SCAN wanted VIRTUAL TABLE INDEX 1:",
            "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)",
        ]


async def test_sessions_go_by_the_newest_episodes(db: Explainer, reader: SqliteReader) -> None:
    """Under every combination of filters the sessions are found from the newest episodes, through an index."""
    for where in FILTERS:
        plan = await db.plan_of(reader.sessions(Scope("a", where), limit=5))
        [search] = [step for step in plan if step.startswith("SEARCH e USING")]
        assert_uses(search, index_for(where))
        assert "SEARCH s USING PRIMARY KEY (agent_id=? AND session_id=?)" in plan
        assert_no_scan(plan)


async def test_few_sessions_of_many_episodes_are_read_from_the_roll_up(path: Path) -> None:
    """An agent with fewer sessions than are asked for costs as many rows as it has sessions, not episodes."""
    async with EpisodicLog.open(path, settings=SETTINGS) as log:
        await log.record_many(Draft("a", f"s{n % 3}", "user", "x") for n in range(2_000))
    explainer = Explainer(path)
    reader = await explainer.opened(fts=True)
    plan = await explainer.plan_of(reader.sessions(Scope("a", None), limit=20))
    assert [step for step in plan if step.startswith("SEARCH")] == ["SEARCH sessions USING PRIMARY KEY (agent_id=?)"]
    assert [session.session_id for session in await reader.sessions(Scope("a", None), limit=20)] == ["s0", "s1", "s2"]
    for where in (Filter(roles=("user",)), Filter(since=NOON)):
        assert len(await reader.sessions(Scope("a", where), limit=20)) == 3
    await explainer.aclose()


async def test_resolved_sessions_are_looked_up_one_by_one(db: Explainer, reader: SqliteReader) -> None:
    """Under every combination of filters a resolved session's episodes are looked for in that session only."""
    for where in FILTERS:
        for agent_id in (None, "a"):
            plan = await db.plan_of(reader.resolved(Scope(agent_id, where), limit=5, upto=99, after=("a", "s0")))
            [search] = [step for step in plan if step.startswith("SEARCH e USING")]
            assert_uses(search, "episodes_by_session (session_id=?")


async def test_the_newest_id_is_looked_up(db: Explainer, reader: SqliteReader) -> None:
    """`follow` asks for it ten times a second, so it reads one row."""
    assert await db.plan_of(reader.newest_id()) == ["SEARCH episodes"]


async def test_postings_are_driven_from_the_index_of_words(db: Explainer, reader: SqliteReader) -> None:
    """Under every combination of filters a word is looked up first, and then only episodes that it brings in.

    Agent and user are words of the index, so that without any other filter no episode is read at all.
    """
    for where in FILTERS:
        plan = await db.plan_of(
            reader.postings(
                Scope("a", where), [Lookup("refund", 9), Lookup("late", 2, ["once"], 1)], ANYWHERE, most=5, bound=9
            )
        )
        first, *then = [step for step in plan if step.startswith(("SCAN episodes_fts", "SEARCH e", "SCAN e "))]
        assert first.startswith("SCAN episodes_fts VIRTUAL TABLE INDEX")
        # Between two places of the index, where the agent's episodes are.
        assert first.endswith("M3><")
        alone = where == Filter(user_id=where.user_id)
        # A word that is cut to its newest episodes is walked backwards, another one forwards.
        assert then == [
            "SCAN episodes_fts VIRTUAL TABLE INDEX 192:M3><"
            if alone
            else "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"
        ]
        assert "TEMP B-TREE" not in "".join(plan)


async def test_a_survey_counts_in_the_indexes_alone(db: Explainer, reader: SqliteReader) -> None:
    """Words are counted in the index of words; how many episodes there are is one row, or an index of the user's."""
    for where in FILTERS:
        plan = await db.plan_of(reader.survey(Scope("a", where), ["refund"], near=9, counted=9))
        assert "SEARCH agents USING INDEX sqlite_autoindex_agents_1 (agent_id=?)" in plan
        assert [step for step in plan if step.startswith("SCAN episodes_fts VIRTUAL TABLE")]
        user = "SEARCH episodes USING COVERING INDEX episodes_by_user (agent_id=? AND user_id=?)"
        assert (user in plan) is (where.user_id is not None)
        near = [step for step in plan if step.startswith("SEARCH e USING")]
        narrow = replace(where, roles=None, outcome=None, archived=None) not in (
            Filter(),
            Filter(user_id=where.user_id),
        )
        assert len(near) == narrow
        for step in near:
            assert_uses(step, index_for(where))


async def test_the_turns_around_a_hit_are_looked_up_in_its_session(db: Explainer, reader: SqliteReader) -> None:
    """Under every combination of filters the hit is one row, and either side walks episodes_by_session.

    Of the turns of the same instant only the nearest are read, by their ids; of an agent's and of a user's turns the
    index alone is read.
    """
    for where in FILTERS:
        await reader.surroundings(Scope("a", where), [1, 2], reach=5)
        plan, turns = db.last_plans(2)
        assert "SEARCH c USING INTEGER PRIMARY KEY (rowid=?)" in plan
        sides = [step for step in plan if step.startswith("SEARCH e USING")]
        assert len(sides) == 4
        for side in sides:
            assert_uses(side, "episodes_by_session (session_id=? AND timestamp")
            assert " COVERING " in side or not is_in_index(where)
        assert len([side for side in sides if "timestamp=? AND id" in side]) == 2
        assert "TEMP B-TREE" not in "".join(plan)
        assert "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)" in turns


def is_in_index(where: Filter) -> bool:
    """Tell whether episodes_by_session has all that a filter asks."""
    return where in (Filter(user_id=where.user_id), Filter(since=where.since, until=where.until))


async def test_words_without_an_index_are_sought_among_the_newest(db: Explainer) -> None:
    """Where words are compared as text, the episodes compared come through the narrowest index, newest first."""
    reader = await db.opened(fts=False)
    for where in FILTERS:
        plan = await db.plan_of(reader.postings(Scope("a", where), [Lookup("refund", 9)], ANYWHERE, most=5, bound=9))
        [search] = [step for step in plan if step.startswith("SEARCH e USING")]
        assert_uses(search, index_for(where))
        assert_no_scan(plan)


async def test_a_repeated_event_is_looked_up_in_its_unique_index(db: Explainer) -> None:
    """What a retry asks, by agent and event id, is one step into episodes_by_event."""
    held = "SELECT * FROM episodes WHERE agent_id = ? AND event_id = ?"
    assert db.explain(held, ("a", "msg-1")) == [
        "SEARCH episodes USING INDEX episodes_by_event (agent_id=? AND event_id=?)"
    ]
