"""Scores and orders, on the candidates only. Pure."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from episodic.found import Reasons
from episodic.ports import Neighbourhood, Surroundings
from episodic.search.plan import Word
from episodic.search.words import parts_of

__all__ = [
    "PREFERENCE",
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
    "preferring",
    "spreading",
    "weighed",
]

# Share of the best relevance that the newest episode gains. At 0.1 recency costs about no recall@10 on LoCoMo, at 0.3
# two to three points.
RECENCY_WEIGHT = 0.1

# What relevance is multiplied by for an episode with the outcome that is preferred: it passes those that are up to half
# as relevant again, and leaves out none that is much more so.
PREFERENCE = 1.5

# Floor of a word that more than half of the episodes hold: it must not count against them.
LEAST_IDF = 1e-6


# How likely a turn is about a word that is said so many turns before it, and so many after it: most likely just after
# it, since an answer follows the question whose words match. Found on the dev half of LoCoMo, where neighbours lift
# recall@10 from 0.65 to 0.80; half as much, and twice as far, finds nearly as much.
REACH = 3
AFTER, BEFORE, DECAY = 0.6, 0.45, 0.7
NOT_AFTER = [1 - AFTER * DECAY**distance for distance in range(REACH)]
NOT_BEFORE = [1 - BEFORE * DECAY**distance for distance in range(REACH)]

# Only the best hits spread, which bounds the work: so many at most, and none that holds too little of what the best
# one holds. With twice as many, or all of them, no more is found. In a history of a few hundred episodes fewer do:
# there one in 12 finds as much as one in 20.
SPREADING = 40
FEWEST_SPREADING = 16
SPREADING_SHARE = 20
LEAST_SHARE = 0.35

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
    ids: AbstractSet[int]


class Scored(NamedTuple):
    """One candidate: its score, the words it holds, the rarest first, and what the score consists of."""

    episode_id: int
    score: float
    matched: tuple[str, ...]
    reasons: Reasons


class Fused(NamedTuple):
    """One episode of a fused ranking, with its place in each list, from 1, or None, and whether it was preferred."""

    episode_id: int
    score: float
    relevance_rank: int | None
    recency_rank: int | None
    preferred: bool


def idf(total: int, frequency: int) -> float:
    """Weigh a word by its rarity: Robertson's ln((N - df + 0.5) / (df + 0.5)), floored.

    Args:
        total: episodes in scope.
        frequency: those that hold the word.
    """
    frequency = min(frequency, total)
    return max(math.log((total - frequency + 0.5) / (frequency + 0.5)), LEAST_IDF)


def weighed(words: Sequence[Word], held: Mapping[str, AbstractSet[int]], total: int) -> list[Held]:
    """Weigh words inside a scope.

    Args:
        words: the words, the rarest first.
        held: ids of the episodes that hold each, of those that were looked at.
        total: episodes in scope.
    """
    return [Held(word.text, idf(total, word.frequency), held.get(word.text, frozenset())) for word in words]


def best(words: Sequence[Held], limit: int) -> dict[int, float]:
    """Score candidates by the sum of the idf of the words they hold; ties go to the newer.

    Length and repetition are left out on purpose: on chat turns BM25 finds less (recall@10 0.636 against 0.656).

    Args:
        words: the words.
        limit: candidates to return.

    Returns:
        The score of the best by their ids, the best first.
    """
    scores: dict[int, float] = {}
    for word in words:
        # By whole sets: several times quicker than one by one.
        held = dict.fromkeys(word.ids, word.weight)
        for episode_id in scores.keys() & word.ids:
            held[episode_id] += scores[episode_id]
        scores |= held
    return dict(_top(scores, limit))


def spreading(hits: Mapping[int, float], total: int) -> list[int]:
    """Choose the hits whose neighbours are looked at.

    Args:
        hits: what `best` found, the best first.
        total: episodes in scope.
    """
    least = LEAST_SHARE * next(iter(hits.values()), 0.0)
    most = min(SPREADING, max(FEWEST_SPREADING, total // SPREADING_SHARE))
    return [number for number, score in islice(hits.items(), most) if score >= least]


def in_context(
    hits: Mapping[int, float], near: Neighbourhood, named: Collection[str], words: Sequence[Held], limit: int
) -> list[Scored]:
    """Rank the hits and the turns around them by what is said near by.

    A turn gains from each word that it does not hold itself but that is said near it, from its session as a whole, and
    when its author is named; a question loses. Ties go to the newer.

    Args:
        hits: what `best` found.
        near: some of them among the turns of their sessions.
        named: parts of the query's words, which an author may be named by.
        words: the words, the rarest first.
        limit: candidates to return.
    """
    session_of: dict[int, str] = {}
    for one in near.around:
        session_of.update(dict.fromkeys((one.episode_id, *one.before, *one.after), one.session_id))
    # Turns beside a hit that hold words themselves, and were not among the best.
    own = dict(hits)
    for word in words:
        for number in (session_of.keys() & word.ids) - hits.keys():
            own[number] = own.get(number, 0.0) + word.weight
    heard = _heard(near.around, words)
    of_session = _session_scores(session_of, words)
    named_authors = {author for author in set(near.authors.values()) if not parts_of(author).isdisjoint(named)}
    bonus = {number: AUTHOR_BONUS for number, author in near.authors.items() if author in named_authors}

    def reasons(number: int) -> Reasons:
        session = of_session.get(session_of[number], 0.0) if number in session_of else 0.0
        factor = QUESTION_FACTOR if number in near.asking else 1.0
        return Reasons(own.get(number, 0.0), heard.get(number, 0.0), session, factor, bonus.get(number, 0.0))

    # What `reasons` says, put together for all of them, which takes a fifth of the time.
    scores = dict(own)
    for number, gain in heard.items():
        scores[number] = scores.get(number, 0.0) + gain
    for number, session_id in session_of.items():
        score = scores.get(number, 0.0) + of_session.get(session_id, 0.0)
        scores[number] = score * QUESTION_FACTOR if number in near.asking else score
    for number, gain in bonus.items():
        scores[number] += gain
    return [
        Scored(number, score, tuple(word.text for word in words if number in word.ids), reasons(number))
        for number, score in _top(scores, limit)
    ]


def _heard(around: Sequence[Surroundings], words: Sequence[Held]) -> Mapping[int, float]:
    """Score each turn by the words that it does not hold itself, but that turns near by hold.

    How likely it is about a word all the same is one minus the product of the doubts of all that hold it, so that a
    word repeated in a row counts once.
    """
    doubted = [
        (one.episode_id, [*zip(one.after, NOT_AFTER, strict=False), *zip(one.before, NOT_BEFORE, strict=False)])
        for one in around
    ]
    heard: dict[int, float] = {}
    for word in words:
        doubts: dict[int, float] = {}
        for episode_id, beside in doubted:
            if episode_id in word.ids:
                for number, doubt in beside:
                    doubts[number] = doubts.get(number, 1.0) * doubt
        for number, doubt in doubts.items():
            if number not in word.ids:
                heard[number] = heard.get(number, 0.0) + word.weight * (1 - doubt)
    return heard


def _session_scores(session_of: Mapping[int, str], words: Sequence[Held]) -> Mapping[str, float]:
    """Score each session as one document by BM25 without length: how many of its turns hold each word."""
    scores: defaultdict[str, float] = defaultdict(float)
    for word in words:
        for session_id, count in Counter(session_of[number] for number in session_of.keys() & word.ids).items():
            scores[session_id] += SESSION_WEIGHT * word.weight * _saturated(count)
    return scores


def _saturated(count: int) -> float:
    return count * (SATURATION + 1) / (count + SATURATION)


def _top(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """Return the best, the best first; ties go to the newer."""
    least = sorted(scores.values(), reverse=True)[limit - 1] if len(scores) > limit else -math.inf
    chosen = sorted(((score, number) for number, score in scores.items() if score >= least), reverse=True)
    return [(number, score) for score, number in chosen[:limit]]


def preferring(scores: Mapping[int, float], preferred: AbstractSet[int]) -> dict[int, float]:
    """Weigh what is preferred by `PREFERENCE`, and put all in order anew.

    Args:
        scores: relevance by episode id, the best first.
        preferred: ids of those that are preferred.
    """
    weighted = [(number, score * PREFERENCE if number in preferred else score) for number, score in scores.items()]
    return dict(sorted(weighted, key=lambda item: item[1], reverse=True))


def fuse(
    relevant: Mapping[int, float], recent: Sequence[int], limit: int, preferred: AbstractSet[int] = frozenset()
) -> list[Fused]:
    """Fuse relevance with recency: relevance leads, what is preferred comes first, then what both agree on.

    The score is relevance as a share of the best, plus `RECENCY_WEIGHT` for the newest down to nothing for the last
    of `recent`. It decides who is in.

    Args:
        relevant: score by episode id, the best first.
        recent: episode ids, the newest first.
        limit: episodes to return.
        preferred: ids of those of the relevant that come first.
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
            number in preferred,
        )
        for number in relevance_ranks | recency_ranks
    ]
    chosen = heapq.nlargest(limit, fused, key=lambda item: item.score)
    return sorted(
        chosen,
        key=lambda item: (not item.preferred, item.relevance_rank is None or item.recency_rank is None),
    )


def _freshness(rank: int | None, count: int) -> float:
    return 0.0 if rank is None else 1 - (rank - 1) / count
