"""Episodes in the order of time, from either end, behind a cursor or from the start."""

from __future__ import annotations

from dataclasses import replace

from episodic.codec import to_micros
from episodic.model import Filter
from episodic.ports import Cursor, Scope
from episodic.sqlite.filters import Clause, Indexes, conditions, episodes

__all__ = ["newest_first", "oldest_first"]

EARLIEST, LATEST = -(2**63), 2**63 - 1

NEWEST_FIRST = "{} WHERE {} AND {} ORDER BY e.timestamp DESC, e.id DESC"
OLDEST_FIRST = "{} WHERE {} AND {} ORDER BY e.timestamp, e.id"
BETWEEN = "e.timestamp BETWEEN ? AND ?"
# Behind a cursor comes the rest of its instant, then the others. Compared as pairs, every page would go through the
# whole instant, and an import can give thousands of episodes the same.
ONE_THEN_OTHER = "(SELECT * FROM (SELECT * FROM {} LIMIT ?) UNION ALL SELECT * FROM (SELECT * FROM {} LIMIT ?)) AS e"


def newest_first(
    scope: Scope, indexes: Indexes, *, limit: int, latest: int | None = None, before: Cursor | None = None
) -> Clause:
    """Build the source of the newest episodes in scope, still to be limited.

    Args:
        scope: the agent and the filter.
        indexes: which indexes there are.
        limit: rows that will be taken, at most.
        latest: none after this time, in microseconds.
        before: none but those before this position.

    Returns:
        What stands behind FROM, with the rows as `e`, and its parameters.
    """
    first, last = _bounds(scope)
    last = last if latest is None else min(last, latest)
    if before is None:
        return _ordered(NEWEST_FIRST, scope, indexes, BETWEEN, (first, last))
    instant = before.micros if first <= before.micros <= last else None
    rest = _ordered(NEWEST_FIRST, scope, indexes, "e.timestamp = ? AND e.id < ?", (instant, before.episode_id))
    earlier = _ordered(NEWEST_FIRST, scope, indexes, BETWEEN, (first, min(last, before.micros - 1)))
    return _one_then_other(rest, earlier, limit)


def oldest_first(scope: Scope, indexes: Indexes, *, limit: int, after: Cursor | None = None) -> Clause:
    """Build the source of the oldest episodes in scope, still to be limited.

    Args:
        scope: the agent and the filter.
        indexes: which indexes there are.
        limit: rows that will be taken, at most.
        after: none but those after this position.

    Returns:
        What stands behind FROM, with the rows as `e`, and its parameters.
    """
    first, last = _bounds(scope)
    if after is None:
        return _ordered(OLDEST_FIRST, scope, indexes, BETWEEN, (first, last))
    instant = after.micros if first <= after.micros <= last else None
    rest = _ordered(OLDEST_FIRST, scope, indexes, "e.timestamp = ? AND e.id > ?", (instant, after.episode_id))
    later = _ordered(OLDEST_FIRST, scope, indexes, BETWEEN, (max(first, after.micros + 1), last))
    return _one_then_other(rest, later, limit)


def _bounds(scope: Scope) -> tuple[int, int]:
    """Return the first and the last microsecond of a scope."""
    where = scope.where or Filter()
    first = EARLIEST if where.since is None else to_micros(where.since)
    last = LATEST if where.until is None else to_micros(where.until) - 1
    return first, last


def _ordered(sql: str, scope: Scope, indexes: Indexes, time: str, bounds: tuple[int | None, int]) -> Clause:
    # The scope's own bounds of time stay out: the planner would take either pair for the index.
    timeless = scope._replace(where=scope.where and replace(scope.where, since=None, until=None))
    condition, parameters = conditions(timeless, indexes)
    return sql.format(episodes(scope, indexes), condition, time), (*parameters, *bounds)


def _one_then_other(one: Clause, other: Clause, limit: int) -> Clause:
    return ONE_THEN_OTHER.format(one[0], other[0]), (*one[1], limit, *other[1], limit)
