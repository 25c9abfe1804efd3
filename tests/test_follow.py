"""Following the log's tail as it grows: no gaps, every process's writes, in the order of ids."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from episodic import ClosedError, Draft, Episode, EpisodicLog, Filter, Settings

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

# Another process that records as many episodes as it is told, one commit each.
OTHER_PROCESS = """
import asyncio, sys
from episodic import EpisodicLog

async def main(path, count):
    async with EpisodicLog.open(path) as log:
        for n in range(count):
            await log.record("b", "other", "user", f"other {n}")

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def take(stream: AsyncIterator[Episode], count: int) -> list[Episode]:
    """Take the next few episodes, and fail rather than wait for ever."""
    with anyio.fail_after(20):
        return [await anext(stream) for _ in range(count)]


async def in_another_process(path: Path, count: int) -> None:
    """Record from another process, and wait until it is done."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", OTHER_PROCESS, str(path), str(count))
    assert await process.wait() == 0


async def test_following_from_zero_gives_everything_in_the_order_of_ids(log: EpisodicLog) -> None:
    """`after=0` starts with the first episode, whatever its time."""
    drafts = [Draft("a", "s", "user", f"{n}", timestamp=NOON - timedelta(seconds=n)) for n in range(700)]
    recorded = await log.record_many(drafts)
    assert await take(log.follow(after=0), 700) == recorded


async def test_following_from_an_id_starts_behind_it(log: EpisodicLog) -> None:
    """`after` an id gives what follows it, recorded before the call or after."""
    recorded = await log.record_many([Draft("a", "s", "user", f"{n}") for n in range(5)])
    stream = log.follow(after=recorded[2].id)
    assert await take(stream, 2) == recorded[3:]
    later = await log.record("a", "s", "user", "later")
    assert await take(stream, 1) == [later]


async def test_following_from_an_id_to_come_waits_for_it(log: EpisodicLog) -> None:
    """Nothing up to that id is given, even if it is recorded only later."""
    stream = log.follow(after=3)
    waiting = asyncio.ensure_future(take(stream, 2))
    recorded = [await log.record("a", "s", "user", f"{n}") for n in range(5)]
    assert await waiting == recorded[3:]


async def test_following_from_now_gives_only_what_comes(log: EpisodicLog) -> None:
    """Without `after` nothing that was there at the start is given, and nothing that comes is missed."""
    await log.record_many([Draft("a", "s", "user", "old")] * 300)
    waiting = asyncio.ensure_future(take(log.follow(), 50))
    recorded: list[Episode] = []
    while not waiting.done():
        recorded.append(await log.record("a", "s", "user", f"{len(recorded)}"))
    followed = await waiting
    begin = followed[0].id - recorded[0].id
    assert begin >= 0
    assert followed == recorded[begin : begin + 50]


async def test_there_are_no_gaps_while_many_tasks_record(log: EpisodicLog) -> None:
    """Each episode that a hundred tasks record is given once, in the order of ids, to each of several followers."""

    async def work(number: int) -> None:
        for n in range(10):
            await log.record(f"agent{number % 3}", f"s{number}", "user", f"{n}")

    followers = [asyncio.ensure_future(take(log.follow(after=0), 1000)) for _ in range(3)]
    await asyncio.gather(*(work(number) for number in range(100)))
    for followed in await asyncio.gather(*followers):
        assert [e.id for e in followed] == list(range(1, 1001))


async def test_what_another_process_writes_is_seen(log: EpisodicLog, path: Path) -> None:
    """A follower that waits gets the episodes of another process, between those of its own, without a gap."""
    waiting = asyncio.ensure_future(take(log.follow(after=0), 40))
    writing = asyncio.ensure_future(in_another_process(path, 20))
    for n in range(20):
        await log.record("a", "s", "user", f"own {n}")
        await asyncio.sleep(0.01)
    await writing
    followed = await waiting
    assert [e.id for e in followed] == list(range(1, 41))
    assert [e.content for e in followed if e.agent_id == "b"] == [f"other {n}" for n in range(20)]
    assert [e.content for e in followed if e.agent_id == "a"] == [f"own {n}" for n in range(20)]


async def test_a_log_opened_for_reading_only_can_be_followed(log: EpisodicLog, path: Path) -> None:
    """Who cannot write sees what another connection writes, as it comes."""
    async with EpisodicLog.open(path, read_only=True) as reading:
        stream = reading.follow(after=0)
        for n in range(3):
            recorded = await log.record("a", "s", "user", f"{n}")
            assert await take(stream, 1) == [recorded]


@pytest.mark.parametrize(
    ("agent_id", "where", "wanted"),
    [
        ("a", None, {0, 1, 3, 4}),
        (None, Filter(user_id="u1"), {1, 2, 4}),
        ("a", Filter(user_id="u1", metadata={"n": 4}), {4}),
        (None, Filter(session_id="s0", roles=["tool"]), {0, 3}),
    ],
)
async def test_a_filter_holds_for_what_is_followed(
    log: EpisodicLog, agent_id: str | None, where: Filter | None, wanted: set[int]
) -> None:
    """Only episodes in scope are given, of those that were there and of those that come."""

    async def round_of_five() -> list[Episode]:
        kinds = [("a", "s0", "tool", "u0"), ("a", "s1", "user", "u1"), ("b", "s0", "user", "u1")]
        kinds += [("a", "s0", "tool", "u0"), ("a", "s1", "tool", "u1")]
        return [
            await log.record(agent, session, role, f"{n}", user_id=user, metadata={"n": n})
            for n, (agent, session, role, user) in enumerate(kinds)
        ]

    stream = log.follow(after=0, agent_id=agent_id, where=where)
    for _ in range(3):
        recorded = await round_of_five()
        assert await take(stream, len(wanted)) == [e for n, e in enumerate(recorded) if n in wanted]


async def test_a_filter_that_nothing_passes_does_not_hold_up_the_others(log: EpisodicLog) -> None:
    """However much there is out of scope, what comes within it is given."""
    stream = log.follow(after=0, agent_id="rare")
    waiting = asyncio.ensure_future(take(stream, 1))
    await log.record_many([Draft("common", "s", "user", "hello")] * 2_000)
    recorded = await log.record("rare", "s", "user", "here")
    assert await waiting == [recorded]


async def test_a_follower_that_waits_is_told_that_the_log_closes(path: Path) -> None:
    """Closing ends a waiting follower with ClosedError, not with a silent end."""
    async with EpisodicLog.open(path) as log:
        recorded = await log.record("a", "s", "user", "hello")
        stream = log.follow(after=0)
        assert await take(stream, 1) == [recorded]
        waiting = asyncio.ensure_future(take(stream, 1))
        await asyncio.sleep(0)
    with pytest.raises(ClosedError):
        await waiting


async def test_a_follower_that_works_is_told_that_the_log_closed(path: Path) -> None:
    """A follower that was busy while the log closed gets ClosedError when it asks for more."""
    async with EpisodicLog.open(path) as log:
        await log.record("a", "s", "user", "hello")
        stream = log.follow(after=0)
        await take(stream, 1)
    with pytest.raises(ClosedError):
        await take(stream, 1)


async def test_a_reader_of_a_read_only_log_is_told_that_it_closes(log: EpisodicLog, path: Path) -> None:
    """The same without a writer."""
    async with EpisodicLog.open(path, read_only=True) as reading:
        waiting = asyncio.ensure_future(take(reading.follow(), 1))
        await asyncio.sleep(0)
    with pytest.raises(ClosedError):
        await waiting


async def test_a_cancelled_follower_leaves_the_log_as_it_was(path: Path) -> None:
    """With a pool of one connection, a follower cancelled at any point gives it back."""
    async with EpisodicLog.open(path, settings=Settings(readers=1)) as log:
        for turns in range(20):
            task = asyncio.create_task(take(log.follow(), 1))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            recorded = await log.record("a", "s", "user", f"{turns}")
            assert await log.recent("a", limit=1) == [recorded]


@pytest.mark.parametrize("after", [-1, True, "1", 2**63, 1.0])
async def test_a_place_to_start_that_is_no_id_is_refused(log: EpisodicLog, after: Any) -> None:  # noqa: ANN401
    """A negative number or another type raises FilterError rather than follow from somewhere."""
    with pytest.raises(ValueError, match="after must be a whole number of at least 0"):
        await take(log.follow(after=after), 1)
