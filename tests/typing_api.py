"""The public types, pinned: never run, only read by mypy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, assert_never, assert_type

from episodic import (
    AgentSummary,
    ClosedError,
    ConflictError,
    Context,
    ContextItem,
    Draft,
    Episode,
    EpisodicError,
    EpisodicLog,
    Erasure,
    Filter,
    Hit,
    SearchResult,
    Session,
    Settings,
    Stats,
)
from episodic.events import BatchCommitted, Checkpointed, Event, IndexHealed, QueueFull, SlowBatch, WalGrown
from episodic.model import JSON


async def opening() -> None:
    """A path may be text or a Path; the settings have defaults."""
    assert_type(EpisodicLog.open("support.db"), EpisodicLog)
    assert_type(EpisodicLog.open(Path("support.db"), settings=Settings(), read_only=True), EpisodicLog)
    async with EpisodicLog.open("support.db") as log:
        assert_type(log, EpisodicLog)
        assert_type(log.stats(), Stats)
        assert_type(log.stats().mode, Literal["fts", "like"])


async def listening() -> None:
    """What is told is one of a closed set of records."""

    def hear(event: Event) -> None:
        match event:
            case BatchCommitted() | SlowBatch():
                assert_type(event.rows, int)
                assert_type(event.seconds, float)
            case QueueFull():
                assert_type(event.queued_rows, int)
            case Checkpointed() | WalGrown():
                assert_type(event.wal_bytes, int)
            case IndexHealed():
                assert_type(event.episodes, int)
            case _:
                assert_never(event)

    async with EpisodicLog.open("support.db", on_event=hear):
        pass


async def writing(log: EpisodicLog) -> None:
    """What is recorded comes back as it is held."""
    metadata: dict[str, JSON] = {"intent": "billing", "nested": {"list": [1, 2.5, None, True]}}
    episode = await log.record(
        "support-bot",
        "sess-123",
        "user",
        "I was charged twice",
        user_id="u42",
        author="billing desk",
        outcome=None,
        metadata=metadata,
        timestamp=datetime.now(UTC),
        event_id="msg-9001",
    )
    assert_type(episode, Episode)
    assert_type(await log.record_many([Draft("a", "s", "user", "hello", metadata={"k": 1})]), list[Episode])
    assert_type(await log.resolve("support-bot", "sess-123", "success"), None)


async def removing(log: EpisodicLog) -> None:
    """What is removed is counted; an erasure gives a receipt."""
    assert_type(await log.retain(older_than=timedelta(days=90), agent_id="a", where=Filter(), dry_run=True), int)
    assert_type(await log.retain(older_than=datetime.now(UTC)), int)
    receipt = await log.erase(user_id="u42", session_id="s", agent_id="a", where=Filter(), dry_run=False)
    assert_type(receipt, Erasure)
    assert_type(receipt.state, Literal["counted", "done", "pending"])
    assert_type(receipt.reason, str | None)
    assert_type((receipt.episodes, receipt.looked_at), tuple[int, int])


async def reading(log: EpisodicLog, episode: Episode) -> None:
    """Streams are async iterators, answers are lists, and a search says how it went."""
    assert_type(log.replay("sess-123", agent_id="a", where=Filter(), after=episode), AsyncIterator[Episode])
    assert_type(log.scan(agent_id="a", where=Filter(), after=episode.id), AsyncIterator[Episode])
    assert_type(log.follow(after=episode.id, agent_id="a", where=Filter()), AsyncIterator[Episode])
    assert_type(log.follow(None), AsyncIterator[Episode])
    async for one in log.follow():
        assert_type(one, Episode)
    assert_type(await log.recent("a", 20, 0.5, Filter(user_id="u42"), before=episode), list[Episode])
    assert_type(await log.search("a", "why?", 10, Filter(roles=["user"])), SearchResult)
    assert_type(await log.recall_context("a", "why?", 5, Filter(metadata={"paid": True}), prefer="success"), Context)
    assert_type(await log.sessions("a", Filter(), 20), list[Session])
    assert_type(await log.agents(), list[AgentSummary])
    assert_type(await log.get(episode.id, where=Filter()), Episode)
    assert_type(await log.around(episode.id, before=2, after=2, where=Filter()), list[Episode])


def values(episode: Episode, result: SearchResult, context: Context, session: Session) -> None:
    """The fields of what comes back."""
    assert_type(episode.id, int)
    assert_type(episode.user_id, str | None)
    assert_type(episode.author, str | None)
    assert_type(episode.timestamp, datetime)
    assert_type(episode.metadata, dict[str, JSON])
    assert_type(episode.archived, bool)
    assert_type(result.hits, tuple[Hit, ...])
    assert_type(result.mode, Literal["fts", "like"])
    assert_type(result.words, tuple[str, ...])
    assert_type(result.exhaustive, bool)
    assert_type(result.hits[0].matched, tuple[str, ...])
    assert_type(result.hits[0].reasons.nearby, float)
    assert_type(result.terms[0].use, Literal["candidates", "beside", "unused", "absent"])
    assert_type(result.explain(), str)
    assert_type(context.items, tuple[ContextItem, ...])
    assert_type(context.items[0].relevance_rank, int | None)
    assert_type(context.items[0].recency_rank, int | None)
    assert_type(context.render(800), str)
    assert_type(context.render(800, len), str)
    assert_type(session.last, datetime)
    assert_type(session.outcome, str | None)


def errors(conflict: ConflictError) -> EpisodicError:
    """One base for all; a conflict says with what."""
    assert_type(conflict.event_id, str)
    assert_type(conflict.episode_id, int | None)
    return ClosedError("closed")


async def mistakes(log: EpisodicLog, episode: Episode) -> None:
    """What the type checker refuses."""
    Filter(customer="u42")  # type: ignore[call-arg]
    Filter(metadata={"nested": {"a": 1}})  # type: ignore[dict-item]
    Draft("a", "s", "user", "hello", "u42")  # type: ignore[call-arg]
    episode.content = "other"  # type: ignore[misc]
    await log.recent("a", where={"user_id": "u42"})  # type: ignore[arg-type]
    await log.record("a", "s", "user", b"bytes")  # type: ignore[arg-type]
    log.replay("s", after=episode.id)  # type: ignore[arg-type]
