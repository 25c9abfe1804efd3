"""More than the disk takes: bounded queues, everybody told, nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from episodic import Draft, EpisodicLog, Filter, QueueFullError, Settings
from tests.conftest import Sql, until

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


async def test_of_200_000_offered_to_a_writer_that_stands_still_each_is_stored_or_refused(path: Path, sql: Sql) -> None:
    """10,000 tasks offer 20 each: the queue keeps its bound, the rest is refused, and a retry stores each once."""
    settings = Settings(submit_timeout=0.5)
    calls = [
        [Draft("a", f"s{task % 500}", "user", "hello", event_id=f"{task}/{n}") for n in range(20)]
        for task in range(10_000)
    ]
    async with EpisodicLog.open(path, settings=settings) as log:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            offered = [asyncio.create_task(log.record_many(drafts)) for drafts in calls]
            await until(lambda: sum(task.done() for task in offered) >= 9_000)
            assert log.stats().queued_rows <= settings.queue_rows
            other.execute("ROLLBACK")
        answers = await asyncio.gather(*offered, return_exceptions=True)
        refused = [drafts for drafts, answer in zip(calls, answers, strict=True) if isinstance(answer, BaseException)]
        again = [drafts for drafts, answer in zip(calls, answers, strict=True) if isinstance(answer, list)]
        assert {type(answer) for answer in answers if isinstance(answer, BaseException)} == {QueueFullError}
        assert sql("SELECT count(*) FROM episodes") == [(200_000 - 20 * len(refused),)]
        # All that were stored and a hundred of the others ask again.
        await asyncio.gather(*map(log.record_many, again + refused[:100]))
    expected = 200_000 - 20 * len(refused[100:])
    assert sql("SELECT count(*), count(DISTINCT event_id) FROM episodes") == [(expected, expected)]


async def test_a_storm_of_cancellations_costs_nobody_else_an_answer(path: Path) -> None:
    """Of 10,000 tasks that record at once two thirds are cancelled: the others are stored, each once, in order."""
    async with EpisodicLog.open(path) as log:
        tasks = [asyncio.create_task(log.record("a", "s", "user", f"{n}", event_id=f"{n}")) for n in range(10_000)]
        for wave in range(1, 3):
            await asyncio.sleep(0)
            for task in tasks[wave::3]:
                task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        kept = [answer for answer in answers if not isinstance(answer, BaseException)]
        assert len(kept) >= 3_333
        assert {type(answer) for answer in answers if isinstance(answer, BaseException)} <= {asyncio.CancelledError}
        numbers = [int(episode.content) async for episode in log.replay("s", agent_id="a")]
        assert len(numbers) == len(set(numbers))
        assert {int(episode.content) for episode in kept} <= set(numbers)
        # Who was cancelled asks again: what had been stored is answered with, what had not is stored now.
        await asyncio.gather(*(log.record("a", "s", "user", f"{n}", event_id=f"{n}") for n in range(10_000)))
        numbers = [int(episode.content) async for episode in log.replay("s", agent_id="a")]
        assert sorted(numbers) == list(range(10_000))


async def test_a_replay_goes_on_behind_an_episode_that_is_erased(log: EpisodicLog) -> None:
    """Ten episodes of one microsecond, and the one at which a reader stopped is erased: it sees each of the rest."""
    await log.record_many([Draft("a", "s", "user", f"{n}", metadata={"n": n}, timestamp=NOON) for n in range(10)])
    seen = []
    async for episode in log.replay("s", agent_id="a"):
        seen.append(episode)
        if len(seen) == 4:
            break
    receipt = await log.erase(session_id="s", where=Filter(metadata={"n": 3}))
    assert receipt.episodes == 1
    rest = [episode.content async for episode in log.replay("s", agent_id="a", after=seen[-1])]
    assert rest == [f"{n}" for n in range(4, 10)]
