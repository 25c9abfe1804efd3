"""Records in and out of JSON: how an episode travels to the engine and back. Pure.

To the engine an episode is one JSON array, `ROW_FIELDS` in that order; from it one array, the fields of `Episode` in
theirs. Times are microseconds since 1970 in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

import orjson

from episodic.errors import DraftError
from episodic.folding import indexed_text
from episodic.model import JSON, Draft, Episode, Session, text_flaw
from episodic.records import quick

__all__ = [
    "ROW_FIELDS",
    "decode_episode",
    "decode_session",
    "draft_metadata",
    "encode_row",
    "episode_of",
    "from_micros",
    "to_micros",
]

ROW_FIELDS = (
    "agent_id",
    "session_id",
    "user_id",
    "author",
    "timestamp",
    "role",
    "content",
    "outcome",
    "metadata",
    "event_id",
    "timestamp_was_given",
    "folded",
)

_episode = quick(Episode)

# Levels inside the object itself. Some less than orjson can write, since an episode is written inside others.
MOST_DEPTH = 250

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

# Only JSON's own types: a datetime or a dataclass would come back as something else. Sorted keys make equal objects
# equal texts, which is how a retry is told from a conflict.
_METADATA = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def to_micros(instant: datetime) -> int:
    """Turn an aware datetime into microseconds since 1970, exactly."""
    return (instant - EPOCH) // MICROSECOND


def from_micros(micros: int) -> datetime:
    """Turn microseconds since 1970 into a datetime in UTC, exactly."""
    return EPOCH + timedelta(microseconds=micros)


def draft_metadata(draft: Draft) -> tuple[str, dict[str, JSON]]:
    """Encode a draft's metadata canonically.

    Returns:
        The JSON text, and what it decodes to: a copy that is nobody else's.

    Raises:
        DraftError: when it is not JSON: NaN, infinity, an integer over 64 bits, nesting over 250 levels, a key that
            is not text, a NUL character, half of a surrogate pair, or a type that JSON does not have.
    """
    if not draft.metadata:
        return "{}", {}
    metadata = dict(draft.metadata)
    try:
        encoded = orjson.dumps(metadata, default=_plain, option=_METADATA)
        own = orjson.loads(encoded)
    except (TypeError, ValueError) as exc:
        msg = f"metadata is not JSON: {exc}"
        raise DraftError(msg) from exc
    # orjson writes NaN as null, and some types as text; only what comes back as something else needs the slow look, and
    # NUL, which SQLite's JSON does not keep.
    if (own != metadata or b"\\u0000" in encoded) and (flaw := _metadata_flaw(metadata)):
        msg = f"metadata {flaw}"
        raise DraftError(msg)
    if encoded.count(b"[") + encoded.count(b"{") > MOST_DEPTH and _depth(own) > MOST_DEPTH + 1:
        msg = f"metadata is nested over {MOST_DEPTH} levels"
        raise DraftError(msg)
    return encoded.decode(), own


def encode_row(draft: Draft, micros: int, metadata: str) -> bytes:
    """Encode a draft as the engine takes it.

    Args:
        draft: the draft.
        micros: its time, given by the caller or by the log.
        metadata: its metadata as JSON text, from `draft_metadata`.
    """
    return orjson.dumps(
        (
            draft.agent_id,
            draft.session_id,
            draft.user_id,
            draft.author,
            micros,
            draft.role,
            draft.content,
            draft.outcome,
            metadata,
            draft.event_id,
            draft.timestamp is not None,
            indexed_text(draft.author, draft.content),
        )
    )


def episode_of(draft: Draft, episode_id: int, instant: datetime, metadata: dict[str, JSON]) -> Episode:
    """Build the receipt of a draft: the episode as the log now holds it."""
    return _episode(
        episode_id,
        draft.agent_id,
        draft.session_id,
        draft.user_id,
        draft.author,
        instant,
        draft.role,
        draft.content,
        draft.outcome,
        metadata,
        draft.event_id,
        False,  # noqa: FBT003 - the fields of a record, in order
    )


def decode_episode(fields: list[object]) -> Episode:
    """Turn one row of an engine's answer into an episode."""
    fields[5] = from_micros(cast("int", fields[5]))
    fields[11] = bool(fields[11])
    return _episode(*fields)  # type: ignore[arg-type]


def decode_session(fields: list[object]) -> Session:
    """Turn one row of an engine's answer into a session."""
    fields[3] = from_micros(cast("int", fields[3]))
    fields[4] = from_micros(cast("int", fields[4]))
    return Session(*fields)  # type: ignore[arg-type]


def _depth(value: object) -> int:
    """Count the levels of lists and objects."""
    depth, level = 0, [value]
    while level := [part for part in level if isinstance(part, list | dict)]:
        depth += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return depth


def _plain(value: object) -> object:
    """Give orjson a mapping or a sequence of another type as one of those that it knows."""
    match value:
        case Mapping():
            return dict(value)
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return list(value)
    msg = f"a {type(value).__name__} is none of JSON's types"
    raise TypeError(msg)


def _metadata_flaw(value: object) -> str | None:
    """Find what orjson would change without a word."""
    match value:
        case None | int():
            return None
        case float():
            return None if math.isfinite(value) else f"holds {value}, which JSON cannot hold; use None or text"
        case str():
            return text_flaw(value)
        case Mapping():
            parts = [part for item in value.items() for part in item]
        case Sequence() if not isinstance(value, bytes | bytearray):
            parts = list(value)
        case _:
            return f"holds a {type(value).__name__}, which JSON does not have; use text, numbers, lists or objects"
    return next((flaw for part in parts if (flaw := _metadata_flaw(part))), None)
