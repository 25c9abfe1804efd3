"""What is taken out of a log is in no answer any more, and what stays is as if the rest had never been there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodic import (
    ClosedError,
    Draft,
    Episode,
    EpisodicLog,
    Filter,
    FilterError,
    NotFoundError,
    ReadOnlyError,
    Settings,
)
from episodic.maintenance import diagnose
from episodic.sqlite.connect import place
from episodic.sqlite.store import SqliteStore
from tests.conftest import Sql, until
from tests.test_healing import intact
from tests.test_scope import NAMES, all_of

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
LEFT = "SELECT (SELECT count(*) FROM episodes), (SELECT count(*) FROM leaving), (SELECT unclean FROM removal_state)"


def at(n: int) -> datetime:
    """Return the n-th minute."""
    return NOON + timedelta(minutes=n)


async def withdraw(path: Path, ids: Sequence[int]) -> None:
    """Withdraw episodes of a closed log and stop there, as a process does that is killed before it removes them."""
    store = await SqliteStore.open(place(path, read_only=False), Settings(), lambda _event: None)
    assert await store.withdraw(list(ids)) == len(ids)
    await store.aclose()


def without_ids(episodes: Sequence[Episode]) -> list[dict[str, Any]]:
    """Return what episodes are but for their place in the log."""
    return [{name: value for name, value in asdict(one).items() if name != "id"} for one in episodes]


@pytest.fixture(params=["fts", "like"])
async def halfway(path: Path, request: pytest.FixtureRequest) -> AsyncIterator[EpisodicLog]:
    """A log opened for reading in which the odd ones of twenty episodes are withdrawn and not removed yet."""
    if request.param == "like":
        request.getfixturevalue("without_fts5")
    async with EpisodicLog.open(path) as log:
        await log.record_many(
            Draft("a", f"s{n // 10}", "user", f"refund {n}", user_id=f"u{n % 2}", event_id=f"e{n}", timestamp=at(n))
            for n in range(20)
        )
    await withdraw(path, range(2, 21, 2))
    async with EpisodicLog.open(path, read_only=True) as log:
        yield log


Question = Callable[[EpisodicLog], Awaitable[Sequence[Episode]]]


async def searched(log: EpisodicLog) -> list[Episode]:
    """Search for what all episodes say."""
    return [hit.episode for hit in (await log.search("a", "refund", 99)).hits]


async def searched_for_the_gone(log: EpisodicLog) -> list[Episode]:
    """Search for what only a withdrawn episode says, which leaves its neighbours."""
    return [hit.episode for hit in (await log.search("a", "refund 7", 99)).hits]


async def recalled(log: EpisodicLog) -> list[Episode]:
    """Recall by words."""
    return [item.episode for item in (await log.recall_context("a", "refund", 99)).items]


async def recalled_for_nothing(log: EpisodicLog) -> list[Episode]:
    """Recall by time alone."""
    return [item.episode for item in (await log.recall_context("a", "zebra", 99)).items]


async def replayed(log: EpisodicLog) -> list[Episode]:
    """Replay both sessions."""
    return [*await all_of(log.replay("s0")), *await all_of(log.replay("s1", agent_id="a"))]


async def followed(log: EpisodicLog) -> list[Episode]:
    """Follow from the beginning to the last that stays."""
    seen: list[Episode] = []
    async with asyncio.timeout(10):
        async for episode in log.follow(0):
            seen.append(episode)
            if episode.id == 19:
                break
    return seen


WAYS: Mapping[str, Question] = {
    "recent": lambda log: log.recent("a", 99),
    "recent behind": lambda log: log.recent("a", 99, where=Filter(until=at(99))),
    "scan": lambda log: all_of(log.scan()),
    "replay": replayed,
    "follow": followed,
    "search": searched,
    "search for the gone": searched_for_the_gone,
    "recall": recalled,
    "recall by time": recalled_for_nothing,
    "around": lambda log: log.around(11, 5, 5),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_what_is_withdrawn_is_in_no_answer(halfway: EpisodicLog, way: Question) -> None:
    """Its row and its words are still in the file, and nothing that is asked brings it."""
    found = await way(halfway)
    assert len(found) >= 5
    assert {episode.user_id for episode in found} == {"u0"}


async def test_what_is_withdrawn_is_not_counted_either(halfway: EpisodicLog) -> None:
    """Neither among the sessions nor among an agent's episodes, and by its id it is not found."""
    assert [(s.session_id, s.episodes, s.user_id) for s in await halfway.sessions("a")] == [
        ("s1", 5, "u0"),
        ("s0", 5, "u0"),
    ]
    assert await halfway.sessions("a", Filter(user_id="u1")) == []
    [agent] = await halfway.agents()
    assert (agent.episodes, agent.sessions, agent.first, agent.last) == (10, 2, at(0), at(18))
    assert (await halfway.search("a", "refund", 3)).total <= 10
    for call in (halfway.get(8), halfway.around(8)):
        with pytest.raises(NotFoundError):
            await call
    assert await halfway.retain(older_than=at(99), dry_run=True) == 10


async def test_what_was_left_is_removed_after_the_next_open(path: Path, sql: Sql) -> None:
    """A process that was killed while it removed is followed by one that goes on, unasked."""
    async with EpisodicLog.open(path) as log:
        await log.record_many(Draft("a", "s", "user", f"refund {n}") for n in range(300))
    await withdraw(path, range(1, 201))
    assert sql(LEFT) == [(300, 200, 1)]
    [warning] = [one for one in await diagnose(path) if one.name == "removed"]
    assert warning.state == "warning"
    assert "200 episodes are still to be removed" in warning.text
    async with EpisodicLog.open(path):
        await until(lambda: sql(LEFT) == [(100, 0, 1)])
    assert intact(path)
    states = {one.name: one.state for one in await diagnose(path, deep=True)}
    # Bytes may still be there.
    assert (states["counts"], states["index"], states["removed"]) == ("ok", "ok", "warning")


async def test_an_event_id_is_free_again_once_its_episode_is_withdrawn(path: Path) -> None:
    """What comes again under it, with whatever body, is another event."""
    async with EpisodicLog.open(path) as log:
        [first] = await log.record_many([Draft("a", "s", "user", "before", event_id="e1", user_id="u")])
        await log.erase(user_id="u")
        again = await log.record("a", "s", "user", "after", event_id="e1")
        assert again.id != first.id
        assert await log.recent("a") == [again]


drafts = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("st"),
        st.sampled_from([None, "u", "v"]),
        st.sampled_from(["refund late", "order ORD-17 is here", "謝謝", "the refund for ORD-17"]),
        st.integers(0, 5),
        st.booleans(),
    ),
    min_size=1,
    max_size=24,
)


async def answers(log: EpisodicLog) -> dict[str, object]:
    """Ask a log for everything but ids."""
    answered: dict[str, object] = {"agents": await log.agents()}
    for agent_id in "ab":
        answered[f"sessions {agent_id}"] = await log.sessions(agent_id)
        for user_id in (None, "u"):
            where = Filter(user_id=user_id)
            answered[f"recent {agent_id} {user_id}"] = without_ids(await log.recent(agent_id, 99, where=where))
            for text in ("refund", "ORD-17 late"):
                found = await log.search(agent_id, text, 99, where)
                answered[f"search {agent_id} {user_id} {text}"] = (
                    without_ids([hit.episode for hit in found.hits]),
                    [hit.score for hit in found.hits],
                    found.total,
                )
                recalled_ = await log.recall_context(agent_id, text, 99, where)
                answered[f"recall {agent_id} {user_id} {text}"] = without_ids([i.episode for i in recalled_.items])
    return answered


async def made(path: Path, rows: Sequence[tuple[str, str, str | None, str, int, bool]]) -> EpisodicLog:
    """Open a log with these episodes in it."""
    log = await EpisodicLog.open(path).__aenter__()
    await log.record_many(
        Draft(agent, session, "user", text, user_id=user, metadata={"go": True} if goes else {}, timestamp=at(minute))
        for agent, session, user, text, minute, goes in rows
    )
    for agent, session in sorted({row[:2] for row in rows}):
        if session == "s":
            await log.resolve(agent, session, "success")
    return log


@settings(max_examples=25, deadline=None)
@given(rows=drafts)
async def test_what_stays_is_as_if_the_rest_had_never_been(
    rows: list[tuple[str, str, str | None, str, int, bool]],
) -> None:
    """Every answer, count and score of a log from which some were erased is that of one that never held them."""
    kept = [row for row in rows if not row[5]]
    with TemporaryDirectory() as folder:
        log = await made(Path(folder) / "all.db", rows)
        never = await made(Path(folder) / "kept.db", kept)
        try:
            # What was asked before may be remembered, and must not be after.
            await answers(log)
            receipt = await log.erase(where=Filter(metadata={"go": True}))
            assert (receipt.state, receipt.episodes) == ("done", len(rows) - len(kept))
            assert await answers(log) == await answers(never)
        finally:
            await log.aclose()
            await never.aclose()
        assert intact(Path(folder) / "all.db")


async def test_retention_takes_what_is_older_and_nothing_else(path: Path, sql: Sql) -> None:
    """By an instant or an age, of one agent or of all, within a filter; a dry run only counts."""
    async with EpisodicLog.open(path) as log:
        await log.record_many(Draft(f"a{n % 2}", "s", "user", f"refund {n}", timestamp=at(n)) for n in range(20))
        await log.record("a0", "s", "user", "today")
        assert await log.retain(older_than=at(10), agent_id="a0", dry_run=True) == 5
        assert sql("SELECT count(*) FROM episodes") == [(21,)]
        assert await log.retain(older_than=at(10), agent_id="a0") == 5
        assert [e.content for e in await log.recent("a0", 99)][-1] == "refund 10"
        assert len(await log.recent("a1", 99)) == 10
        assert await log.retain(older_than=at(99), where=Filter(until=at(2))) == 1
        assert await log.retain(older_than=timedelta(days=1), where=Filter(session_id="s", roles=["tool"])) == 0
        assert await log.retain(older_than=timedelta(days=1)) == 14
        assert await log.retain(older_than=timedelta.max) == 0
        assert [e.content async for e in log.scan()] == ["today"]
        assert await log.retain(older_than=timedelta()) == 1
        assert await log.agents() == []
    assert sql("SELECT count(*) FROM agents") == sql("SELECT count(*) FROM sessions") == [(0,)]
    assert intact(path)


@pytest.mark.parametrize("older_than", [None, 90, "90d", timedelta(days=-1), datetime(2024, 5, 1), float("nan")])  # noqa: DTZ001
async def test_an_age_that_is_none_removes_nothing(log: EpisodicLog, older_than: Any) -> None:  # noqa: ANN401
    """What cannot be compared is refused before anything is removed."""
    await log.record("a", "s", "user", "x")
    with pytest.raises(FilterError, match="older_than must be"):
        await log.retain(older_than=older_than)
    assert len(await log.recent("a")) == 1


async def test_agents_users_and_sessions_of_similar_names_stay(path: Path) -> None:
    """Of look-alike names exactly the one is removed, by agent, by user and by session."""
    async with EpisodicLog.open(path) as log:
        for kind in ("agent", "user", "session"):
            for name in NAMES:
                own = {"agent": "a", "user": "u", "session": "s"} | {kind: name}
                await log.record(own["agent"], own["session"], "user", f"by {kind} {name}", user_id=own["user"])
        left = {episode.content async for episode in log.scan()}
        for name in NAMES:
            gone = f"by agent {name}"
            await log.retain(older_than=timedelta(), agent_id=name, where=Filter(user_id="u", session_id="s"))
            left -= {gone} | ({f"by {kind} {kind[0]}" for kind in ("user", "session")} if name == "a" else set())
            assert {episode.content async for episode in log.scan()} == left
        for name in NAMES:
            await log.retain(older_than=timedelta(), where=Filter(user_id=name))
            left -= {f"by user {name}"}
            assert {episode.content async for episode in log.scan()} == left
        for name in NAMES:
            await log.retain(older_than=timedelta(), where=Filter(session_id=name))
            left -= {f"by session {name}"}
            assert {episode.content async for episode in log.scan()} == left
        assert left == set()


async def test_what_is_recorded_meanwhile_stays(log: EpisodicLog) -> None:
    """A removal takes what was there when it was asked for, and calls that were queued before it."""
    queued = [asyncio.create_task(log.record("a", "s", "user", f"before {n}", user_id="u")) for n in range(50)]
    await asyncio.sleep(0)
    removal = asyncio.create_task(log.retain(older_than=timedelta(), where=Filter(user_id="u")))
    recorded: list[Episode] = []
    while not removal.done():
        recorded.append(await log.record("a", "s", "user", f"meanwhile {len(recorded)}", user_id="u"))
    gone = await removal
    await asyncio.gather(*queued)
    left = [episode async for episode in log.scan()]
    assert len(left) + gone == 50 + len(recorded)
    assert not [episode for episode in left if episode.content.startswith("before")]


async def test_removals_at_the_same_time_share_the_work(path: Path, sql: Sql) -> None:
    """Retentions and erasures of overlapping scopes all end, and count each episode once."""
    async with EpisodicLog.open(path) as log:
        await log.record_many(Draft("a", f"s{n % 7}", "user", f"refund {n}", user_id=f"u{n % 3}") for n in range(700))
        receipts = await asyncio.gather(
            log.erase(user_id="u1"), log.erase(session_id="s1"), log.erase(agent_id="a", where=Filter(user_id="u1"))
        )
        assert {receipt.state for receipt in receipts} == {"done"}
        counts = await asyncio.gather(*(log.retain(older_than=timedelta(), agent_id="a") for _ in range(4)))
        assert sum(counts) == 700 - len({n for n in range(700) if n % 3 == 1 or n % 7 == 1})
    assert sql(LEFT) == [(0, 0, 1)]
    assert intact(path)


@pytest.mark.parametrize("after", [0, 0.005, 0.02, 0.05, 0.2])
async def test_a_removal_that_is_cancelled_leaves_a_whole_log(path: Path, after: float) -> None:
    """Cancelled at any moment, what was withdrawn is removed later on, what was not stays, and the log goes on."""
    async with EpisodicLog.open(path) as log:
        await log.record_many(Draft("a", "s", "user", f"refund {n}", user_id="u") for n in range(2_000))
        removal = asyncio.create_task(log.erase(user_id="u"))
        await asyncio.sleep(after)
        removal.cancel()
        await asyncio.wait([removal])
        await log.record("a", "s", "user", "and on")
        left = [episode async for episode in log.scan()]
        assert left[-1].content == "and on"
        assert (await log.agents())[0].episodes == len(left)
        assert (await log.erase(user_id="u")).state == "done"
        assert [episode.content async for episode in log.scan()] == ["and on"]
    assert intact(path)


async def test_closing_in_the_middle_of_a_removal_is_told_and_made_good(path: Path, sql: Sql) -> None:
    """Whoever waits gets ClosedError, the next open removes what was withdrawn, and the next call the rest."""
    async with EpisodicLog.open(path) as log:
        await log.record_many(Draft("a", "s", "user", f"refund {n}") for n in range(5_000))
        removal = asyncio.create_task(log.retain(older_than=timedelta()))
        await until(lambda: sql("SELECT count(*) FROM leaving") != [(0,)])
        await log.aclose()
        with pytest.raises(ClosedError, match=r"once it is opened again|open it again and repeat"):
            await removal
    async with EpisodicLog.open(path) as log:
        left = await log.recent("a", 9_999)
        assert await log.retain(older_than=timedelta()) == len(left)
    assert sql(LEFT) == [(0, 0, 1)]


async def test_a_log_that_is_only_read_removes_nothing(halfway: EpisodicLog) -> None:
    """Retention and erasure are refused; a dry run is not."""
    for call in (halfway.retain(older_than=timedelta()), halfway.erase(user_id="u0")):
        with pytest.raises(ReadOnlyError):
            await call
    assert (await halfway.erase(user_id="u0", dry_run=True)).episodes == 10
    assert len(await halfway.recent("a", 99)) == 10
