"""episodic's own JSON lines: one episode a line, or how one session ended. Pure.

An episode is an object with the fields of `Draft`, of which agent_id, session_id, role and content must be there; its
timestamp is ISO 8601 with a zone. How a session ended is
`{"session": {"agent_id": ..., "session_id": ..., "outcome": ...}}`, behind that session's episodes.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from episodic.codec import draft_metadata
from episodic.errors import shown
from episodic.model import JSON, Draft, Episode, Session, is_outcome
from episodic.transfer.item import Ending, Flaw, Hints, Item
from episodic.transfer.values import check_keys, iso_time

__all__ = ["decode", "encode", "encode_ending", "looks_like"]

REQUIRED = ("agent_id", "session_id", "role", "content")
FIELDS = (*REQUIRED, "user_id", "author", "timestamp", "outcome", "metadata", "event_id")

# An export writes these as well; a log gives its own.
IGNORED = ("id", "archived")

KEYS = frozenset({*FIELDS, *IGNORED})
SESSION = "session"
ENDING_KEYS = ("agent_id", "session_id", "outcome")

ELSEWHERE = "what an episode has no field for belongs into its metadata"

LINE = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE


def looks_like(fields: Mapping[str, JSON]) -> bool:
    """Tell whether a file that begins with this object is of this format."""
    return SESSION in fields or ("session_id" in fields and "role" in fields)


def decode(place: int, fields: Mapping[str, JSON], hints: Hints, weight: int) -> Item:
    """Turn one line into an item.

    Raises:
        Flaw: a key is missing or unknown, or a time cannot be read.
        DraftError: a value cannot be recorded.
    """
    if SESSION in fields:
        return Item(place, (), _ending(fields), weight)
    check_keys(fields, KEYS, ELSEWHERE)
    values = {key: fields.get(key) for key in FIELDS}
    if values["agent_id"] is None:
        values["agent_id"] = hints.agent_id
    for key in REQUIRED:
        if values[key] is None:
            msg = f"has no {key}" + ("; name one with --agent" if key == "agent_id" else "")
            raise Flaw(msg)
    timestamp = values.pop("timestamp")
    draft = Draft(**values, timestamp=None if timestamp is None else iso_time(timestamp))  # type: ignore[arg-type]
    draft_metadata(draft)  # refuses here, where the line is known, what recording would refuse
    return Item(place, (draft,), None, weight)


def encode(episode: Episode) -> bytes:
    """Write an episode as one line."""
    return orjson.dumps(episode, option=LINE)


def encode_ending(session: Session) -> bytes:
    """Write how a session ended as one line."""
    return orjson.dumps({SESSION: {key: getattr(session, key) for key in ENDING_KEYS}}, option=LINE)


def _ending(fields: Mapping[str, JSON]) -> Ending:
    check_keys(fields, {SESSION}, ELSEWHERE)
    session = fields[SESSION]
    if not isinstance(session, Mapping):
        msg = "session must be an object"
        raise Flaw(msg)
    check_keys(session, set(ENDING_KEYS), ELSEWHERE)
    agent_id, session_id, outcome = (session.get(key) for key in ENDING_KEYS)
    if not isinstance(agent_id, str) or not isinstance(session_id, str):
        msg = "session must have an agent_id and a session_id, both text"
        raise Flaw(msg)
    if outcome is not None and not is_outcome(outcome):
        msg = f"outcome must be success, failure, partial or null, not {shown(outcome)}"
        raise Flaw(msg)
    return Ending(agent_id, session_id, None if outcome is None else str(outcome))
