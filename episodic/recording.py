"""The recording half of a log: drafts in, receipts out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from episodic.codec import draft_metadata, encode_row, episode_of, from_micros, to_micros
from episodic.errors import DraftError, NotFoundError, shown
from episodic.model import JSON, OUTCOMES, Draft, Episode, check_comparable, is_outcome
from episodic.ports import Append, Appended, Resolve
from episodic.records import quick
from episodic.writer import Writer

__all__ = ["Recording"]

_draft = quick(Draft)


class Recording(ABC):
    """The recording half of a log."""

    @abstractmethod
    def _writing(self) -> Writer:
        """Return the writer; raises when the log is not open for writing here."""

    async def record(
        self,
        agent_id: str,
        session_id: str,
        role: str,
        content: str,
        *,
        user_id: str | None = None,
        author: str | None = None,
        outcome: str | None = None,
        metadata: Mapping[str, JSON] | None = None,
        timestamp: datetime | None = None,
        event_id: str | None = None,
    ) -> Episode:
        """Record one episode; returns once it is committed.

        The arguments are those of `Draft`. When this raises or is cancelled without saying that the draft was
        rejected, whether it is stored is unknown: call again with the same `event_id`, which is always safe.

        Returns:
            The episode as the log holds it; for a repeated `event_id` with the same body, the first one.

        Raises:
            DraftError: a value cannot be recorded; nothing was queued.
            ConflictError: the event id is taken by another body.
            QueueFullError: no room in the queue within `Settings.submit_timeout`.
            ClosedError: the log is closed.
            StorageError: the database failed.
        """
        draft = _draft(
            agent_id,
            session_id,
            role,
            content,
            user_id=user_id,
            author=author,
            outcome=outcome,
            metadata=metadata,
            timestamp=timestamp,
            event_id=event_id,
        )
        writer = self._writing()
        now = writer.now()
        made = _encoded(draft, now)
        row = made[0]
        clock = now if timestamp is None else 0
        appended = await writer.append(Append((row,), len(row), clock, event_id is not None))
        return _receipt(draft, made, 0, appended)

    async def record_many(self, drafts: Iterable[Draft]) -> list[Episode]:
        """Record several episodes in one transaction: all or none, in order.

        Args:
            drafts: the episodes; a few thousand at a time write fastest, and each takes about 15 microseconds of the
                event loop in one go.

        Returns:
            The episodes in the order of the drafts.

        Raises:
            DraftError: a draft cannot be recorded; the message says which one, and none was queued.
            ConflictError: one event id is taken by another body; none is stored.
            QueueFullError: no room in the queue within `Settings.submit_timeout`.
            ClosedError: the log is closed.
            StorageError: the database failed.
        """
        if not isinstance(drafts, Iterable):
            msg = f"drafts must be several Drafts, not {shown(drafts)}"
            raise DraftError(msg)
        checked = list(drafts)
        for place, draft in enumerate(checked):
            if not isinstance(draft, Draft):
                msg = f"draft {place + 1} of {len(checked)} is a {type(draft).__name__}, not a Draft"
                raise DraftError(msg)
        if not checked:
            return []
        writer = self._writing()
        now = writer.now()
        made = [_encoded(draft, now) for draft in checked]
        rows = [row for row, _, _ in made]
        clock = now if any(draft.timestamp is None for draft in checked) else 0
        has_events = any(draft.event_id is not None for draft in checked)
        appended = await writer.append(Append(rows, sum(map(len, rows)), clock, has_events))
        return [
            _receipt(draft, one, line, appended) for line, (draft, one) in enumerate(zip(checked, made, strict=True))
        ]

    async def resolve(self, agent_id: str, session_id: str, outcome: str | None) -> None:
        """Record how a session ended, known only later; None takes it back.

        Args:
            agent_id: the agent.
            session_id: its session.
            outcome: "success", "failure", "partial" or None.

        Raises:
            DraftError: there is no such outcome.
            FilterError: an id is no text.
            NotFoundError: the agent has no such session.
            QueueFullError: no room in the queue within `Settings.submit_timeout`.
            ClosedError: the log is closed.
            StorageError: the database failed.
        """
        check_comparable("agent_id", agent_id)
        check_comparable("session_id", session_id)
        if outcome is not None and not is_outcome(outcome):
            msg = f"outcome must be one of {', '.join(sorted(OUTCOMES))} or None, not {shown(outcome)}"
            raise DraftError(msg)
        if not await self._writing().resolve(Resolve(agent_id, session_id, outcome)):
            msg = f"agent {agent_id!r} has no session {session_id!r}; check both ids"
            raise NotFoundError(msg)


# A draft on its way: the row for the store, and the time and metadata of its receipt.
_Encoded: TypeAlias = tuple[bytes, datetime, dict[str, JSON]]


def _encoded(draft: Draft, now: int) -> _Encoded:
    """Encode a draft, which happened now, in microseconds, unless it says when."""
    text, metadata = draft_metadata(draft)
    if draft.timestamp is None:
        return encode_row(draft, now, text), from_micros(now), metadata
    given = draft.timestamp.astimezone(UTC)
    return encode_row(draft, to_micros(given), text), given, metadata


def _receipt(draft: Draft, made: _Encoded, line: int, appended: Appended) -> Episode:
    """Build the episode that a row became, or the one that its event id had made before."""
    _, instant, metadata = made
    if line in appended.repeats:
        first_id, micros = appended.repeats[line]
        return episode_of(draft, first_id, from_micros(micros), metadata)
    return episode_of(draft, appended.first_id + line, instant, metadata)
