"""Search and recall: words, plan, postings, ranking, all on one borrowed reader and so on one snapshot."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from episodic.context import Context, ContextItem
from episodic.folding import ANY_ENDING
from episodic.found import Hit, SearchResult, Term
from episodic.model import Episode, Filter
from episodic.ports import Lookup, Reader, Scope
from episodic.search.plan import (
    BUDGET,
    LOOKED_THROUGH,
    Word,
    choose,
    count_to,
    fits,
    gather,
    is_exhaustive,
    look_through,
    lookups,
    used,
)
from episodic.search.rank import REACH, SPREADING, Scored, best, fuse, idf, in_context, preferring, spreading, weighed
from episodic.search.words import parts_of, words_of

__all__ = ["recall_context", "search"]

# The same text said often (a greeting, a form letter) takes one place in a context; this many candidates for each
# place leave enough others.
CANDIDATES = 4


# A message that was recorded before it is asked about was recorded within this time.
JUST_NOW = timedelta(minutes=15)


class _Candidates(NamedTuple):
    """The words that occur, the rarest first, and what was found of them.

    Attributes:
        words: the words with their frequencies.
        wanted: what was looked up.
        held: which of the episodes that were looked at hold each word.
        total: episodes in scope.
        counted: frequencies were counted up to here.
        exhaustive: whether every episode that holds a word is among them.
    """

    words: tuple[Word, ...]
    wanted: Sequence[Lookup]
    held: Mapping[str, AbstractSet[int]]
    total: int
    counted: int
    exhaustive: bool


class _Found(NamedTuple):
    """What was looked for, and what answers it, the best first."""

    scored: Sequence[Scored]
    words: tuple[str, ...]
    terms: tuple[Term, ...]
    total: int
    exhaustive: bool
    truncated: bool


async def search(reader: Reader, scope: Scope, query: str, limit: int) -> SearchResult:
    """Find the episodes in scope that answer a query best.

    Args:
        reader: a reader of one snapshot.
        scope: the agent and the filter.
        query: any text.
        limit: hits to return.
    """
    found = await _find(reader, scope, query, limit)
    episodes = {e.id: e for e in await reader.fetch(scope, [one.episode_id for one in found.scored])}
    # Without those that the index still has and the log has not any more.
    scored = [one for one in found.scored if one.episode_id in episodes]
    return SearchResult(
        hits=tuple(Hit(episodes[one.episode_id], one.score, _as_asked(one.matched), one.reasons) for one in scored),
        mode=reader.mode,
        words=_as_asked(found.words),
        exhaustive=found.exhaustive,
        terms=found.terms,
        total=found.total,
        truncated=found.truncated,
    )


async def recall_context(reader: Reader, scope: Scope, message: str, limit: int, prefer: str | None = None) -> Context:
    """Choose what a model should know before it answers a message; see `EpisodicLog.recall_context`."""
    pool = min(limit * CANDIDATES, sys.maxsize)
    found = await _find(reader, scope, message, pool if prefer is None else min(pool * CANDIDATES, sys.maxsize))
    recent = await reader.recent(scope, limit=pool)
    scored = {one.episode_id: one for one in found.scored}
    relevant = await reader.fetch(scope, list(scored))
    preferred = set() if prefer is None else await _ended_in(reader, scope, prefer, list(scored))
    known = {e.id: e for e in [*recent, *relevant]}
    newest = recent[0].id if recent else 0
    asked = await _asked_now(reader, scope, message, list(known.values()), newest)
    relevance = preferring({one.episode_id: one.score for one in found.scored}, preferred)
    relevant = _merge_repeats([known[number] for number in relevance if number in known and number not in asked])[
        :limit
    ]
    recent = _merge_repeats([e for e in recent if e.id not in asked], keep=relevant)[:limit]
    fused = fuse({e.id: relevance[e.id] for e in relevant}, [e.id for e in recent], limit, preferred)
    return Context(
        tuple(
            ContextItem(
                known[one.episode_id],
                one.score,
                one.relevance_rank,
                one.recency_rank,
                _as_asked(scored[one.episode_id].matched) if one.episode_id in scored else (),
                one.preferred,
            )
            for one in fused
        )
    )


async def _ended_in(reader: Reader, scope: Scope, outcome: str, ids: Sequence[int]) -> set[int]:
    """Tell which episodes had an outcome, their own or their session's."""
    where = scope.where or Filter()
    if where.outcome not in {None, outcome}:
        return set()
    return {e.id for e in await reader.fetch(scope._replace(where=replace(where, outcome=outcome)), ids)}


def _as_asked(words: Sequence[str]) -> tuple[str, ...]:
    """Write words as a person does, without the sign for what may follow."""
    return tuple(map(_spoken, words))


def _spoken(word: str) -> str:
    return word.removesuffix(ANY_ENDING)


async def _find(reader: Reader, scope: Scope, query: str, limit: int) -> _Found:
    """Rank what holds the words, and the turns around it."""
    words, truncated = words_of(query)
    if not words:
        return _Found((), (), (), 0, not truncated, truncated)
    find = _by_index if reader.mode == "fts" else _by_comparing
    found = await find(reader, scope, words, limit)
    held = weighed(found.words, found.held, found.total)
    hits = best(held, max(limit, SPREADING))
    near = await reader.surroundings(scope, spreading(hits, found.total), reach=REACH)
    ranked = in_context(hits, near, parts_of(" ".join(words)), held, limit)
    passed_over = {word.text for word in found.words if used(word.text, found.wanted) == "unused"}
    looked_for = tuple(word for word in words if word not in passed_over)
    exhaustive = found.exhaustive and not truncated
    return _Found(ranked, looked_for, _terms(words, found), found.total, exhaustive, truncated)


def _terms(words: Sequence[str], found: _Candidates) -> tuple[Term, ...]:
    """Say what became of each word, those that occur first."""
    present = [
        Term(
            _spoken(word.text),
            word.frequency,
            word.frequency >= found.counted,
            idf(found.total, word.frequency),
            used(word.text, found.wanted),
        )
        for word in found.words
    ]
    occurring = {word.text for word in found.words}
    absent = [
        Term(_spoken(word), frequency=0, is_bound=False, weight=0.0, use="absent")
        for word in words
        if word not in occurring
    ]
    return (*present, *absent)


async def _by_index(reader: Reader, scope: Scope, words: Sequence[str], limit: int) -> _Candidates:
    """Look up the rarest words, and the others where these stand; where that is too little, these for themselves."""
    counted = count_to(len(words))
    total, span, frequencies = await reader.survey(scope, words, near=LOOKED_THROUGH, counted=counted)
    plan = choose(words, frequencies)
    wanted = lookups(plan)
    # Words that are kept although they pass the budget share it.
    most = max(limit, BUDGET if fits(plan.kept) else BUDGET // len(plan.kept))
    bound = max(limit, look_through(max(1, len(wanted))))
    postings = await reader.postings(scope, wanted, span, most=most, bound=bound)
    exhaustive = span.is_whole and not plan.left and is_exhaustive(plan.kept, min(most, bound))
    if plan.left and len(set().union(*postings)) < limit:
        # However many there are, together they cost no more than the others.
        most, bound = max(limit, BUDGET // len(plan.left)), max(limit, LOOKED_THROUGH // len(plan.left))
        more = [Lookup(*word) for word in plan.left]
        wanted, postings = wanted + more, postings + await reader.postings(scope, more, span, most=most, bound=bound)
        exhaustive = span.is_whole and is_exhaustive((*plan.kept, *plan.left), min(most, bound))
    return _Candidates((*plan.kept, *plan.left), wanted, gather(wanted, postings), total, counted, exhaustive)


async def _by_comparing(reader: Reader, scope: Scope, words: Sequence[str], limit: int) -> _Candidates:
    """Compare the newest episodes with all words, as an engine without an index of words can."""
    total, span, frequencies = await reader.survey(scope, words, near=LOOKED_THROUGH, counted=LOOKED_THROUGH)
    kept, left = choose(words, frequencies)
    wanted, most = [Lookup(*word) for word in (*kept, *left)], max(limit, BUDGET)
    postings = await reader.postings(scope, wanted, span, most=most, bound=LOOKED_THROUGH)
    exhaustive = span.is_whole and is_exhaustive((*kept, *left), most)
    return _Candidates((*kept, *left), wanted, gather(wanted, postings), total, LOOKED_THROUGH, exhaustive)


async def _asked_now(reader: Reader, scope: Scope, message: str, episodes: Sequence[Episode], newest: int) -> set[int]:
    """Find the message itself among the episodes: what users say in the same words, just now, and still unanswered.

    Args:
        reader: a reader of the snapshot.
        scope: the agent and the filter.
        message: what was said.
        episodes: those that may be in the context.
        newest: id of the newest of them, which is just now whatever its time.
    """
    said, since = message.strip(), datetime.now(UTC) - JUST_NOW
    same = [
        e
        for e in episodes
        if e.role == "user" and e.content.strip() == said and (e.id == newest or e.timestamp >= since)
    ]
    asked: set[int] = set()
    for session_id in {e.session_id for e in same}:
        answers = Scope(scope.agent_id, Filter(session_id=session_id, roles=("assistant",)))
        last = [(e.timestamp, e.id) for e in await reader.recent(answers, limit=1)]
        asked |= {e.id for e in same if e.session_id == session_id and [(e.timestamp, e.id)] > last}
    return asked


def _merge_repeats(episodes: Sequence[Episode], keep: Sequence[Episode] = ()) -> list[Episode]:
    """Drop each episode that says in the same role what one before it says, or what another list's already does."""
    seen = {(e.role, e.content): e.id for e in keep}
    return [e for e in episodes if seen.setdefault((e.role, e.content), e.id) == e.id]
