"""Search and recall: words, plan, postings, ranking, all on one borrowed reader and so on one snapshot."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from episodic.context import Context, ContextItem
from episodic.model import Episode, Filter, Hit, SearchResult
from episodic.ports import Lookup, Reader, Scope
from episodic.search.plan import (
    BUDGET,
    COUNTED,
    FEWEST_WORDS,
    LOOKED_THROUGH,
    choose,
    fits,
    gather,
    is_exhaustive,
    lookups,
)
from episodic.search.rank import REACH, SPREADING, Scored, best, fuse, in_context, spreading, weighed
from episodic.search.words import parts_of, words_of

__all__ = ["recall_context", "search"]

# The same text said often (a greeting, a form letter) takes one place in a context; this many candidates for each
# place leave enough others.
CANDIDATES = 4


# A message that was recorded before it is asked about was recorded within this time.
JUST_NOW = timedelta(minutes=15)


class _Found(NamedTuple):
    scored: Sequence[Scored]
    words: tuple[str, ...]
    exhaustive: bool


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
    hits = tuple(Hit(episodes[one.episode_id], one.score, one.matched) for one in scored)
    return SearchResult(hits, reader.mode, found.words, found.exhaustive)


async def recall_context(reader: Reader, scope: Scope, message: str, limit: int) -> Context:
    """Choose what a model should know before it answers a message; see `EpisodicLog.recall_context`."""
    pool = min(limit * CANDIDATES, sys.maxsize)
    found = await _find(reader, scope, message, pool)
    recent = await reader.recent(scope, limit=pool)
    scored = {one.episode_id: one for one in found.scored}
    relevant = await reader.fetch(scope, list(scored))
    known = {e.id: e for e in [*recent, *relevant]}
    newest = recent[0].id if recent else 0
    asked = await _asked_now(reader, scope, message, list(known.values()), newest)
    relevant = _merge_repeats([e for e in relevant if e.id not in asked])[:limit]
    recent = _merge_repeats([e for e in recent if e.id not in asked], keep=relevant)[:limit]
    fused = fuse({e.id: scored[e.id].score for e in relevant}, [e.id for e in recent], limit)
    return Context(
        tuple(
            ContextItem(
                known[one.episode_id],
                one.score,
                one.relevance_rank,
                one.recency_rank,
                scored[one.episode_id].matched if one.episode_id in scored else (),
            )
            for one in fused
        )
    )


async def _find(reader: Reader, scope: Scope, query: str, limit: int) -> _Found:
    """Rank the candidates that the rarest words bring in; the common ones join where those find too little."""
    words, truncated = words_of(query)
    if not words:
        return _Found((), (), not truncated)
    like = reader.mode == "like"
    # Without an index only the newest episodes are looked through, as many for the count as for the search itself.
    counted = LOOKED_THROUGH if like else COUNTED
    total, span, frequencies = await reader.survey(scope, words, near=LOOKED_THROUGH, counted=counted)
    plan = choose(words, frequencies)
    wanted = [Lookup(*word) for word in (*plan.kept, *plan.left)] if like else lookups(plan)
    # Those that are kept although they pass the budget share it.
    most = BUDGET if like or fits(plan.kept) else BUDGET // len(plan.kept)
    bound = LOOKED_THROUGH if like else LOOKED_THROUGH // FEWEST_WORDS
    postings = await reader.postings(scope, wanted, span, most=most, bound=bound)
    left = () if like else plan.left
    exhaustive = span.is_whole and not truncated and is_exhaustive(plan.kept, most)
    if left and len(set().union(*postings)) < limit:
        # However many there are, together they cost no more than the others.
        most, bound = max(limit, BUDGET // len(left)), LOOKED_THROUGH // len(left)
        more = [Lookup(*word) for word in left]
        wanted, postings = wanted + more, postings + await reader.postings(scope, more, span, most=most, bound=bound)
        exhaustive = exhaustive and is_exhaustive(left, min(most, bound))
        left = ()
    held = weighed((*plan.kept, *plan.left), gather(wanted, postings), total)
    hits = best(held, max(limit, SPREADING))
    near = await reader.surroundings(scope, spreading(hits), reach=REACH)
    ranked = in_context(hits, near, parts_of(" ".join(words)), held, limit)
    return _Found(ranked, words, exhaustive and not left)


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
