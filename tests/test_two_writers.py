"""Two logs that write one file: ids and order hold, and the second costs the first next to nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from episodic import Draft, EpisodicLog

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("foreign", [1, 2, 3])
async def test_calls_keep_their_order_when_another_log_has_written(path: Path, foreign: int) -> None:
    """However many rows came in between, also just as many as the first batch holds, the first call gets lower ids."""
    async with EpisodicLog.open(path) as log, EpisodicLog.open(path) as other:
        for _ in range(5):
            await other.record_many([Draft("other", "t", "user", "in between")] * foreign)
            calls = (log.record("a", "s", "user", f"said {n}", timestamp=NOON) for n in range(6))
            ids = [episode.id for episode in await asyncio.gather(*calls)]
            assert ids == sorted(ids)


async def test_ids_are_in_step_again_after_one_foreign_write(path: Path) -> None:
    """Every receipt names the row that it became, before, at and after the write of another log."""
    async with EpisodicLog.open(path) as log, EpisodicLog.open(path) as other:

        async def stream(name: int) -> None:
            for n in range(40):
                drafts = [Draft("a", f"s{name}", "user", f"{name} {n} {m}") for m in range(20)]
                for draft, episode in zip(drafts, await log.record_many(drafts), strict=True):
                    assert (await log.get(episode.id)).content == draft.content
                if (name, n) == (0, 10):
                    await other.record("b", "t", "user", "in between")

        await asyncio.gather(*map(stream, range(4)))
        assert sum(agent.episodes for agent in await log.agents()) == 4 * 40 * 20 + 1
