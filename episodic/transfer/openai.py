"""OpenAI chat as JSON lines: each line one conversation, `{"messages": [...]}`. Pure.

What the log has no field for is kept in the metadata of the episode: a message's own keys under their names, its parts
that are no text under "content", its role under "role" where ours is another; the line's keys, such as its tools, once,
with the first message, under "conversation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from episodic.codec import draft_metadata
from episodic.errors import shown
from episodic.model import JSON, ROLES, Draft
from episodic.transfer.item import Flaw, Hints, Item
from episodic.transfer.values import clock_time, free_key

__all__ = ["decode", "looks_like"]

ROLE_OF = {"developer": "system", "function": "tool"} | {role: role for role in ROLES}

AGENT_KEYS = ("agent_id",)
SESSION_KEYS = ("session_id", "conversation_id", "id")
USER_KEYS = ("user_id", "user")
TIME_KEYS = ("timestamp", "created_at", "created")
TEXT_PARTS = ("text", "input_text", "output_text")


class _Whose(NamedTuple):
    """What a line says of all its messages."""

    agent_id: str
    session_id: str
    user_id: str | None
    begun: datetime | None


def looks_like(fields: Mapping[str, JSON]) -> bool:
    """Tell whether a file that begins with this object is of this format."""
    return isinstance(fields.get("messages"), list)


def decode(place: int, fields: Mapping[str, JSON], hints: Hints, weight: int) -> Item:
    """Turn one line into an item.

    Raises:
        Flaw: it has no messages, or one of them cannot be read.
        DraftError: a value cannot be recorded.
    """
    rest = dict(fields)
    messages = rest.pop("messages", None)
    if not isinstance(messages, list) or not messages:
        msg = "has no messages; each line is one conversation, an object with a list of them"
        raise Flaw(msg)
    whose = _Whose(
        _text(rest, AGENT_KEYS) or hints.agent,
        _text(rest, SESSION_KEYS) or f"{hints.stem}-{place}",
        _text(rest, USER_KEYS),
        _time(rest),
    )
    drafts: list[Draft] = []
    for number, message in enumerate(messages, start=1):
        try:
            drafts.append(_draft(whose, message, {} if drafts else rest))
        except ValueError as exc:
            msg = f"message {number}: {exc}"
            raise Flaw(msg) from exc
    return Item(place, drafts, None, weight)


def _draft(whose: _Whose, message: JSON, conversation: Mapping[str, JSON]) -> Draft:
    if not isinstance(message, Mapping):
        msg = "is no object"
        raise Flaw(msg)
    rest = dict(message)
    role = rest.pop("role", None)
    if not isinstance(role, str) or role not in ROLE_OF:
        msg = f"role must be one of {', '.join(sorted(ROLE_OF))}, not {shown(role)}"
        raise Flaw(msg)
    content, parts = _content(rest.pop("content", None))
    name = rest.get("name")
    timestamp = _time(rest) or whose.begun
    if parts:
        rest["content"] = parts
    if role != ROLE_OF[role]:
        rest["role"] = role
    if conversation:
        rest[free_key("conversation", rest)] = conversation
    draft = Draft(
        whose.agent_id,
        whose.session_id,
        ROLE_OF[role],
        content,
        user_id=whose.user_id,
        author=name if isinstance(name, str) else None,
        metadata=rest,
        timestamp=timestamp,
    )
    draft_metadata(draft)  # refuses here, where the line is known, what recording would refuse
    return draft


def _content(content: JSON) -> tuple[str, Sequence[JSON]]:
    """Return the text of a message, and its parts that are more than text."""
    if content is None or isinstance(content, str):
        return content or "", ()
    if not isinstance(content, list):
        msg = "content must be text, null or a list of parts"
        raise Flaw(msg)
    texts, others = [], []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS else None
        if isinstance(text, str):
            texts.append(text)
        if not isinstance(text, str) or part.keys() != {"type", "text"}:
            others.append(part)
    return "\n".join(texts), others


def _text(fields: dict[str, JSON], names: Sequence[str]) -> str | None:
    """Take the first of some keys that holds a text or a whole number; the others stay."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            del fields[name]
            return str(value)
    return None


def _time(fields: dict[str, JSON]) -> datetime | None:
    """Take the first of some keys that holds a time; the others stay."""
    for name in TIME_KEYS:
        if instant := clock_time(fields.get(name)):
            del fields[name]
            return instant
    return None
