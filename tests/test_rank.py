"""Scores and orders, compared with slow reference implementations."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodic.ports import Surroundings, Turn
from episodic.search.plan import Word
from episodic.search.rank import RECENCY_WEIGHT, Fused, Held, Scored, best, fuse, idf, in_context, weighed

TOTAL = 40
POSTINGS = st.lists(st.lists(st.integers(1, TOTAL), unique=True), max_size=6)
RELEVANT = st.dictionaries(st.integers(1, TOTAL), st.floats(0.001, 100)).map(
    lambda scores: dict(sorted(scores.items(), key=lambda item: -item[1]))
)
RECENT = st.lists(st.integers(1, TOTAL), unique=True)
LIMITS = st.integers(1, 50)


def words_for(postings: Sequence[Sequence[int]]) -> list[Word]:
    """Name a word for each list, with its true frequency."""
    return [Word(f"w{place}", len(ids)) for place, ids in enumerate(postings)]


def slow_best(words: Sequence[Word], postings: Sequence[Sequence[int]], total: int, limit: int) -> list[Scored]:
    """Look at every episode there is, add up each word's weight by the formula, and sort all."""
    ranked = []
    for number in range(1, total + 1):
        score, matched = 0.0, []
        for word, ids in zip(words, postings, strict=True):
            if number in ids:
                score += max(math.log((total - word.frequency + 0.5) / (word.frequency + 0.5)), 1e-6)
                matched.append(word.text)
        if matched:
            ranked.append(Scored(number, score, tuple(matched)))
    return sorted(ranked, key=lambda one: (-one.score, -one.episode_id))[:limit]


def slow_fusion(relevant: Mapping[int, float], recent: Sequence[int], limit: int) -> list[Fused]:
    """Score every episode of either list by the formula, cut, and put those of both lists first."""
    by_relevance = list(relevant)
    scored = []
    for number in [*by_relevance, *(other for other in recent if other not in relevant)]:
        score, relevance_rank, recency_rank = 0.0, None, None
        if number in relevant:
            score += relevant[number] / relevant[by_relevance[0]]
            relevance_rank = by_relevance.index(number) + 1
        if number in recent:
            score += 0.1 * (1 - recent.index(number) / len(recent))
            recency_rank = recent.index(number) + 1
        scored.append(Fused(number, score, relevance_rank, recency_rank))
    chosen = sorted(scored, key=lambda one: -one.score)[:limit]
    both = [one for one in chosen if one.relevance_rank and one.recency_rank]
    return both + [one for one in chosen if one not in both]


@pytest.mark.parametrize(
    ("total", "frequency", "weight"),
    [(9, 1, math.log(8.5 / 1.5)), (100, 0, math.log(100.5 / 0.5)), (1_000_000, 3, math.log(999_997.5 / 3.5))],
)
def test_a_word_weighs_by_its_rarity(total: int, frequency: int, weight: float) -> None:
    """The weight is Robertson's ln((N - df + 0.5) / (df + 0.5))."""
    assert idf(total, frequency) == pytest.approx(weight)


@pytest.mark.parametrize(("total", "frequency"), [(1, 1), (2, 1), (10, 5), (10, 10), (0, 0), (5, 20_000)])
def test_a_word_never_counts_against_an_episode(total: int, frequency: int) -> None:
    """In half of the episodes or more a word weighs next to nothing, and never less than that."""
    assert 0 < idf(total, frequency) < 0.01


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_rarer_word_weighs_no_less(total: int, one: int, other: int) -> None:
    """The weight falls with the frequency."""
    rare, common = sorted((one, other))
    assert idf(total, rare) >= idf(total, common)


@given(POSTINGS, LIMITS)
def test_the_ranking_is_the_one_of_a_slow_reference(postings: list[list[int]], limit: int) -> None:
    """Ids, scores, the words matched and the order are those of adding up and sorting everything."""
    words = words_for(postings)
    ranked, expected = best(weighed(words, postings, TOTAL), limit), slow_best(words, postings, TOTAL, limit)
    assert [(one.episode_id, one.matched) for one in ranked] == [(one.episode_id, one.matched) for one in expected]
    assert [one.score for one in ranked] == pytest.approx([one.score for one in expected])


def test_ties_go_to_the_newer() -> None:
    """Of two episodes with the same words the one with the higher id comes first."""
    assert [one.episode_id for one in best(weighed([Word("refund", 3)], [[2, 9, 5]], 100), 2)] == [9, 5]


def test_a_rare_word_beats_a_common_one_and_both_beat_either() -> None:
    """An episode's score is the sum of what its words weigh."""
    words = [Word("ord-1234", 2), Word("order", 3)]
    assert [one.episode_id for one in best(weighed(words, [[4, 1], [4, 3, 2]], 100), 10)] == [4, 1, 3, 2]


def test_matched_words_are_the_rarest_first() -> None:
    """The words that a hit holds stand in the order of the plan."""
    [hit] = best(weighed([Word("ord-1234", 1), Word("order", 1)], [[7], [7]], 100), 10)
    assert hit.matched == ("ord-1234", "order")


def test_nothing_found_ranks_nothing() -> None:
    """Without words, or without episodes that hold them, there is no hit."""
    assert best(weighed([], [], 10), 5) == []
    assert best(weighed([Word("zebra", 0)], [[]], 10), 5) == []


def turn(number: int, *, author: str | None = None, asks: bool = False) -> Turn:
    """Make a turn."""
    return Turn(number, author, asks)


def session_of(count: int, center: int, turns: Mapping[int, Turn] | None = None) -> Surroundings:
    """Put turn `center` among `count` turns of one session, numbered from 1."""
    given_turns = turns or {}
    before = [given_turns.get(n, turn(n)) for n in range(center - 1, max(0, center - 5), -1)]
    after = [given_turns.get(n, turn(n)) for n in range(center + 1, min(count, center + 4) + 1)]
    return Surroundings(given_turns.get(center, turn(center)), "s", before, after)


def ranking(around: Surroundings, named: Collection[str] = ()) -> list[int]:
    """Rank a session in which one turn holds the only word."""
    center = around.turn.episode_id
    hits = [Scored(center, 4.0, ("refund",))]
    ranked = in_context(hits, [around], named, [Held("refund", 4.0, frozenset({center}))], 10)
    return [one.episode_id for one in ranked]


def test_a_hit_leads_its_neighbours_and_the_nearer_the_better() -> None:
    """The turn after a hit gains more than the one before it, and each further one less."""
    assert ranking(session_of(9, 4)) == [4, 5, 6, 3, 7, 2, 8, 1]


def test_a_question_gives_way_to_its_answer() -> None:
    """A turn that asks loses a fifth, so that one which is not as near may come before it."""
    assert ranking(session_of(3, 2, {3: turn(3, asks=True)})) == [2, 1, 3]
    assert ranking(session_of(4, 2, {3: turn(3, asks=True), 4: turn(4)})) == [2, 4, 1, 3]


def test_who_is_named_has_probably_said_it() -> None:
    """A turn whose author the query names comes before its neighbours, in capitals or not."""
    assert ranking(session_of(4, 2, {4: turn(4, author="Jo Doe")}), {"jo"})[:2] == [2, 4]
    assert ranking(session_of(4, 2, {4: turn(4, author="Jo Doe")}), {"ann"})[:2] == [2, 3]


def test_a_session_that_says_more_of_it_comes_first() -> None:
    """Of two hits of equal weight the one whose session holds the words oftener leads, although it is older."""
    words = [Held("refund", 3.0, frozenset({1, 2, 9}))]
    hits = [Scored(number, 3.0, ("refund",)) for number in (9, 2, 1)]
    around = [
        Surroundings(turn(9), "t", [], []),
        Surroundings(turn(2), "s", [turn(1)], []),
        Surroundings(turn(1), "s", [], [turn(2)]),
    ]
    assert [one.episode_id for one in in_context(hits, around, (), words, 3)] == [2, 1, 9]


def test_only_what_holds_a_word_is_said_to_match() -> None:
    """A neighbour is ranked without a word of its own; of a hit each word is named."""
    around = session_of(2, 1)
    words = [Held("refund", 4.0, frozenset({1}))]
    ranked = in_context([Scored(1, 4.0, ("refund",))], [around], (), words, 10)
    assert [(one.episode_id, one.matched) for one in ranked] == [(1, ("refund",)), (2, ())]


@given(POSTINGS, LIMITS)
def test_without_surroundings_the_ranking_is_that_of_the_hits(postings: list[list[int]], limit: int) -> None:
    """Hits beyond those that spread keep their scores and their order."""
    words = weighed(words_for(postings), postings, TOTAL)
    hits = best(words, TOTAL)
    assert in_context(hits, [], (), words, limit) == hits[:limit]


@given(RELEVANT, RECENT, LIMITS)
def test_the_fusion_is_the_one_of_a_slow_reference(relevant: dict[int, float], recent: list[int], limit: int) -> None:
    """Ids, scores, both ranks and the order are those of scoring and sorting everything."""
    fused, expected = fuse(relevant, recent, limit), slow_fusion(relevant, recent, limit)
    assert [(one.relevance_rank, one.recency_rank) for one in fused] == [
        (one.relevance_rank, one.recency_rank) for one in expected
    ]
    assert [one.episode_id for one in fused] == [one.episode_id for one in expected]
    assert [one.score for one in fused] == pytest.approx([one.score for one in expected])


@given(RELEVANT, RECENT, LIMITS)
def test_a_fusion_names_each_episode_once_within_the_limit(
    relevant: dict[int, float], recent: list[int], limit: int
) -> None:
    """As many episodes as there are, up to the limit, and none twice."""
    ids = [one.episode_id for one in fuse(relevant, recent, limit)]
    assert len(ids) == len(set(ids)) == min(limit, len(relevant.keys() | set(recent)))


@given(RELEVANT.filter(bool), RECENT, LIMITS)
def test_relevance_leads(relevant: dict[int, float], recent: list[int], limit: int) -> None:
    """However little room there is, some of the relevant is in, since recency alone adds up to a tenth only."""
    fused = fuse(relevant, recent, limit)
    assert any(one.relevance_rank for one in fused)
    assert all(one.score <= RECENCY_WEIGHT for one in fused if one.relevance_rank is None)


def test_what_both_lists_hold_comes_first() -> None:
    """An episode that is relevant and recent stands before a more relevant one that is not recent."""
    fused = fuse({1: 10.0, 2: 5.0}, [3, 2], 3)
    assert [(one.episode_id, one.relevance_rank, one.recency_rank) for one in fused] == [
        (2, 2, 2),
        (1, 1, None),
        (3, None, 1),
    ]


def test_recency_alone_is_in_its_own_order() -> None:
    """When nothing is relevant the newest are given, newest first."""
    assert [one.episode_id for one in fuse({}, [8, 5, 3], 2)] == [8, 5]
