"""A filter means the same on every read: what a plain Python predicate says about each episode."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodic import Draft, Episode, EpisodicLog, Filter, FilterError, NotFoundError, Settings
from episodic.model import JSON, Scalar
from tests.conftest import Sql

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TOKYO = datetime.fromisoformat("2024-05-01T21:04:00+09:00")

FILTERS = [
    Filter(),
    Filter(user_id="u1"),
    Filter(user_id="nobody"),
    Filter(session_id="s1"),
    Filter(session_id="nowhere"),
    Filter(roles=["tool"]),
    Filter(roles=("user", "assistant")),
    Filter(roles={"system"}),
    Filter(roles=[]),
    Filter(outcome="success"),
    Filter(outcome="failure"),
    Filter(outcome="partial"),
    Filter(since=NOON + 5 * MINUTE),
    Filter(since=TOKYO),
    Filter(until=NOON + 5 * MINUTE),
    Filter(until=TOKYO),
    Filter(since=TOKYO, until=TOKYO),
    Filter(since=TOKYO, until=TOKYO + timedelta(microseconds=1)),
    Filter(since=NOON + 9 * MINUTE, until=NOON + MINUTE),
    Filter(metadata={"n": 1}),
    Filter(metadata={"n": 1, "intent": "billing"}),
    Filter(metadata={"n": None}),
    Filter(metadata={}),
    Filter(archived=True),
    Filter(archived=False),
    Filter(user_id="u1", session_id="s1", roles=["user"], since=NOON, until=NOON + 9 * MINUTE, archived=False),
    Filter(user_id="u0", outcome="success", metadata={"intent": "billing"}),
]


NUMBERS: list[JSON] = [1, "1", 1.0, None, True]


def same(held: object, wanted: object) -> bool:
    """Compare as a filter does: by value and by type."""
    return type(held) is type(wanted) and held == wanted


def holds(episode: Episode, where: Filter, outcomes: Mapping[tuple[str, str], str | None]) -> bool:
    """Say whether an episode is within a filter, the slow and plain way."""
    return (
        where.user_id in {None, episode.user_id}
        and where.session_id in {None, episode.session_id}
        and (where.roles is None or episode.role in where.roles)
        and where.outcome in {None, episode.outcome or outcomes.get((episode.agent_id, episode.session_id))}
        and (where.since is None or episode.timestamp >= where.since)
        and (where.until is None or episode.timestamp < where.until)
        and all(key in episode.metadata and same(episode.metadata[key], v) for key, v in (where.metadata or {}).items())
        and where.archived in {None, episode.archived}
    )


class World:
    """A log with something for each filter, and what is in it."""

    def __init__(self, log: EpisodicLog, episodes: list[Episode], outcomes: Mapping[tuple[str, str], str]) -> None:
        """Keep the log and what is in it, sorted by (timestamp, id)."""
        self.log = log
        self.episodes = sorted(episodes, key=lambda e: (e.timestamp, e.id))
        self._outcomes = outcomes

    def expected(self, where: Filter, agent_id: str | None = "a", session_id: str | None = None) -> list[Episode]:
        """Return what is in a scope, oldest first."""
        return [
            e
            for e in self.episodes
            if agent_id in {None, e.agent_id} and session_id in {None, e.session_id} and holds(e, where, self._outcomes)
        ]


def with_sizes() -> list[Draft]:
    """Draft one episode of each kind, each with words of its own beside the common ones."""
    kinds = itertools.product(["a", "b"], ["s0", "s1"], ["user", "assistant", "system", "tool"], [None, "u0", "u1"])
    return [
        Draft(
            agent_id,
            session_id,
            role,
            f"the refund number {n}",
            user_id=user_id,
            outcome=[None, None, "success", "failure"][n % 4],
            timestamp=NOON + MINUTE * (n % 11),
            metadata={"n": NUMBERS[n % 5], "intent": "billing"} if n % 3 else None,
        )
        for n, (agent_id, session_id, role, user_id) in enumerate(kinds)
    ]


@pytest.fixture(params=["fts", "like"])
async def world(request: pytest.FixtureRequest, path: Path, sql: Sql) -> AsyncIterator[World]:
    """A log with something for each filter: with the index of words, and on a build without FTS5."""
    if request.param == "like":
        request.getfixturevalue("without_fts5")
    async with EpisodicLog.open(path, settings=Settings(indexed_metadata=("intent",))) as log:
        recorded = await log.record_many(with_sizes())
        await log.resolve("a", "s0", "partial")
        await log.resolve("b", "s1", "success")
        sql("UPDATE episodes SET archived = 1 WHERE id % 4 = 1")
        episodes = [await log.get(e.id) for e in recorded]
        assert log.stats().mode == request.param
        yield World(log, episodes, {("a", "s0"): "partial", ("b", "s1"): "success"})


async def all_of(source: AsyncIterator[Episode]) -> list[Episode]:
    """Exhaust a stream."""
    return [episode async for episode in source]


def by_id(episodes: Sequence[Episode]) -> list[Episode]:
    """Sort by id."""
    return sorted(episodes, key=lambda e: e.id)


class TestEveryRead:
    """Every filter, every way of reading."""

    async def test_a_replay_is_filtered(self, world: World) -> None:
        """A replay gives what is within the filter, of all agents or of one, in order."""
        for where, session_id in itertools.product(FILTERS, ["s0", "s1"]):
            if where.session_id in {None, session_id}:
                whole = await all_of(world.log.replay(session_id, where=where))
                assert whole == world.expected(where, None, session_id)
                part = await all_of(world.log.replay(session_id, agent_id="a", where=where))
                assert part == world.expected(where, "a", session_id)

    async def test_the_newest_are_filtered(self, world: World) -> None:
        """`recent` gives the newest within the filter that are not archived, and its limit counts only these."""
        for where in FILTERS:
            expected = [e for e in world.expected(where)[::-1] if where.archived or not e.archived]
            assert await world.log.recent("a", 1_000, where=where) == expected
            assert await world.log.recent("a", 3, where=where) == expected[:3]

    async def test_a_scan_is_filtered(self, world: World) -> None:
        """A scan gives what is within the filter, of all agents or of one, by id."""
        for where in FILTERS:
            assert await all_of(world.log.scan(where=where)) == by_id(world.expected(where, None))
            assert await all_of(world.log.scan(agent_id="a", where=where)) == by_id(world.expected(where))

    async def test_a_search_is_filtered(self, world: World) -> None:
        """A search finds all that is within the filter and nothing else, and its limit counts only these."""
        for where in FILTERS:
            expected = by_id(world.expected(where))
            found = await world.log.search("a", "refund", 1_000, where)
            assert by_id([hit.episode for hit in found.hits]) == expected
            assert len((await world.log.search("a", "refund", 2, where)).hits) == min(2, len(expected))

    async def test_a_context_is_filtered(self, world: World) -> None:
        """A context holds what is within the filter and nothing else, whether relevant or recent."""
        for where, message in itertools.product(FILTERS, ["refund", "nothing of the kind"]):
            context = await world.log.recall_context("a", message, 1_000, where)
            assert by_id([item.episode for item in context.items]) == by_id(world.expected(where))

    async def test_sessions_are_filtered(self, world: World) -> None:
        """Those sessions are listed that have an episode within the filter, by the newest such episode."""
        for where in FILTERS:
            listed = [session.session_id for session in await world.log.sessions("a", where)]
            assert listed == list(dict.fromkeys(e.session_id for e in reversed(world.expected(where))))

    async def test_turns_around_are_filtered(self, world: World) -> None:
        """The turns around an episode are within the filter, and so is the episode itself."""
        for where, center in itertools.product(FILTERS, world.episodes[::7]):
            turns = world.expected(where, None, center.session_id)
            if center in turns:
                place = turns.index(center)
                around = await world.log.around(center.id, 3, 2, where=where)
                assert around == turns[max(0, place - 3) : place + 3]
            else:
                with pytest.raises(NotFoundError):
                    await world.log.around(center.id, where=where)

    async def test_one_episode_is_filtered(self, world: World) -> None:
        """`get` gives an episode within the filter, and raises NotFoundError for one that is there but not within."""
        for where, episode in itertools.product(FILTERS, world.episodes):
            if episode in world.expected(where, None):
                assert await world.log.get(episode.id, where=where) == episode
            else:
                with pytest.raises(NotFoundError):
                    await world.log.get(episode.id, where=where)


def test_the_filters_here_tell_the_episodes_apart() -> None:
    """The comparisons above can fail: of the filters that should find something each finds some and not all."""
    recorded = [
        Episode(n, d.agent_id, d.session_id, d.user_id, None, d.timestamp or NOON, d.role, d.content, d.outcome,
                dict(d.metadata or {}), None, archived=n % 4 == 1)
        for n, d in enumerate(with_sizes(), start=1)
    ]  # fmt: skip
    found = [sum(holds(e, where, {("a", "s0"): "partial"}) for e in recorded) for where in FILTERS]
    assert found.count(len(recorded)) == 2
    assert found.count(0) == 5


KEYS = [
    "a.b",
    'q"k',
    "k'x",
    "ünï",
    "",
    "$",
    "[0]",
    "x') OR 1=1 --",
    "a",
    "$.a",
    "#-1",
    "\\",
    "\n",
    "%",
    "k",
    "K",
    "é",
    "e\u0301",
]
VALUES: list[JSON] = [
    True,
    False,
    1,
    0,
    "1",
    "",
    "true",
    "null",
    1.0,
    0.0,
    -1,
    0.1,
    0.30000000000000004,
    1e300,
    None,
    2**63 - 1,
    -(2**63),
    2**63,
    2**63 + 1,
    2**64 - 1,
    9.223372036854776e18,
    "9223372036854775807",
    "q\"'\\\n😀",
    [1],
    [],
    {},
    {"b": 1},
    [[1, [2]]],
]


def comparable(value: JSON) -> bool:
    """Say whether a filter takes a value."""
    try:
        Filter(metadata={"k": value})  # type: ignore[dict-item]
    except FilterError:
        return False
    return True


class TestMetadata:
    """Exact values of top-level keys."""

    async def test_each_key_matches_its_own_row_only(self, log: EpisodicLog) -> None:
        """Dots, quotes, brackets, the empty key, and what looks like a path or like SQL are names like any other."""
        recorded = {key: await log.record("a", "s", "user", "hello", metadata={key: "v"}) for key in KEYS}
        await log.record("a", "s", "user", "hello", metadata={"a": {"b": "v"}, "nested": [dict.fromkeys(KEYS, "v")]})
        await log.record("a", "s", "user", "hello")
        for key in KEYS:
            assert await log.recent("a", 99, where=Filter(metadata={key: "v"})) == [recorded[key]]
            assert await log.recent("a", 99, where=Filter(metadata={key: "w"})) == []

    @pytest.mark.parametrize("indexed", [(), ("k",)])
    async def test_each_value_matches_its_own_row_only(self, path: Path, indexed: tuple[str, ...]) -> None:
        """True, 1, "1", 1.0, null and an absent key are six values, large integers and lists others."""
        async with EpisodicLog.open(path, settings=Settings(indexed_metadata=indexed)) as log:
            recorded = [await log.record("a", "s", "user", "hello", metadata={"k": value}) for value in VALUES]
            await log.record("a", "s", "user", "hello", metadata={"K": 1})
            for value, episode in zip(VALUES, recorded, strict=True):
                if comparable(value):
                    where = Filter(metadata={"k": value})  # type: ignore[dict-item]
                    assert await log.recent("a", 99, where=where) == [episode]
            assert sum(map(comparable, VALUES)) == 18

    @pytest.mark.parametrize(
        "value",
        [2**63, -(2**63) - 1, 0.1 + 0.2, float("nan"), float("inf"), [1], {"b": 1}, (), b"1", NOON, "\0", "\ud83d"],
    )
    def test_what_cannot_be_compared_exactly_is_refused(self, value: Any) -> None:  # noqa: ANN401 - wrong types
        """Large integers, long decimals, containers and broken text raise FilterError, rather than match nearly."""
        with pytest.raises(FilterError, match="metadata 'k'"):
            Filter(metadata={"k": value})

    async def test_several_keys_must_all_hold(self, log: EpisodicLog) -> None:
        """Each pair narrows further."""
        both = await log.record("a", "s", "user", "hello", metadata={"x": 1, "y": 2, "z": 3})
        await log.record("a", "s", "user", "hello", metadata={"x": 1})
        await log.record("a", "s", "user", "hello", metadata={"x": 2, "y": 2})
        assert await log.recent("a", where=Filter(metadata={"x": 1, "y": 2})) == [both]
        assert await log.recent("a", where=Filter(metadata={"x": 1, "y": 1})) == []

    async def test_a_key_that_stands_twice_in_the_file_is_no_error(self, log: EpisodicLog, sql: Sql) -> None:
        """An object that another program wrote with a key twice is still read."""
        await log.record("a", "s", "user", "hello")
        sql("""UPDATE episodes SET metadata = '{"k":1,"k":2}'""")
        assert len(await log.recent("a", where=Filter(metadata={"k": 2}))) == 1


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
EXACT_FLOATS = (
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: float(f"{value:.14e}")).filter(math.isfinite)
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-2, 2),
    st.integers(-2, 2).map(float),
    EXACT_FLOATS,
    st.integers(-2, 2).map(str),
    TEXTS,
)
STORED = st.one_of(
    SCALARS,
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**64 - 1),
    st.lists(SCALARS, max_size=2),
    st.dictionaries(TEXTS, SCALARS, max_size=2),
)
FEW_KEYS = st.one_of(st.sampled_from(["k", "a.b", "a", ""]), TEXTS)


def test_a_metadata_filter_is_a_plain_comparison(path: Path) -> None:
    """For any objects and any filter, with an index on a key or without, that is found whose keys have the values."""
    agents = map(str, itertools.count())

    async def compare(log: EpisodicLog, stored: list[dict[str, JSON]], asked: list[dict[str, Any]]) -> None:
        agent_id = next(agents)
        recorded = await log.record_many(Draft(agent_id, "s", "user", "hi", metadata=one) for one in stored)
        for wanted in asked:
            expected = [e for e in recorded if holds(e, Filter(metadata=wanted), {})]
            assert await log.recent(agent_id, 99, where=Filter(metadata=wanted)) == expected[::-1]

    with asyncio.Runner() as runner:
        log = runner.run(EpisodicLog.open(path, settings=Settings(indexed_metadata=("k", "a.b"))).__aenter__())

        @settings(max_examples=150, deadline=None)
        @given(
            stored=st.lists(st.dictionaries(FEW_KEYS, STORED, max_size=3), min_size=1, max_size=6),
            asked=st.lists(st.dictionaries(FEW_KEYS, SCALARS, min_size=1, max_size=2), max_size=3),
        )
        def check(stored: list[dict[str, JSON]], asked: list[dict[str, Any]]) -> None:
            pairs = [{key: value} for one in stored for key, value in one.items() if comparable(value)]
            runner.run(compare(log, stored, [*asked, *pairs]))

        try:
            check()
        finally:
            runner.run(log.aclose())


class TestIndexedMetadata:
    """An index of a key makes no difference but to the time."""

    @pytest.mark.parametrize("key", ["order", "a.b", "ünï", "[0]", "$", "x) OR (1=1", "%"])
    async def test_an_indexed_key_is_found_through_its_index(self, path: Path, key: str, sql: Sql) -> None:
        """The same episodes come back, text, numbers, booleans and null, and the index is the one in the plan."""
        values: list[Scalar] = ["ORD-1", 1, True, None, 0.5, "1"]
        async with EpisodicLog.open(path, settings=Settings(indexed_metadata=(key,))) as log:
            recorded = [await log.record("a", "s", "user", "hello", metadata={key: value}) for value in values]
            for value, episode in zip(values, recorded, strict=True):
                assert await log.recent("a", where=Filter(metadata={key: value})) == [episode]
        [(name, definition)] = sql("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'episodes_by_metadata%'")
        member = definition.partition("agent_id, ")[2].partition(", timestamp")[0]
        asked = f"SELECT count(*) FROM episodes INDEXED BY {name} WHERE agent_id = 'a' AND {member} = 'ORD-1'"  # noqa: S608
        assert sql(asked) == [(1,)]
        [plan] = sql(f"EXPLAIN QUERY PLAN {asked}")
        assert f"INDEX {name} (agent_id=? AND <expr>=?)" in plan[3]

    async def test_a_key_is_indexed_for_what_was_there_before(self, path: Path) -> None:
        """Opening with a new key indexes the episodes recorded without it."""
        async with EpisodicLog.open(path) as log:
            recorded = await log.record("a", "s", "user", "hello", metadata={"order": "ORD-1"})
        async with EpisodicLog.open(path, settings=Settings(indexed_metadata=("order",))) as log:
            assert await log.recent("a", where=Filter(metadata={"order": "ORD-1"})) == [recorded]

    async def test_a_key_without_an_index_is_found_by_who_only_reads(self, path: Path) -> None:
        """A read-only log cannot make the index that its settings name, and gives the same answers."""
        async with EpisodicLog.open(path) as log:
            recorded = await log.record("a", "s", "user", "hello", metadata={"order": "ORD-1"})
        settings_ = Settings(indexed_metadata=("order",))
        async with EpisodicLog.open(path, settings=settings_, read_only=True) as log:
            assert await log.recent("a", where=Filter(metadata={"order": "ORD-1"})) == [recorded]
            assert len((await log.search("a", "hello", where=Filter(metadata={"order": "ORD-1"}))).hits) == 1


async def test_an_outcome_known_later_counts_for_the_whole_session(log: EpisodicLog) -> None:
    """An episode's own outcome stands before its session's; `resolve` changes what a filter finds, and back."""
    own = await log.record("a", "s", "user", "hello", outcome="failure")
    without = await log.record("a", "s", "user", "hello")
    others = await log.record("b", "s", "user", "hello")
    assert await log.recent("a", where=Filter(outcome="success")) == []
    await log.resolve("a", "s", "success")
    assert await log.recent("a", where=Filter(outcome="success")) == [without]
    assert await log.recent("a", where=Filter(outcome="failure")) == [own]
    assert await all_of(log.scan(where=Filter(outcome="success"))) == [without]
    await log.resolve("b", "s", "success")
    assert await all_of(log.scan(where=Filter(outcome="success"))) == [without, others]
    await log.resolve("a", "s", None)
    assert await log.recent("a", where=Filter(outcome="success")) == []
