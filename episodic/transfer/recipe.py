"""Rows of the well-known recipe as drafts. Pure.

Whatever the log does not hold as it was written stays in the metadata, under "imported" and the name of its column:
a role or an outcome of another vocabulary, metadata that is no JSON object, a time that cannot be read, a text with NUL
characters, and every column that an episode has no field for. What JSON cannot hold is kept as {"json": ...}, the JSON
of a text in ASCII, {"hex": ...}, bytes, or {"real": ...}, an infinite number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime

from episodic.codec import draft_metadata
from episodic.errors import DraftError
from episodic.model import JSON, OUTCOMES, ROLES, Draft, text_flaw
from episodic.sqlite.recipe import RecipeRow, Value
from episodic.transfer.item import Flaw, Hints, Item
from episodic.transfer.values import clock_time, free_key, json_object

__all__ = ["RowReader"]

KEPT = "imported"

ROLE_OF = {role: role for role in ROLES} | {
    "human": "user",
    "customer": "user",
    "client": "user",
    "visitor": "user",
    "end_user": "user",
    "ai": "assistant",
    "bot": "assistant",
    "agent": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "function": "tool",
    "tool_call": "tool",
    "tool_result": "tool",
    "function_call": "tool",
    "developer": "system",
}

# Neither the customer nor the one who answers, whoever it is.
UNKNOWN_ROLE = "system"

FIELDS = frozenset(
    {"agent_id", "session_id", "user_id", "author", "timestamp", "role", "content", "metadata", "outcome"}
)


class RowReader:
    """Turns rows into items; a row without a readable time gets that of the row before it."""

    def __init__(self, columns: Sequence[str], hints: Hints) -> None:
        """Remember the columns.

        Args:
            columns: of the table, in lower case.
            hints: the agent for rows without one.
        """
        self._columns = columns
        self._agent_id = hints.agent
        self._latest = datetime(1970, 1, 1, tzinfo=UTC)

    def decode(self, place: int, row: RecipeRow) -> Item:
        """Turn one row into an item; there is no row that it cannot read."""
        fields = dict(zip(self._columns, row.values, strict=True))
        kept: dict[str, JSON] = {
            name: _original(value) for name, value in fields.items() if _is_extra(name, value, row.rowid)
        }
        agent_id = _text(fields, "agent_id", kept)
        draft = Draft(
            self._agent_id if agent_id is None else agent_id,
            _text(fields, "session_id", kept) or "",
            _role(fields, kept),
            _text(fields, "content", kept) or "",
            user_id=_text(fields, "user_id", kept),
            author=_text(fields, "author", kept),
            outcome=_outcome(fields, kept),
            timestamp=self._timestamp(fields, kept),
            metadata=_metadata(fields, kept),  # the last: it holds what the others kept
        )
        weight = sum(len(value) for value in row.values if isinstance(value, str | bytes))
        return Item(place, (draft,), None, weight)

    def _timestamp(self, fields: dict[str, Value], kept: dict[str, JSON]) -> datetime:
        instant = clock_time(fields["timestamp"])
        if instant is None:
            kept["timestamp"] = _original(fields["timestamp"])
            return self._latest
        self._latest = instant
        return instant


def _is_extra(name: str, value: Value, rowid: int) -> bool:
    """Tell whether a column is one that an episode has no field for; an id that is the row's place says nothing."""
    return name not in FIELDS and value is not None and not (name == "id" and value == rowid)


def _text(fields: dict[str, Value], name: str, kept: dict[str, JSON]) -> str | None:
    """Return a field as text that can be stored, keeping what it was if that is another."""
    value = fields.get(name)
    match value:
        case str() if text_flaw(value) is None:
            return value
        case None if name in {"user_id", "author"}:
            return None
        case None:
            kept[name] = None
            return None
        case bytes():
            text = value.decode("utf-8", "replace")
        case _:
            text = str(value)
    kept[name] = _original(value)
    return text.replace("\0", "\ufffd").encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _role(fields: dict[str, Value], kept: dict[str, JSON]) -> str:
    value = fields["role"]
    role = ROLE_OF.get(value.strip().lower(), UNKNOWN_ROLE) if isinstance(value, str) else UNKNOWN_ROLE
    if role != value:
        kept["role"] = _original(value)
    return role


def _outcome(fields: dict[str, Value], kept: dict[str, JSON]) -> str | None:
    value = fields.get("outcome")
    name = value.strip().lower() if isinstance(value, str) else None
    outcome = name if name in OUTCOMES else None
    if outcome != value:
        kept["outcome"] = _original(value)
    return outcome


def _metadata(fields: dict[str, Value], kept: dict[str, JSON]) -> dict[str, JSON]:
    """Read the metadata, and put beside it what was kept."""
    value = fields.get("metadata")
    metadata: dict[str, JSON] = {}
    if value is not None:
        try:
            metadata = _storable(value)
        except (Flaw, DraftError):
            kept["metadata"] = _original(value)
    return metadata | {free_key(KEPT, metadata): kept} if kept else metadata


def _storable(value: Value) -> dict[str, JSON]:
    if not isinstance(value, str | bytes):
        msg = "is no JSON object"
        raise Flaw(msg)
    metadata = json_object(value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape"))
    draft_metadata(Draft("", "", "user", "", metadata=metadata))
    return metadata


def _original(value: Value) -> JSON:
    """Return a value as JSON that the log can hold."""
    match value:
        case str() if text_flaw(value):
            return {"json": json.dumps(value)}
        case bytes():
            return {"hex": value.hex()}
        case float() if not math.isfinite(value):
            return {"real": repr(value)}
        case _:
            return value
