"""Scores and orders, on the candidates only. Pure."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from episodic.ports import Surroundings, Turn
from episodic.search.plan import Word
from episodic.search.words import parts_of

__all__ = [
    "REACH",
    "RECENCY_WEIGHT",
    "SPREADING",
    "Fused",
    "Held",
    "Scored",
    "best",
    "fuse",
    "idf",
    "in_context",
    "weighed",
]

# Share of the best relevance that the newest episode gains. At 0.1 recency costs about no recall@10 on LoCoMo, at 0.3
# two to three points.
RECENCY_WEIGHT = 0.1

# Floor of a word that more than half of the episodes hold: it must not count against them.
LEAST_IDF = 1e-6


# How far a hit tells of the turns around it, and how much: the turn after it gains most, since an answer follows the
# question whose words match, and each further one less. Found on the dev half of LoCoMo, where neighbours lift
# recall@10 from 0.65 to 0.79.
REACH = 4
AFTER, BEFORE, DECAY = 0.5, 0.35, 0.7

# Only the best hits spread, which bounds the work; more than this many find no more.
SPREADING = 100

# The session as one document: what its turns match together adds to each of them.
SESSION_WEIGHT = 0.4
# BM25's k1: how soon one more turn with the same word adds no more.
SATURATION = 1.2

# An answer is rarely a question itself.
QUESTION_FACTOR = 0.8
# Whoever the query names is probably who said it.
AUTHOR_BONUS = 2.0


class Held(NamedTuple):
    """A word, what it weighs, and the episodes that hold it, of those that were looked at."""

    text: str
    weight: float
    ids: frozenset[int]


class Scored(NamedTuple):
    """One candidate: its score and the words it holds, the rarest first."""

    episode_id: int
    score: float
    matched: tuple[str, ...]


class Fused(NamedTuple):
    """One episode of a fused ranking, with its place in each list, from 1, or None."""

    episode_id: int
    score: float
    relevance_rank: int | None
    recency_rank: int | None


def idf(total: int, frequency: int) -> float:
    """Weigh a word by its rarity: Robertson's ln((N - df + 0.5) / (df + 0.5)), floored.

    Args:
        total: episodes in scope.
        frequency: those that hold the word.
    """
    frequency = min(frequency, total)
    return max(math.log((total - frequency + 0.5) / (frequency + 0.5)), LEAST_IDF)


def weighed(words: Sequence[Word], postings: Sequence[Sequence[int]], total: int) -> list[Held]:
    """Weigh words inside a scope.

    Args:
        words: the words, the rarest first.
        postings: ids of episodes that hold each.
        total: episodes in scope.
    """
    return [
        Held(word.text, idf(total, word.frequency), frozenset(ids)) for word, ids in zip(words, postings, strict=True)
    ]


def best(words: Sequence[Held], limit: int) -> list[Scored]:
    """Rank candidates by the sum of the idf of the words they hold; ties go to the newer.

    Length and repetition are left out on purpose: on chat turns BM25 finds less (recall@10 0.636 against 0.656).

    Args:
        words: the words, the rarest first.
        limit: candidates to return.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for word in words:
        for episode_id in word.ids:
            scores[episode_id] += word.weight
    return _top(scores, words, limit)


def in_context(
    hits: Sequence[Scored],
    around: Sequence[Surroundings],
    named: Collection[str],
    words: Sequence[Held],
    limit: int,
) -> list[Scored]:
    """Rank the hits and the turns around them by what is said near by.

    A turn gains from the hits near it, from its session as a whole, and when its author is named; a question loses.
    Ties go to the newer.

    Args:
        hits: what `best` found, the best first.
        around: the first of them among the turns of their sessions.
        named: parts of the query's words, which an author may be named by.
        words: the words, the rarest first.
        limit: candidates to return.
    """
    scores: defaultdict[int, float] = defaultdict(float, {hit.episode_id: hit.score for hit in hits})
    direct = dict(scores)
    turns: dict[int, Turn] = {}
    session_of: dict[int, str] = {}
    for one in around:
        own = direct[one.turn.episode_id]
        for side, share in ((one.after, AFTER), (one.before, BEFORE)):
            for distance, turn in enumerate(side):
                scores[turn.episode_id] += share * DECAY**distance * own
        for turn in (one.turn, *one.before, *one.after):
            turns[turn.episode_id] = turn
            session_of[turn.episode_id] = one.session_id
    bonus = _session_scores(session_of, words)
    authors = {turn.author for turn in turns.values() if turn.author is not None}
    named_authors = {author for author in authors if not parts_of(author).isdisjoint(named)}
    for number, turn in turns.items():
        scores[number] = (scores[number] + bonus[session_of[number]]) * (QUESTION_FACTOR if turn.asks else 1.0)
        if turn.author in named_authors:
            scores[number] += AUTHOR_BONUS
    return _top(scores, words, limit)


def _session_scores(session_of: Mapping[int, str], words: Sequence[Held]) -> Mapping[str, float]:
    """Score each session as one document by BM25 without length: how many of its turns hold each word."""
    scores: defaultdict[str, float] = defaultdict(float)
    for word in words:
        for session_id, count in Counter(session_of[number] for number in session_of.keys() & word.ids).items():
            scores[session_id] += SESSION_WEIGHT * word.weight * _saturated(count)
    return scores


def _saturated(count: int) -> float:
    return count * (SATURATION + 1) / (count + SATURATION)


def _top(scores: Mapping[int, float], words: Sequence[Held], limit: int) -> list[Scored]:
    top = heapq.nlargest(limit, scores.items(), key=lambda item: (item[1], item[0]))
    return [Scored(number, score, tuple(word.text for word in words if number in word.ids)) for number, score in top]


def fuse(relevant: Mapping[int, float], recent: Sequence[int], limit: int) -> list[Fused]:
    """Fuse relevance with recency: relevance leads, what both agree on comes first.

    The score is relevance as a share of the best, plus `RECENCY_WEIGHT` for the newest down to nothing for the last
    of `recent`. It decides who is in; of those, the ones in both lists come first.

    Args:
        relevant: score by episode id, the best first.
        recent: episode ids, the newest first.
        limit: episodes to return.
    """
    top = max(relevant.values(), default=1.0)
    relevance_ranks = {number: rank for rank, number in enumerate(relevant, start=1)}
    recency_ranks = {number: rank for rank, number in enumerate(recent, start=1)}
    fused = [
        Fused(
            number,
            relevant.get(number, 0.0) / top + RECENCY_WEIGHT * _freshness(recency_ranks.get(number), len(recent)),
            relevance_ranks.get(number),
            recency_ranks.get(number),
        )
        for number in relevance_ranks | recency_ranks
    ]
    chosen = heapq.nlargest(limit, fused, key=lambda item: item.score)
    return sorted(chosen, key=lambda item: item.relevance_rank is None or item.recency_rank is None)


def _freshness(rank: int | None, count: int) -> float:
    return 0.0 if rank is None else 1 - (rank - 1) / count
