"""What a search asks of a reading connection: how frequent words are, who holds them, and what stands beside.

Every answer is one row of one statement, as in `readers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, cast

import aiosqlite
import orjson

from episodic.folding import ANY_ENDING, spelled
from episodic.ports import Lookup, Neighbourhood, Scope, Span, Surroundings, Survey
from episodic.sqlite.connect import Place, translated, undamaged
from episodic.sqlite.filters import Indexes, conditions, episodes, is_narrowed, looked_up, stays
from episodic.sqlite.frequencies import Counted, Frequencies
from episodic.sqlite.fts import ID_BITS, ID_MASK, is_told_apart, match

__all__ = ["SearchingReader"]

STAYS = stays(f"episodes_fts.rowid & {ID_MASK}")

COUNT_AGENT = "SELECT coalesce(sum(episodes), 0) FROM agents WHERE agent_id = ?"
COUNT_USER = "SELECT count(*) FROM episodes WHERE agent_id = ? AND user_id = ?"

# The agent's part of the index: from behind `base` to `top`.
AGENT = f"""
agent AS MATERIALIZED (
    SELECT episodes, number << {ID_BITS} AS base, (number << {ID_BITS}) + {ID_MASK} AS top
    FROM agents WHERE agent_id = ?
)"""  # noqa: S608 - constants only
# How often words have become less frequent.
REMOVALS = "(SELECT ended FROM removal_state)"
# Whether the index has all that the log has.
IS_INDEXED = "(SELECT unindexed = 0 FROM log_state)"
# Each word with the place behind which it is to be counted.
SURVEY = f"""
WITH {AGENT}, known AS MATERIALIZED (
    SELECT
        base, top, ({{}}) AS total,
        (SELECT coalesce(max(id), base) FROM episodes_fts_docsize WHERE id BETWEEN base AND top) AS last
    FROM agent
)
SELECT json_group_array(json_array(
    total, base, top, last, {IS_INDEXED}, {REMOVALS},
    (
        SELECT json_group_array(CASE WHEN word.value ->> 1 < last THEN (
            SELECT count(*)
            FROM (
                SELECT 1 FROM episodes_fts
                WHERE episodes_fts MATCH word.value ->> 0 AND rowid BETWEEN max(base, word.value ->> 1) + 1 AND top
                LIMIT ?
            )
        ) ELSE 0 END)
        FROM json_each(?) AS word
    )
)) FROM known
"""  # noqa: S608 - constants only
# The episodes of a session, a stretch of time or a ticket lie close together: looking there alone is quick.
SURVEY_NARROW = f"""
WITH {AGENT}, near AS MATERIALIZED (
    SELECT count(*) AS seen, min(id) AS first, max(id) AS last
    FROM (SELECT e.id FROM {{}} WHERE {{}} ORDER BY e.timestamp DESC, e.id DESC LIMIT ?)
), span AS MATERIALIZED (
    SELECT
        seen,
        -- There may be more, older ones.
        base + CASE WHEN seen = ? THEN 1 ELSE first END AS first,
        base + last AS last,
        {IS_INDEXED} AS is_indexed,
        ({{}}) AS total
    FROM agent, near WHERE seen
)
SELECT json_group_array(json_array(
    total, first, last, seen, is_indexed,
    (
        SELECT json_group_array((
            SELECT count(*)
            FROM (
                SELECT 1 FROM episodes_fts
                WHERE episodes_fts MATCH word.value AND rowid BETWEEN first AND last LIMIT ?
            )
        ))
        FROM json_each(?) AS word
    )
)) FROM span
"""  # noqa: S608 - constants only
# CROSS JOIN keeps the planner from driving the search from an index of the log, which takes a thousand times as long.
POSTINGS = f"""
SELECT json_group_array(json((
    SELECT json_group_array(id)
    FROM (
        SELECT e.id
        FROM (
            SELECT rowid FROM episodes_fts
            WHERE episodes_fts MATCH word.value AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?
        ) AS hit
        CROSS JOIN episodes AS e ON e.id = hit.rowid & {ID_MASK}
        WHERE {{}}
        LIMIT ?
    )
))) FROM json_each(?) AS word
"""  # noqa: S608 - constants only
# The index knows agent and user, and each episode that the log itself has to bring in costs as much as twenty rows of
# the index. Going backwards costs twice as much as forwards, so only what must be cut goes backwards.
POSTINGS_INDEX_ONLY = f"""
SELECT json_group_array(json(CASE WHEN word.value ->> 1 <= ? THEN (
    SELECT json_group_array(rowid & {ID_MASK}) FROM episodes_fts
    WHERE episodes_fts MATCH word.value ->> 0 AND rowid BETWEEN ? AND ? AND {STAYS}
) ELSE (
    SELECT json_group_array(rowid & {ID_MASK})
    FROM (
        SELECT rowid FROM episodes_fts
        WHERE episodes_fts MATCH word.value ->> 0 AND rowid BETWEEN ? AND ? AND {STAYS}
        ORDER BY rowid DESC LIMIT ?
    )
) END)) FROM json_each(?) AS word
"""  # noqa: S608 - constants only
LIKE_POSTINGS = """
SELECT json_group_array(json((
    SELECT json_group_array(id)
    FROM (
        SELECT id
        FROM (SELECT id, author, content, folded FROM {} WHERE {} ORDER BY timestamp DESC LIMIT ?)
        WHERE coalesce(folded, content) LIKE word.value ESCAPE '\\' OR author LIKE word.value ESCAPE '\\'
        ORDER BY id DESC
        LIMIT ?
    )
))) FROM json_each(?) AS word
"""

NEAR = """(
    SELECT json_group_array(id)
    FROM (
        SELECT e.id
        FROM episodes AS e INDEXED BY episodes_by_session
        WHERE e.session_id = c.session_id AND e.agent_id = c.agent_id AND {where} AND {condition}
        ORDER BY e.timestamp {order}, e.id {order}
        LIMIT ?
    )
)"""
# Turns of the same instant apart from the others: compared as pairs with the id, all of them would be gone through.
# And with each what the center, which is in scope, makes true of its bounds of time: the planner may take one of them.
SIDES: tuple[tuple[str, str, Mapping[str, None]], ...] = (
    ("e.timestamp = c.timestamp AND e.id < c.id", "DESC", {"since": None, "until": None}),
    ("e.timestamp < c.timestamp", "DESC", {"until": None}),
    ("e.timestamp = c.timestamp AND e.id > c.id", "ASC", {"since": None, "until": None}),
    ("e.timestamp > c.timestamp", "ASC", {"since": None}),
)
SURROUNDINGS = f"""
SELECT json_group_array(json_array(c.session_id, c.id, {", ".join(["{}"] * len(SIDES))}))
FROM json_each(?) AS wanted CROSS JOIN episodes AS c ON c.id = wanted.value
"""  # noqa: S608 - constants only
# Two flat arrays: twice the id, and one more where the turn asks; and the authors.
TURNS = """
SELECT json_array(
    json_group_array(e.id * 2 + (substr(rtrim(e.content), -1) = '?')),
    json_group_array(CASE typeof(e.author) WHEN 'text' THEN e.author END)
)
FROM json_each(?) AS wanted CROSS JOIN episodes AS e ON e.id = wanted.value
"""

# No episode is at a place beyond.
SMALLEST, LARGEST = 1, 2**63 - 1

_NearRow: TypeAlias = "tuple[str, int, list[int], list[int], list[int], list[int]]"


class SearchingReader:
    """What `ports.Reader` has for a search, over one connection."""

    def __init__(
        self,
        db: aiosqlite.Connection,
        where: Place,
        indexes: Indexes,
        frequencies: Frequencies,
        *,
        fts: bool,
    ) -> None:
        """Wrap a connection.

        Args:
            db: the connection.
            where: its file, for messages.
            indexes: which indexes there are.
            frequencies: of words in this file, which all its readers share.
            fts: whether words are looked up in the full-text index.
        """
        self.db = db
        self._where = where
        self._indexes = indexes
        self._frequencies = frequencies
        self._fts = fts

    @property
    def mode(self) -> Literal["fts", "like"]:
        """How words are found."""
        return "fts" if self._fts else "like"

    async def survey(self, scope: Scope, words: Sequence[str], *, near: int, counted: int) -> Survey:
        """Look at a scope and count words; see `ports.Reader.survey`."""
        if not self._fts:
            return await self._survey_by_like(scope, words, near=near, counted=counted)
        where = scope.where and looked_up(scope.where, self._indexes)
        matches = [match(_user(scope), word) for word in words]
        if not is_narrowed(where):
            return await self._survey_whole(scope, matches, counted)
        count, of_whom = _count(scope)
        narrow = Scope(scope.agent_id, where)
        condition, parameters = conditions(narrow, self._indexes)
        sql = SURVEY_NARROW.format(episodes(narrow, self._indexes), condition, count)
        given = (scope.agent_id, *parameters, near, near, *of_whom, counted, _array(matches))
        answer = cast("list[tuple[int, int, int, int, int, list[int]]]", await self._answer(sql, given))
        if not answer:
            return Survey(0, Span(SMALLEST, LARGEST, is_whole=True), [0] * len(words))
        [(total, first, last, seen, is_indexed, frequencies)] = answer
        return Survey(total, Span(first, last, bool(is_indexed) and seen < near), frequencies)

    async def _survey_whole(self, scope: Scope, matches: Sequence[str], bound: int) -> Survey:
        """Count what is new since each word was counted last; a word that reached the bound is counted no more."""
        keys = [(scope.agent_id or "", word, bound) for word in matches]
        removals = self._frequencies.removals
        known = self._frequencies.known(keys)
        open_ones = [(key, one) for key, one in zip(keys, known, strict=True) if one.episodes < bound]
        asked = _array([(word, one.upto) for (_, word, _), one in open_ones])
        count, of_whom = _count(scope)
        given = (scope.agent_id, *of_whom, bound, asked)
        answer = cast(
            "list[tuple[int, int, int, int, int, int, list[int]]]", await self._answer(SURVEY.format(count), given)
        )
        if not answer:
            return Survey(0, Span(SMALLEST, LARGEST, is_whole=True), [0] * len(matches))
        [(total, base, top, indexed, is_indexed, seen, more)] = answer
        if seen != removals:
            # What was known holds no more, or not yet in this snapshot.
            self._frequencies.forget(seen)
            return await self._survey_whole(scope, matches, bound)
        counts = {word: one.episodes for (_, word, _), one in zip(keys, known, strict=True)}
        for (key, one), new in zip(open_ones, more, strict=True):
            counts[key[1]] = min(bound, one.episodes + new)
            self._frequencies.learn(key, Counted(counts[key[1]], max(indexed, one.upto)), removals)
        return Survey(total, Span(base, top, bool(is_indexed)), [counts[word] for word in matches])

    async def _survey_by_like(self, scope: Scope, words: Sequence[str], *, near: int, counted: int) -> Survey:
        count, of_whom = _count(scope)
        total = cast("int", await self._answer(count, of_whom))
        span = Span(SMALLEST, LARGEST, total < near)
        lookups = [Lookup(word, counted) for word in words]
        held = await self.postings(scope, lookups, span, most=counted, bound=near)
        return Survey(total, span, [len(ids) for ids in held])

    async def postings(
        self, scope: Scope, lookups: Sequence[Lookup], span: Span, *, most: int, bound: int
    ) -> list[list[int]]:
        """Return for each word the newest episodes in scope that hold it; see `ports.Reader.postings`."""
        condition, parameters = conditions(scope, self._indexes)
        if not self._fts:
            patterns = _array([_like_pattern(one.word) for one in lookups])
            sql = LIKE_POSTINGS.format(episodes(scope, self._indexes), condition)
            return cast("list[list[int]]", await self._answer(sql, (*parameters, bound, most, patterns)))
        user_id = _user(scope)
        matches = [match(user_id, one.word, one.beside) for one in lookups]
        if is_narrowed(scope.where) or not is_told_apart(user_id):
            given = (span.first, span.last, bound, *parameters, most, _array(matches))
            return cast("list[list[int]]", await self._answer(POSTINGS.format(condition), given))
        expected = [min(one.frequency, one.others) if one.beside else one.frequency for one in lookups]
        asked = _array(list(zip(matches, expected, strict=True)))
        given = (most, span.first, span.last, span.first, span.last, most, asked)
        unsorted = cast("list[list[int]]", await self._answer(POSTINGS_INDEX_ONLY, given))
        return [sorted(ids, reverse=True) for ids in unsorted]

    async def surroundings(self, scope: Scope, ids: Sequence[int], *, reach: int) -> Neighbourhood:
        """Return episodes among the turns of their sessions; see `ports.Reader.surroundings`."""
        sides: list[str] = []
        given: list[object] = []
        for where, order, implied in SIDES:
            narrowed = scope._replace(where=scope.where and replace(scope.where, **implied))
            condition, parameters = conditions(narrowed, self._indexes)
            sides.append(NEAR.format(where=where, condition=condition, order=order))
            given += [*parameters, reach]
        found = cast("list[_NearRow]", await self._answer(SURROUNDINGS.format(*sides), (*given, _array(ids))))
        around = [
            Surroundings(number, session_id, (just_before + before)[:reach], (just_after + after)[:reach])
            for session_id, number, just_before, before, just_after, after in found
        ]
        turns = {number for one in around for number in (one.episode_id, *one.before, *one.after)}
        numbers, names = cast("tuple[list[int], list[str | None]]", await self._answer(TURNS, (_array(sorted(turns)),)))
        with undamaged(self._where.path):
            asking = frozenset(number >> 1 for number in numbers if number & 1)
            authors = {number >> 1: name for number, name in zip(numbers, names, strict=True) if name is not None}
        return Neighbourhood(around, asking, authors)

    async def _answer(self, sql: str, parameters: Sequence[object]) -> object:
        with translated(self._where.path):
            [(answer,)] = await self.db.execute_fetchall(sql, parameters)
        return orjson.loads(answer) if isinstance(answer, str) else answer


def _user(scope: Scope) -> str | None:
    return None if scope.where is None else scope.where.user_id


def _count(scope: Scope) -> tuple[str, tuple[str | None, ...]]:
    """Build the question of how many episodes there are of an agent, or of an agent about a user."""
    user_id = _user(scope)
    return (COUNT_AGENT, (scope.agent_id,)) if user_id is None else (COUNT_USER, (scope.agent_id, user_id))


def _array(values: Sequence[object]) -> str:
    return orjson.dumps(values).decode()


def _like_pattern(word: str) -> str:
    text = spelled(word.removesuffix(ANY_ENDING))
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
