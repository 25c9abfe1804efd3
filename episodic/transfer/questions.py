"""Questions with the episodes that answer them, for measuring what a log finds.

One JSON object a line: `{"question": "...", "expected": 17}`. What is expected is the id of an episode, its event id as
text, or a list of these, any of which will do. Each line may name its own `agent_id`, `user_id` and `session_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from episodic.errors import FilterError, TransferError, shown
from episodic.model import JSON, MAX_INTEGER, check_comparable
from episodic.transfer.item import Flaw
from episodic.transfer.lines import numbered
from episodic.transfer.values import check_keys, json_object

__all__ = ["Question", "read_questions"]

KEYS = frozenset({"question", "expected", "agent_id", "user_id", "session_id"})
# Only those that are there.
SCOPES = ("agent_id", "user_id", "session_id")


class Question(NamedTuple):
    """One question.

    Attributes:
        line: its number in the file.
        text: the question.
        expected: ids of episodes and event ids, each of which answers it.
        agent_id: whose log is asked, if the line says so.
        user_id: about which user only, if the line says so.
        session_id: in which session only, if the line says so.
    """

    line: int
    text: str
    expected: frozenset[int | str]
    agent_id: str | None
    user_id: str | None
    session_id: str | None


def read_questions(path: Path) -> list[Question]:
    """Read a file of questions, plain or packed by gzip.

    Raises:
        TransferError: it cannot be read, or a line is no question; the message says which and why.
    """
    try:
        with path.open("rb") as stream:
            return [_question(place, line, path.name) for place, line in numbered(stream, path.name)]
    except OSError as exc:
        msg = f"{path} cannot be read: {exc.strerror}"
        raise TransferError(msg) from exc


def _question(place: int, line: bytes, name: str) -> Question:
    try:
        fields = json_object(line)
        check_keys(fields, KEYS, "a question has no more than these: " + ", ".join(sorted(KEYS)))
        agent_id, user_id, session_id = (_name(fields, key) for key in SCOPES)
        return Question(place, _text(fields), _expected(fields.get("expected")), agent_id, user_id, session_id)
    except (Flaw, FilterError) as exc:
        msg = f"{name}, line {place}: {exc}"
        raise TransferError(msg) from exc


def _text(fields: Mapping[str, JSON]) -> str:
    text = fields.get("question")
    if not isinstance(text, str):
        msg = f"question must be text, not {shown(text)}"
        raise Flaw(msg)
    check_comparable("question", text)
    return text


def _name(fields: Mapping[str, JSON], key: str) -> str | None:
    value = fields.get(key)
    if value is not None:
        check_comparable(key, value)
    return cast("str | None", value)


def _expected(value: JSON) -> frozenset[int | str]:
    several = value if isinstance(value, list) else [value]
    if not several or not all(map(_is_name, several)):
        msg = f"expected must be the id of an episode, its event id as text, or a list of these, not {shown(value)}"
        raise Flaw(msg)
    for one in several:
        if isinstance(one, str):
            check_comparable("expected", one)
    return frozenset(cast("list[int | str]", several))


def _is_name(value: JSON) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and 0 < value <= MAX_INTEGER
    return isinstance(value, str)
