"""Load on a log: many tasks that record, a writer at saturation, and an event loop that has other work to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import cycle, islice
from time import perf_counter

from episodic import Draft, EpisodicLog

__all__ = ["half_busy", "offered", "record_all", "saturated", "spread_over"]

# What a web framework does in one go: parse a body, render a template.
BUSY_SECONDS = 0.002

SATURATING_TASKS = 1_000

OFFER_EVERY = 0.005

# Until the batches have their full size.
RAMP_SECONDS = 0.2


async def spread_over(tasks: int, drafts: Iterable[Draft], write: Callable[[Draft], Awaitable[object]]) -> None:
    """Let tasks share the drafts; each writes one, waits until it is acknowledged, and takes the next."""
    left = iter(drafts)

    async def work() -> None:
        for draft in left:
            await write(draft)

    async with asyncio.TaskGroup() as group:
        for _ in range(tasks):
            group.create_task(work())


async def record_all(log: EpisodicLog, drafts: Iterable[Draft], tasks: int) -> list[float]:
    """Record drafts from many tasks, as the conversations of a backend do.

    Returns:
        The seconds that each call took.
    """
    seconds: list[float] = []

    async def timed(draft: Draft) -> None:
        begun = perf_counter()
        await record(log, draft)
        seconds.append(perf_counter() - begun)

    await spread_over(tasks, drafts, timed)
    return seconds


async def record(log: EpisodicLog, draft: Draft) -> None:
    """Record one draft by itself."""
    await log.record(
        draft.agent_id,
        draft.session_id,
        draft.role,
        draft.content,
        user_id=draft.user_id,
        author=draft.author,
        outcome=draft.outcome,
        metadata=draft.metadata,
        timestamp=draft.timestamp,
        event_id=draft.event_id,
    )


@asynccontextmanager
async def offered(log: EpisodicLog, drafts: Sequence[Draft], rate: int) -> AsyncIterator[None]:
    """Record so many drafts a second, evenly, while the block runs, whether the ones before are acknowledged or not."""

    async def offer() -> None:
        begun, sent, left = perf_counter(), 0, cycle(drafts)
        async with asyncio.TaskGroup() as group:
            while True:
                due = int((perf_counter() - begun) * rate)
                for draft in islice(left, due - sent):
                    group.create_task(record(log, draft))
                sent = due
                await asyncio.sleep(OFFER_EVERY)

    async with _beside(offer()):
        yield
    # Behind all that was queued.
    await log.record_many(drafts[:1])


@asynccontextmanager
async def saturated(log: EpisodicLog, drafts: Sequence[Draft]) -> AsyncIterator[None]:
    """Keep the writer as busy as it can be while the block runs; afterwards it is idle again."""
    async with _beside(record_all(log, cycle(drafts), SATURATING_TASKS)):
        await asyncio.sleep(RAMP_SECONDS)
        yield
    # Behind all that was queued.
    await log.record_many(drafts[:1])


@asynccontextmanager
async def half_busy() -> AsyncIterator[None]:
    """Keep the event loop's thread busy with other work for half of the time that the block takes."""
    async with _beside(_work_half_of_the_time()):
        yield


@asynccontextmanager
async def _beside(work: Awaitable[object]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _work_half_of_the_time() -> None:
    """Work whenever less than half of the time so far was work: turns that come late are made up for."""
    begun, worked = perf_counter(), 0.0
    while True:
        now = perf_counter()
        if worked < (now - begun) / 2:
            while perf_counter() < now + BUSY_SECONDS:
                pass
            worked += perf_counter() - now
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(BUSY_SECONDS)
