"""Search and recall: words, plan, postings, ranking, all on one borrowed reader and so on one snapshot."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from episodic.codec import to_micros
from episodic.context import Context, ContextItem
from episodic.model import Episode, Filter, Hit, SearchResult
from episodic.ports import Cursor, Reader, Scope
from episodic.search.plan import BUDGET, COUNTED, LOOKED_THROUGH, choose, is_exhaustive
from episodic.search.rank import Scored, best, fuse
from episodic.search.words import words_of

__all__ = ["recall_context", "search"]

# The same text said often (a greeting, a form letter) takes one place in a context; this many candidates for each
# place leave enough others.
CANDIDATES = 4


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
    asked = await _asked_now(reader, scope, message, list(known.values()))
    relevant = _merge_repeats([e for e in relevant if e.id != asked])[:limit]
    recent = _merge_repeats([e for e in recent if e.id != asked], keep=relevant)[:limit]
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
    # Without an index only the newest episodes are looked through, as many for the count as for the search itself.
    indexed = reader.mode == "fts"
    plan = choose(words, await reader.frequencies(scope, words, bound=COUNTED if indexed else LOOKED_THROUGH))
    total = await reader.count(scope)
    used, left = plan.kept, plan.left
    postings = await reader.postings(scope, [word.text for word in used], most=BUDGET, bound=LOOKED_THROUGH)
    if left and len(set().union(*postings)) < limit:
        postings += await reader.postings(scope, [word.text for word in left], most=BUDGET, bound=LOOKED_THROUGH)
        used, left = used + left, ()
    skipped = {word.text for word in left}
    seen_all = indexed or total < LOOKED_THROUGH
    exhaustive = not truncated and not left and is_exhaustive(used) and seen_all
    sought = tuple(word for word in words if word not in skipped)
    return _Found(best(used, postings, total, limit), sought, exhaustive)


async def _asked_now(reader: Reader, scope: Scope, message: str, episodes: Sequence[Episode]) -> int | None:
    """Find the message itself among the episodes: the newest one that says the same and was not answered yet."""
    said = message.strip()
    same = [e for e in episodes if e.role == "user" and e.content.strip() == said]
    if not same:
        return None
    newest = max(same, key=lambda e: (e.timestamp, e.id))
    answers = Filter(session_id=newest.session_id, roles=("assistant",))
    cursor = Cursor(to_micros(newest.timestamp), newest.id)
    answered = await reader.replay(Scope(scope.agent_id, answers), limit=1, after=cursor)
    return None if answered else newest.id


def _merge_repeats(episodes: Sequence[Episode], keep: Sequence[Episode] = ()) -> list[Episode]:
    """Drop each episode that says in the same role what one before it says, or what another list's already does."""
    seen = {(e.role, e.content): e.id for e in keep}
    return [e for e in episodes if seen.setdefault((e.role, e.content), e.id) == e.id]
