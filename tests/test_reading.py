"""Replaying, scanning and looking at what was recorded: order, pages, and nothing held while the caller works."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodic import (
    ClosedError,
    Draft,
    Episode,
    EpisodicLog,
    Filter,
    FilterError,
    NotFoundError,
    RejectedError,
    Settings,
)
from episodic.paging import FIRST_LIMIT, MOST_LIMIT, PAGE_CHARACTERS, next_limit, pages
from episodic.ports import Scope
from episodic.sqlite.connect import place
from episodic.sqlite.pool import SqliteReaders
from episodic.sqlite.readers import MOST_WEIGHT
from tests.conftest import Sql

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
# More than two pages, so that pages of both sizes meet.
MANY = FIRST_LIMIT + MOST_LIMIT + 60


def drafts(count: int, *, instants: int = 3, session_id: str = "s", seed: int = 1) -> list[Draft]:
    """Draft episodes in no order of time, many at the same instant."""
    draw = random.Random(seed)
    return [
        Draft("a", session_id, "user", f"turn {n}", timestamp=NOON + timedelta(microseconds=draw.randrange(instants)))
        for n in range(count)
    ]


def in_order(episodes: list[Episode]) -> list[Episode]:
    """Sort by (timestamp, id), the order of the log."""
    return sorted(episodes, key=lambda e: (e.timestamp, e.id))


async def all_of(source: AsyncIterator[Episode]) -> list[Episode]:
    """Exhaust a stream."""
    return [episode async for episode in source]


async def backwards(log: EpisodicLog, limit: int) -> AsyncIterator[list[Episode]]:
    """Page through an agent's episodes, newest first."""
    before = None
    while page := await log.recent("a", limit=limit, before=before):
        yield page
        before = page[-1]


class TestOrder:
    """Time first, then id, on every read."""

    async def test_a_replay_is_in_the_order_of_time_and_then_of_ids(self, log: EpisodicLog) -> None:
        """Episodes that share an instant come in the order of their ids, over any number of pages, each once."""
        recorded = await log.record_many(drafts(MANY))
        assert await all_of(log.replay("s")) == in_order(recorded)

    async def test_the_newest_are_in_the_opposite_order(self, log: EpisodicLog) -> None:
        """`recent` gives the end of the replay, turned around."""
        recorded = await log.record_many(drafts(50))
        assert await log.recent("a", limit=20) == in_order(recorded)[::-1][:20]

    async def test_a_scan_is_in_the_order_of_ids(self, log: EpisodicLog) -> None:
        """A scan gives everything as it was written, whatever its times, over any number of pages."""
        recorded = await log.record_many(drafts(MANY))
        assert await all_of(log.scan()) == recorded
        assert await all_of(log.scan(after=recorded[100].id)) == recorded[101:]
        assert await all_of(log.scan(after=recorded[-1].id)) == []

    async def test_sessions_are_in_the_order_of_their_newest_episodes(self, log: EpisodicLog) -> None:
        """The session of the newest episode comes first; at one instant that is the episode with the higher id."""
        await log.record_many(
            Draft("a", session_id, "user", "hello", timestamp=NOON + timedelta(seconds=seconds))
            for session_id, seconds in [("s1", 5), ("s3", 5), ("s2", 5), ("s0", 7), ("s1", 1), ("s9", 0)]
        )
        assert [s.session_id for s in await log.sessions("a")] == ["s0", "s2", "s3", "s1", "s9"]

    async def test_the_order_is_that_of_instants_in_any_time_zone(self, log: EpisodicLog) -> None:
        """Times are compared as instants, whatever their offset, and come back in UTC to the microsecond."""
        zones = [datetime.fromisoformat(f"2024-05-01T{text}") for text in ("14:00:00.000003+02:00", "12:00:00.000001Z")]
        later, earlier = [await log.record("a", "s", "user", "hello", timestamp=at) for at in zones]
        assert await all_of(log.replay("s")) == [earlier, later]
        assert [e.timestamp.isoformat() for e in (earlier, later)] == [
            "2024-05-01T12:00:00.000001+00:00",
            "2024-05-01T12:00:00.000003+00:00",
        ]

    async def test_times_before_1970_are_in_order_too(self, log: EpisodicLog) -> None:
        """Old times sort before new ones and come back exactly."""
        years = (1969, 2, 1970, 9999, 1900)
        recorded = [
            await log.record("a", "s", "user", "hello", timestamp=datetime(year, 1, 1, 0, 0, 0, 7, UTC))
            for year in years
        ]
        assert await all_of(log.replay("s")) == in_order(recorded)
        assert await log.recent("a") == in_order(recorded)[::-1]


class TestPaging:
    """Pages neither skip nor repeat."""

    @pytest.mark.parametrize("limit", [1, 7, 64])
    async def test_pages_backwards_neither_skip_nor_repeat_on_ties(self, log: EpisodicLog, limit: int) -> None:
        """`recent` with `before` goes through everything once, also where pages end inside an instant."""
        recorded = await log.record_many(drafts(100))
        paged = [episode async for page in backwards(log, limit) for episode in page]
        assert paged == in_order(recorded)[::-1]

    async def test_a_replay_goes_on_behind_any_episode(self, log: EpisodicLog) -> None:
        """`after` gives exactly what follows, whichever episode it is."""
        recorded = in_order(await log.record_many(drafts(20)))
        for place_, episode in enumerate(recorded):
            assert await all_of(log.replay("s", after=episode)) == recorded[place_ + 1 :]

    async def test_a_cursor_and_the_bounds_of_time_hold_together(self, log: EpisodicLog) -> None:
        """Wherever the cursor stands, before the filter's span, inside or behind it, both narrow what is read."""
        recorded = in_order(await log.record_many(drafts(30)))
        instants = [None, *(NOON + timedelta(microseconds=n) for n in range(-1, 5))]
        for since, until in itertools.product(instants, instants):
            where = Filter(since=since, until=until)
            inside = [e for e in recorded if (not since or e.timestamp >= since) and (not until or e.timestamp < until)]
            for cursor in recorded[::4]:
                later = [e for e in inside if (e.timestamp, e.id) > (cursor.timestamp, cursor.id)]
                earlier = [e for e in inside if (e.timestamp, e.id) < (cursor.timestamp, cursor.id)]
                assert await all_of(log.replay("s", where=where, after=cursor)) == later
                assert await log.recent("a", limit=99, where=where, before=cursor) == earlier[::-1]

    async def test_pages_backwards_go_on_where_the_row_at_the_cursor_is_gone(self, log: EpisodicLog, sql: Sql) -> None:
        """Deleting each page's last episode before the next page neither skips nor repeats one."""
        recorded = await log.record_many(drafts(100))
        paged = []
        async for page in backwards(log, 7):
            paged += page
            sql("DELETE FROM episodes WHERE id = ?", page[-1].id)
        assert paged == in_order(recorded)[::-1]

    async def test_a_replay_goes_on_where_the_row_at_the_cursor_is_gone(self, log: EpisodicLog, sql: Sql) -> None:
        """A replay whose every given episode is deleted at once still gives all of them, in order."""
        recorded = await log.record_many(drafts(MANY))
        replayed: list[Episode] = []
        async for episode in log.replay("s"):
            replayed.append(episode)
            if len(replayed) % 32 == 0:
                sql("DELETE FROM episodes WHERE id = ?", episode.id)
        assert replayed == in_order(recorded)
        assert await all_of(log.replay("s", after=replayed[31])) == [
            episode for place_, episode in enumerate(replayed) if place_ > 31 and place_ % 32 != 31
        ]

    async def test_a_scan_goes_on_where_the_row_at_the_cursor_is_gone(self, log: EpisodicLog, sql: Sql) -> None:
        """A scan, too, needs no row to stand at its cursor."""
        recorded = await log.record_many(drafts(MANY))
        scanned: list[Episode] = []
        async for episode in log.scan():
            scanned.append(episode)
            if len(scanned) % 32 == 0:
                sql("DELETE FROM episodes WHERE id = ?", episode.id)
        assert scanned == recorded

    async def test_a_replay_takes_in_what_is_recorded_ahead_of_it(self, log: EpisodicLog) -> None:
        """An episode recorded during a replay behind its last page's end is part of it; none is given twice."""
        await log.record_many(drafts(MANY, instants=1))
        stream = log.replay("s")
        first = await anext(stream)
        late = await log.record("a", "s", "user", "late", timestamp=NOON + timedelta(days=1))
        await log.record("a", "s", "user", "behind", timestamp=NOON - timedelta(days=1))
        replayed = [first, *await all_of(stream)]
        assert len(replayed) == MANY + 1
        assert replayed[-1] == late

    async def test_a_scan_ends_at_what_was_the_newest_when_it_began(self, log: EpisodicLog) -> None:
        """Recording an episode for each one scanned does not make a scan endless."""
        await log.record_many(drafts(FIRST_LIMIT + 1))
        scanned = []
        async for episode in log.scan():
            scanned.append(episode.id)
            await log.record("a", "s", "user", "more")
        assert len(scanned) == FIRST_LIMIT + 1


class TestHoldingNothing:
    """A paused reader holds no snapshot and no connection."""

    @pytest.mark.parametrize("read", ["replay", "scan", "follow"])
    async def test_a_paused_stream_holds_no_snapshot(self, log: EpisodicLog, sql: Sql, read: str) -> None:
        """While a stream is paused the WAL can be checkpointed and cut to nothing, and the stream goes on."""
        recorded = await log.record_many(drafts(FIRST_LIMIT + 10, instants=1))
        streams = {"replay": log.replay("s"), "scan": log.scan(), "follow": log.follow(after=0)}
        stream = streams[read]
        given = [await anext(stream) for _ in range(5)]
        await log.record("a", "other", "user", "written meanwhile")
        [(busy, *_)] = sql("PRAGMA wal_checkpoint(TRUNCATE)")
        assert busy == 0
        assert log.stats().wal_bytes == 0
        given += [await anext(stream) for _ in range(len(recorded) - 5)]
        assert given == recorded

    async def test_a_held_snapshot_would_be_seen(self, log: EpisodicLog, path: Path, sql: Sql) -> None:
        """Proof that the rules here can fail: while a reading transaction is open no checkpoint gets to the end."""
        await log.record("a", "s", "user", "hello")
        readers = await SqliteReaders.open(place(path, read_only=True), Settings(readers=1))
        async with readers.borrow(snapshot=True) as reader:
            await reader.newest_id()
            await log.record("a", "s", "user", "again")
            [(_, in_wal, moved)] = sql("PRAGMA wal_checkpoint(PASSIVE)")
            assert moved < in_wal
        await readers.aclose()

    async def test_every_answer_ends_its_snapshot(self, log: EpisodicLog, sql: Sql) -> None:
        """After each kind of call, also one that fails, the WAL can be cut to nothing."""
        episode = await log.record("a", "s", "user", "hello")
        calls: list[Callable[[], Any]] = [
            lambda: log.recent("a"),
            lambda: log.search("a", "hello"),
            lambda: log.recall_context("a", "hello"),
            lambda: log.sessions("a"),
            log.agents,
            lambda: log.get(episode.id),
            lambda: log.around(episode.id),
            lambda: log.get(99),
        ]
        for call in calls:
            await asyncio.gather(*(call() for _ in range(8)), return_exceptions=True)
            await log.record("a", "s", "user", "more")
            assert sql("PRAGMA wal_checkpoint(TRUNCATE)")[0][0] == 0

    async def test_a_cancelled_call_leaves_no_snapshot_behind(self, path: Path, sql: Sql) -> None:
        """Cancelled at any point, a search gives its connection back without a transaction, ready for the next."""
        async with EpisodicLog.open(path, settings=Settings(readers=1)) as log:
            await log.record("a", "s", "user", "hello")
            for turns in range(40):
                task = asyncio.create_task(log.search("a", "hello"))
                for _ in range(turns % 20):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert len((await log.search("a", "hello", limit=100)).hits) == turns + 1
                await log.record("a", "s", "user", "hello")
                assert sql("PRAGMA wal_checkpoint(TRUNCATE)")[0][0] == 0

    async def test_a_paused_stream_holds_no_connection(self, path: Path) -> None:
        """With a pool of one, streams can be nested and anything asked inside."""
        async with EpisodicLog.open(path, settings=Settings(readers=1)) as log:
            await log.record_many(drafts(3))
            async for one in log.replay("s"):
                async for other in log.scan():
                    assert await log.get(other.id) == other
                assert await log.around(one.id, before=0, after=0) == [one]
            assert log.stats().readers_idle == 1

    async def test_an_abandoned_stream_leaves_nothing_behind(self, log: EpisodicLog, sql: Sql) -> None:
        """Breaking out of a stream needs no closing of it."""
        await log.record_many(drafts(FIRST_LIMIT * 2))
        for stream in (log.replay("s"), log.scan(), log.follow(after=0)):
            async for _ in stream:
                break
        assert log.stats().readers_idle == log.stats().readers
        assert sql("PRAGMA wal_checkpoint(TRUNCATE)")[0][0] == 0


class TestMemory:
    """Pages are as small as their episodes are heavy."""

    @given(st.lists(st.integers(0, 6_000_000), min_size=1, max_size=20))
    def test_the_next_page_weighs_about_as_much_whatever_the_episodes_weigh(self, lengths: list[int]) -> None:
        """A page like the last one, in the size that follows from it, stays within a bound, or is one episode."""
        average = sum(lengths) // len(lengths)
        limit = next_limit([weighing(length) for length in lengths])
        assert 1 <= limit <= MOST_LIMIT
        assert limit == 1 or limit * average <= PAGE_CHARACTERS
        assert limit == MOST_LIMIT or (limit + 1) * (average + 1) > PAGE_CHARACTERS

    @pytest.mark.parametrize(
        ("length", "limit"), [(0, MOST_LIMIT), (200, MOST_LIMIT), (50_000, 20), (5_000_000, 1), (2**30, 1)]
    )
    def test_a_page_of_large_messages_is_small(self, length: int, limit: int) -> None:
        """At 5 MB a message, pages are single messages; at a usual length they are as large as they get."""
        assert next_limit([weighing(length)] * 3) == limit

    async def test_a_heavy_page_is_asked_for_again_much_smaller(self) -> None:
        """What the engine refuses as too heavy comes in smaller pages that grow only step by step."""
        asked: list[int] = []

        async def fetch(after: int, limit: int) -> list[Episode]:
            asked.append(limit)
            if limit > 10:
                msg = "too heavy"
                raise RejectedError(msg)
            return [weighing(10, episode_id=number) for number in range(after + 1, min(after + limit, 40) + 1)]

        given = [e.id async for page in pages(fetch, 0, lambda e: e.id) for e in page]
        assert given == list(range(1, 41))
        assert asked[:3] == [FIRST_LIMIT, FIRST_LIMIT // 16, FIRST_LIMIT // 4]

    async def test_an_episode_that_cannot_be_read_alone_is_an_error(self) -> None:
        """A page of one that is refused is not asked for for ever."""

        async def fetch(_: int, limit: int) -> list[Episode]:
            msg = f"cannot read {limit}"
            raise RejectedError(msg)

        with pytest.raises(RejectedError, match=r"cannot read 1$"):
            await anext(pages(fetch, 0, lambda e: e.id))

    @pytest.mark.parametrize("weight", ["content", "metadata"])
    async def test_large_messages_do_not_fill_the_memory(self, log: EpisodicLog, path: Path, weight: str) -> None:
        """The engine refuses a page of several large episodes, and a replay still gives each once, in order."""
        large = "x" * (MOST_WEIGHT // 8)
        content, metadata = (large, None) if weight == "content" else ("small", {"result": large})
        for n in range(20):
            await log.record("a", "s", "tool", content if n % 3 else "small", metadata=metadata if n % 3 else None)
        assert [e.id async for e in log.replay("s")] == list(range(1, 21))
        assert [e.id async for e in log.scan()] == list(range(1, 21))
        readers = await SqliteReaders.open(place(path, read_only=True), Settings(readers=1))
        async with readers.borrow() as reader:
            with pytest.raises(RejectedError, match="smaller"):
                await reader.replay(Scope(None, Filter(session_id="s")), limit=FIRST_LIMIT)
        await readers.aclose()

    async def test_a_message_heavier_than_a_page_comes_alone(self, log: EpisodicLog) -> None:
        """A single message over the bound of a page is replayed, and so are its neighbours."""
        contents = ["before", "x" * (MOST_WEIGHT + 1), "after"]
        recorded = [await log.record("a", "s", "tool", content) for content in contents]
        assert await all_of(log.replay("s")) == recorded
        assert await log.recent("a", limit=3) == recorded[::-1]
        assert await log.around(recorded[0].id, after=2) == recorded


def weighing(length: int, *, episode_id: int = 1) -> Episode:
    """Make an episode whose content claims a length, without the text."""

    class Claim(str):
        """A text that is as long as it says."""

        __slots__ = ()

        def __len__(self) -> int:
            return length

    return Episode(episode_id, "a", "s", None, None, NOON, "user", Claim(), None, {}, None, archived=False)


class TestReplay:
    """A session, whole or one agent's part."""

    async def test_a_session_is_replayed_whole_or_by_agent(self, log: EpisodicLog) -> None:
        """A handoff shows all agents' turns in order; `agent_id` narrows it; other sessions stay out."""
        turns = [
            await log.record(agent, session, "user", f"{n}")
            for n, (agent, session) in enumerate([("a", "s"), ("b", "s"), ("a", "t"), ("a", "s"), ("", "s")])
        ]
        assert await all_of(log.replay("s")) == [turns[0], turns[1], turns[3], turns[4]]
        assert await all_of(log.replay("s", agent_id="a")) == [turns[0], turns[3]]
        assert await all_of(log.replay("s", agent_id="")) == [turns[4]]
        assert await all_of(log.replay("t", agent_id="b")) == []

    async def test_an_unknown_session_is_empty(self, log: EpisodicLog) -> None:
        """A session without episodes replays nothing and is no error."""
        assert await all_of(log.replay("nowhere")) == []

    async def test_the_filter_of_a_replay_cannot_name_another_session(self, log: EpisodicLog) -> None:
        """Two sessions at once are a mistake; the same one twice is not."""
        recorded = await log.record("a", "s", "user", "hello")
        assert await all_of(log.replay("s", where=Filter(session_id="s"))) == [recorded]
        with pytest.raises(FilterError, match="'t' is not the one to replay, 's'"):
            await anext(log.replay("s", where=Filter(session_id="t")))


class TestRecent:
    """The newest, and not too new."""

    async def test_the_limit_is_kept(self, log: EpisodicLog) -> None:
        """As many as there are, up to the limit; 20 without one."""
        recorded = in_order(await log.record_many(drafts(30)))[::-1]
        assert await log.recent("a") == recorded[:20]
        assert await log.recent("a", limit=1) == recorded[:1]
        assert await log.recent("a", limit=2**63 - 1) == recorded

    async def test_what_is_younger_than_the_minimal_age_is_left_out(self, log: EpisodicLog) -> None:
        """Only what happened at least so many seconds ago is given."""
        now = datetime.now(UTC)
        ages = (0, 50, 70, 7200)
        episodes = {
            age: await log.record("a", "s", "user", f"{age}", timestamp=now - timedelta(seconds=age)) for age in ages
        }
        assert await log.recent("a", min_age_seconds=60) == [episodes[70], episodes[7200]]
        assert await log.recent("a", min_age_seconds=3600.5) == [episodes[7200]]
        assert await log.recent("a", min_age_seconds=0) == [episodes[age] for age in ages]

    @pytest.mark.parametrize("age", [1e300, 10**400, 10**12, 1e12 + 1])
    async def test_an_age_before_all_time_leaves_nothing(self, log: EpisodicLog, age: float) -> None:
        """However great the minimal age is, the answer is exact: nothing is that old."""
        await log.record("a", "s", "user", "hello", timestamp=datetime(1, 1, 1, tzinfo=UTC))
        assert await log.recent("a", min_age_seconds=age) == []

    @pytest.mark.parametrize("age", [-1, float("nan"), float("inf"), "60", None])
    async def test_an_age_that_is_none_is_refused(self, log: EpisodicLog, age: Any) -> None:  # noqa: ANN401 - wrong types
        """A negative, endless or unknown age raises FilterError."""
        with pytest.raises(FilterError, match="min_age_seconds"):
            await log.recent("a", min_age_seconds=age)


class TestOne:
    """One episode and the turns around it."""

    async def test_an_episode_comes_back_as_it_was_received(self, log: EpisodicLog) -> None:
        """Every field of the receipt is what every kind of read gives back."""
        recorded = await log.record(
            "a",
            "s",
            "tool",
            "é\n\t\u2028😀 \x01",
            user_id="u",
            author="desk",
            outcome="partial",
            metadata={"k": [1, 2.5, None, True, {"ü": "\n"}], "": -(2**63)},
            timestamp=NOON,
            event_id="e",
        )
        assert await log.get(recorded.id) == recorded
        assert await log.recent("a") == [recorded]
        assert await all_of(log.replay("s")) == await all_of(log.scan()) == [recorded]
        assert await log.around(recorded.id) == [recorded]

    @pytest.mark.parametrize("number", [0, 2, 2**63 - 1])
    async def test_an_episode_that_is_not_there_is_an_error(self, log: EpisodicLog, number: int) -> None:
        """`get` and `around` raise NotFoundError, which names the id, rather than give nothing."""
        await log.record("a", "s", "user", "hello")
        with pytest.raises(NotFoundError, match=str(number)):
            await log.get(number)
        with pytest.raises(NotFoundError, match=str(number)):
            await log.around(number)

    async def test_turns_around_are_those_of_the_session(self, log: EpisodicLog) -> None:
        """The turns before and after come from the session, in its order, however others interleave."""
        await log.record_many(
            draft
            for pair in zip(drafts(40, session_id="s", seed=3), drafts(40, session_id="t", seed=4), strict=True)
            for draft in pair
        )
        turns = await all_of(log.replay("s"))
        for place_, turn in enumerate(turns):
            assert await log.around(turn.id) == turns[max(0, place_ - 2) : place_ + 3]
            assert await log.around(turn.id, before=0, after=5) == turns[place_ : place_ + 6]
            assert await log.around(turn.id, before=3, after=0) == turns[max(0, place_ - 3) : place_ + 1]
        assert await log.around(turns[7].id, before=2**63 - 1, after=2**63 - 1) == turns


class TestRollUps:
    """Sessions and agents."""

    async def test_a_session_is_summed_up(self, log: EpisodicLog) -> None:
        """First, last, how many, whom about and how it ended are those of its episodes with the agent."""
        await log.record_many(
            [
                Draft("a", "s", "user", "one", timestamp=NOON + timedelta(seconds=5)),
                Draft("a", "s", "user", "two", timestamp=NOON, user_id="u"),
                Draft("b", "s", "user", "three", timestamp=NOON - timedelta(seconds=9), user_id="v"),
            ]
        )
        await log.record("a", "s", "user", "four", timestamp=NOON + timedelta(seconds=7), user_id="w")
        await log.resolve("a", "s", "failure")
        [session] = await log.sessions("a")
        assert (session.agent_id, session.session_id, session.user_id) == ("a", "s", "u")
        assert (session.first, session.last) == (NOON, NOON + timedelta(seconds=7))
        assert (session.episodes, session.outcome) == (3, "failure")

    async def test_sessions_are_found_behind_a_long_one(self, log: EpisodicLog) -> None:
        """A session whose newest episode is thousands of episodes back is listed, within the limit."""
        for number in range(3):
            at = NOON + timedelta(seconds=number)
            await log.record("a", f"old{number}", "user", "hello", timestamp=at)
        await log.record_many(
            Draft("a", "long", "user", f"{n}", timestamp=NOON + timedelta(days=1)) for n in range(2500)
        )
        assert [s.session_id for s in await log.sessions("a")] == ["long", "old2", "old1", "old0"]
        assert [s.session_id for s in await log.sessions("a", limit=2)] == ["long", "old2"]
        assert [s.session_id for s in await log.sessions("a", limit=2**63 - 1)] == ["long", "old2", "old1", "old0"]
        assert await log.sessions("nobody") == []

    async def test_agents_are_summed_up_the_busiest_first(self, log: EpisodicLog) -> None:
        """Episodes, sessions and time of each agent; ties by name."""
        assert await log.agents() == []
        for agent_id, session_id, seconds in [
            ("b", "s", 1),
            ("a", "s", 2),
            ("c", "s", 3),
            ("c", "t", 4),
            ("c", "t", 0),
        ]:
            await log.record(agent_id, session_id, "user", "hello", timestamp=NOON + timedelta(seconds=seconds))
        summed = [(a.agent_id, a.episodes, a.sessions) for a in await log.agents()]
        assert summed == [("c", 3, 2), ("a", 1, 1), ("b", 1, 1)]
        assert (await log.agents())[0].first == NOON
        assert (await log.agents())[0].last == NOON + timedelta(seconds=4)


BAD_LIMITS = [0, -1, 2**63, 1.0, True, "5", None]


class TestRefusals:
    """What cannot be read exactly is refused before anything is read."""

    @pytest.mark.parametrize("limit", BAD_LIMITS)
    async def test_a_limit_that_is_none_is_refused(self, log: EpisodicLog, limit: Any) -> None:  # noqa: ANN401 - wrong types
        """A limit below 1, over 64 bits, or of another type raises FilterError naming it."""
        calls: list[Callable[[], Any]] = [
            lambda: log.recent("a", limit=limit),
            lambda: log.search("a", "hello", limit=limit),
            lambda: log.recall_context("a", "hello", limit=limit),
            lambda: log.sessions("a", limit=limit),
        ]
        for call in calls:
            with pytest.raises(FilterError, match="limit must be a whole number of at least 1"):
                await call()

    @pytest.mark.parametrize("number", [-1, 2**63, 1.0, True, "5", None])
    async def test_an_id_or_a_count_that_is_none_is_refused(self, log: EpisodicLog, number: Any) -> None:  # noqa: ANN401
        """Ids and numbers of turns are whole numbers from 0 on."""
        episode = await log.record("a", "s", "user", "hello")
        calls: list[Callable[[], Any]] = [
            lambda: log.get(number),
            lambda: log.around(number),
            lambda: log.around(episode.id, before=number),
            lambda: log.around(episode.id, after=number),
            lambda: anext(log.scan(after=number)),
        ]
        for call in calls:
            with pytest.raises(FilterError, match="must be a whole number of at least 0"):
                await call()

    @pytest.mark.parametrize("cursor", [1, "5", NOON, (NOON, 1)])
    async def test_a_cursor_that_is_no_episode_is_refused(self, log: EpisodicLog, cursor: Any) -> None:  # noqa: ANN401
        """`after` of a replay and `before` of recent take an Episode."""
        with pytest.raises(FilterError, match="after must be an Episode"):
            await anext(log.replay("s", after=cursor))
        with pytest.raises(FilterError, match="before must be an Episode"):
            await log.recent("a", before=cursor)

    @pytest.mark.parametrize("name", ["a\0", "\ud83d", b"a", 7])
    async def test_a_name_that_cannot_be_compared_is_refused(self, log: EpisodicLog, name: Any) -> None:  # noqa: ANN401
        """An agent or session with a NUL, half of a surrogate pair or of another type raises FilterError."""
        calls: list[Callable[[], Any]] = [
            lambda: log.recent(name),
            lambda: log.search(name, "hello"),
            lambda: log.recall_context(name, "hello"),
            lambda: log.sessions(name),
            lambda: anext(log.replay(name)),
            lambda: anext(log.replay("s", agent_id=name)),
            lambda: anext(log.scan(agent_id=name)),
            lambda: anext(log.follow(agent_id=name)),
        ]
        for call in calls:
            with pytest.raises(FilterError, match=r"agent_id|session_id"):
                await call()

    async def test_a_filter_of_another_type_is_refused(self, log: EpisodicLog) -> None:
        """A dict is no Filter, on any read."""
        where: Any = {"user_id": "u"}
        episode = await log.record("a", "s", "user", "hello")
        calls: list[Callable[[], Any]] = [
            lambda: log.recent("a", where=where),
            lambda: log.search("a", "hello", where=where),
            lambda: log.recall_context("a", "hello", where=where),
            lambda: log.sessions("a", where=where),
            lambda: log.get(episode.id, where=where),
            lambda: log.around(episode.id, where=where),
            lambda: anext(log.replay("s", where=where)),
            lambda: anext(log.scan(where=where)),
            lambda: anext(log.follow(where=where)),
        ]
        for call in calls:
            with pytest.raises(FilterError, match="where must be a Filter, not dict"):
                await call()

    async def test_a_closed_log_reads_nothing(self, path: Path) -> None:
        """After closing, and before opening, every read raises ClosedError."""
        log = EpisodicLog.open(path)
        calls: list[Callable[[], Any]] = [
            lambda: log.recent("a"),
            lambda: log.search("a", "hello"),
            lambda: log.recall_context("a", "hello"),
            lambda: log.sessions("a"),
            log.agents,
            lambda: log.get(1),
            lambda: log.around(1),
            lambda: anext(log.replay("s")),
            lambda: anext(log.scan()),
            lambda: anext(log.follow()),
        ]
        for call in calls:
            with pytest.raises(ClosedError, match="not open"):
                await call()
        async with log:
            await log.record("a", "s", "user", "hello")
        for call in calls:
            with pytest.raises(ClosedError, match="closed"):
                await call()

    async def test_a_replay_that_is_paused_while_the_log_closes_is_told(self, path: Path) -> None:
        """What was fetched is given, and then ClosedError, never a short replay."""
        async with EpisodicLog.open(path) as log:
            await log.record_many(drafts(FIRST_LIMIT * 2))
            stream = log.replay("s")
            await anext(stream)
        with pytest.raises(ClosedError), anyio.fail_after(5):
            await all_of(stream)


async def test_a_read_that_is_given_up_leaves_the_next_one_a_free_connection(path: Path, sql: Sql) -> None:
    """The statement under way is stopped, and the pool has all of its connections again."""
    async with EpisodicLog.open(path, settings=Settings(readers=2)) as log:
        await log.record_many([Draft("a", "s", "user", f"order {n}", metadata={"n": n}) for n in range(20_000)])
        for _ in range(5):
            with anyio.move_on_after(0.001):
                await log.sessions("a", Filter(metadata={"nope": 1}))
            with anyio.move_on_after(0.001):
                await log.search("a", "order", where=Filter(metadata={"nope": 1}))
            assert (await log.get(1)).content == "order 0"
        assert log.stats().readers_idle == 2
    assert sql("PRAGMA wal_checkpoint(TRUNCATE)")[0][0] == 0
