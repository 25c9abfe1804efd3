"""A scope as a WHERE clause: constant fragments and parameters, the same on every path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import orjson

from episodic.codec import to_micros
from episodic.model import Filter, Scalar
from episodic.ports import Scope
from episodic.sqlite.journal import metadata_member

__all__ = ["Clause", "Indexes", "conditions", "episodes", "is_narrowed", "looked_up", "stays"]

Clause: TypeAlias = "tuple[str, tuple[int | float | str | None, ...]]"


class Indexes(NamedTuple):
    """What a log may have beside the indexes that each one has.

    Attributes:
        metadata: indexed metadata keys, and the name of each one's index.
        hot: whether the episodes that are not archived have an index.
    """

    metadata: Mapping[str, str]
    hot: bool


OUTCOME = """coalesce(e.outcome, (
    SELECT s.outcome FROM sessions AS s WHERE s.agent_id = e.agent_id AND s.session_id = e.session_id
)) = ?"""

# What is withdrawn is in no answer. The first look is one for the whole statement, and mostly the only one.
NONE_LEAVING = "(SELECT NOT EXISTS (SELECT 1 FROM leaving))"
STAYS = f"({NONE_LEAVING} OR NOT EXISTS (SELECT 1 FROM leaving WHERE leaving.id = {{}}))"  # noqa: S608 - constants only

# `json_each` finds a key as it is; a path would mix dots with nesting. Its `type` keeps true from 1 and 1 from 1.0.
METADATA = "EXISTS (SELECT 1 FROM json_each(e.metadata) AS m WHERE m.key = ? AND {})"


def conditions(scope: Scope, indexes: Indexes) -> Clause:
    """Build the condition that episode `e` is in a scope, and not withdrawn.

    Args:
        scope: the agent and the filter.
        indexes: which indexes there are.

    Returns:
        A condition and its parameters.
    """
    clauses: list[Clause] = [] if scope.agent_id is None else [("e.agent_id = ?", (scope.agent_id,))]
    if scope.where is not None:
        clauses += _filter_clauses(scope.where, indexes)
    condition = " AND ".join([*(condition for condition, _ in clauses), stays("e.id")])
    return condition, tuple(parameter for _, parameters in clauses for parameter in parameters)


def stays(number: str) -> str:
    """Build the condition that an episode is not withdrawn.

    Args:
        number: its id, as an expression.
    """
    return STAYS.format(number)


def episodes(scope: Scope, indexes: Indexes) -> str:
    """Name the table as `e`, with the index that brings in the fewest episodes of a scope in the order of time.

    The planner cannot know that a session is smaller than a user, and a user than an agent: with a span of time, or
    one more value to compare, it would take whichever index comes first.

    Args:
        scope: the agent and the filter.
        indexes: which indexes there are.
    """
    where = scope.where or Filter()
    if where.session_id is not None:
        return "episodes AS e INDEXED BY episodes_by_session"
    if where.user_id is not None and scope.agent_id is not None:
        return "episodes AS e INDEXED BY episodes_by_user"
    for key, value in (where.metadata or {}).items():
        if _is_looked_up(key, value, indexes):
            return f'episodes AS e INDEXED BY "{indexes.metadata[key]}"'
    if where.archived is False and scope.agent_id is not None and indexes.hot:
        return "episodes AS e INDEXED BY episodes_hot"
    return "episodes AS e" if scope.agent_id is None else "episodes AS e INDEXED BY episodes_by_agent"


def is_narrowed(where: Filter | None) -> bool:
    """Tell whether a filter asks for more than its user, who is a word of the index as the agent is."""
    return where is not None and where != Filter(user_id=where.user_id)


def looked_up(where: Filter, indexes: Indexes) -> Filter:
    """Return the part of a filter that an index of the log answers without a look at each episode."""
    metadata = {key: value for key, value in (where.metadata or {}).items() if _is_looked_up(key, value, indexes)}
    return replace(where, roles=None, outcome=None, archived=None, metadata=metadata or None)


def _filter_clauses(where: Filter, indexes: Indexes) -> Iterator[Clause]:
    if where.user_id is not None:
        yield "e.user_id = ?", (where.user_id,)
    if where.session_id is not None:
        yield "e.session_id = ?", (where.session_id,)
    if where.roles is not None:
        yield "e.role IN (SELECT value FROM json_each(?))", (orjson.dumps(sorted(where.roles)).decode(),)
    if where.outcome is not None:
        yield OUTCOME, (where.outcome,)
    if where.since is not None:
        yield "e.timestamp >= ?", (to_micros(where.since),)
    if where.until is not None:
        yield "e.timestamp < ?", (to_micros(where.until),)
    if where.archived is not None:
        # Spelled out, which episodes_hot asks for.
        yield f"e.archived = {int(where.archived)}", ()
    if where.metadata is not None:
        yield from _metadata_clauses(where.metadata, indexes)


def _metadata_clauses(wanted: Mapping[str, Scalar], indexes: Indexes) -> Iterator[Clause]:
    for key, value in wanted.items():
        if _is_looked_up(key, value, indexes):
            # Coarser than the exact comparison beside it, since true is 1 here; it only brings in the index.
            yield f"e.{metadata_member(key)} = ?", (value,)
        match value:
            case None:
                yield METADATA.format("m.type = 'null'"), (key,)
            case bool():
                yield METADATA.format("m.type = ?"), (key, "true" if value else "false")
            case str():
                yield METADATA.format("m.type = 'text' AND m.value = ?"), (key, value)
            case int():
                yield METADATA.format("m.type = 'integer' AND m.value = ?"), (key, value)
            case float():
                # The text goes through SQLite's own reading of decimals, as the stored one does.
                compared = METADATA.format("m.type = 'real' AND m.value = json_extract(?, '$')")
                yield compared, (key, orjson.dumps(value).decode())


def _is_looked_up(key: str, value: Scalar, indexes: Indexes) -> bool:
    return key in indexes.metadata and isinstance(value, str | int)
