"""Scores and orders, compared with slow reference implementations."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodic.ports import Neighbourhood, Surroundings
from episodic.search.plan import Word
from episodic.search.rank import (
    FEWEST_SPREADING,
    LEAST_SHARE,
    NOT_AFTER,
    NOT_BEFORE,
    RECENCY_WEIGHT,
    SPREADING,
    Fused,
    Held,
    best,
    fuse,
    idf,
    in_context,
    spreading,
    weighed,
)

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


def held_in(postings: Sequence[Sequence[int]], total: int = TOTAL) -> list[Held]:
    """Weigh a word for each list."""
    words = words_for(postings)
    return weighed(words, {word.text: set(ids) for word, ids in zip(words, postings, strict=True)}, total)


def slow_best(postings: Sequence[Sequence[int]], total: int, limit: int) -> dict[int, float]:
    """Look at every episode there is, add up each word's weight by the formula, and sort all."""
    scores = {}
    for number in range(1, total + 1):
        weights = [
            max(math.log((total - len(ids) + 0.5) / (len(ids) + 0.5)), 1e-6) for ids in postings if number in ids
        ]
        if weights:
            scores[number] = sum(weights)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:limit])


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
        scored.append(Fused(number, score, relevance_rank, recency_rank, preferred=False))
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
    """Ids, scores and the order are those of adding up and sorting everything."""
    ranked, expected = best(held_in(postings), limit), slow_best(postings, TOTAL, limit)
    assert list(ranked) == list(expected)
    assert list(ranked.values()) == pytest.approx(list(expected.values()))


def test_ties_go_to_the_newer() -> None:
    """Of two episodes with the same words the one with the higher id comes first."""
    assert list(best(held_in([[2, 9, 5]], 100), 2)) == [9, 5]


def test_a_rare_word_beats_a_common_one_and_both_beat_either() -> None:
    """An episode's score is the sum of what its words weigh."""
    assert list(best(held_in([[4, 1], [4, 3, 2]], 100), 10)) == [4, 1, 3, 2]


def test_nothing_found_ranks_nothing() -> None:
    """Without words, or without episodes that hold them, there is no hit."""
    assert best([], 5) == {}
    assert best(held_in([[]]), 5) == {}


def test_hits_that_hold_little_of_what_the_best_one_holds_do_not_spread() -> None:
    """Only the best are looked at among their neighbours, and not too many of them."""
    many = dict.fromkeys(range(2 * SPREADING), 1.0)
    assert spreading({}, 10**6) == []
    assert spreading({3: 10.0, 2: 10 * LEAST_SHARE, 1: 9.9 * LEAST_SHARE}, 10**6) == [3, 2]
    assert spreading(many, 10**6) == list(range(SPREADING))


def test_in_a_small_history_fewer_hits_spread() -> None:
    """As many as suit its size, and never less than a few."""
    many = dict.fromkeys(range(2 * SPREADING), 1.0)
    counts = [len(spreading(many, total)) for total in (0, 10, 320, 340, 800, 1280, 10**6)]
    assert counts == [FEWEST_SPREADING, FEWEST_SPREADING, FEWEST_SPREADING, 17, 40, SPREADING, SPREADING]


def session_of(count: int, center: int) -> Surroundings:
    """Put turn `center` among `count` turns of one session, numbered from 1."""
    before, after = range(center - 1, max(0, center - 4), -1), range(center + 1, min(count, center + 3) + 1)
    return Surroundings(center, "s", list(before), list(after))


def ranking(
    around: Surroundings, named: Collection[str] = (), *, asking: Collection[int] = (), authors: Mapping[int, str] = {}
) -> list[int]:
    """Rank a session in which one turn holds the only word."""
    near = Neighbourhood([around], frozenset(asking), authors)
    ranked = in_context({around.episode_id: 4.0}, near, named, [Held("refund", 4.0, {around.episode_id})], 10)
    return [one.episode_id for one in ranked]


def test_a_hit_leads_its_neighbours_and_the_nearer_the_better() -> None:
    """The turn after a hit gains more than the one before it, and each further one less."""
    assert ranking(session_of(9, 4)) == [4, 5, 3, 6, 2, 7, 1]


def test_a_question_gives_way_to_its_answer() -> None:
    """A turn that asks loses a fifth, so that one which is not as near may come before it."""
    assert ranking(session_of(3, 2), asking={3}) == [2, 1, 3]


def test_who_is_named_has_probably_said_it() -> None:
    """A turn whose author the query names comes before its neighbours, in capitals or not."""
    assert ranking(session_of(4, 2), {"jo"}, authors={4: "Jo Doe"})[:2] == [2, 4]
    assert ranking(session_of(4, 2), {"ann"}, authors={4: "Jo Doe"})[:2] == [2, 3]


def test_a_session_that_says_more_of_it_comes_first() -> None:
    """Of two hits of equal weight the one whose session holds the words oftener leads, although it is older."""
    around = [Surroundings(9, "t", [], []), Surroundings(2, "s", [1], []), Surroundings(1, "s", [], [2])]
    near = Neighbourhood(around, frozenset(), {})
    ranked = in_context(dict.fromkeys((9, 2, 1), 3.0), near, (), [Held("refund", 3.0, {1, 2, 9})], 3)
    assert [one.episode_id for one in ranked] == [2, 1, 9]


def test_a_word_said_over_and_over_counts_once_for_a_turn_near_by() -> None:
    """However many neighbours hold it, a turn without the word gains less than by holding it."""
    turns = list(range(1, 8))
    around = [
        Surroundings(n, "s", [*range(n - 1, max(0, n - 4), -1)], [*range(n + 1, min(7, n + 3) + 1)]) for n in turns
    ]
    words = [Held("refund", 3.0, set(turns) - {4})]
    near = Neighbourhood([one for one in around if one.episode_id != 4], frozenset(), {})
    scores = {one.episode_id: one.score for one in in_context(dict.fromkeys(set(turns) - {4}, 3.0), near, (), words, 9)}
    doubt = math.prod((*NOT_AFTER, *NOT_BEFORE))
    assert scores[1] - scores[4] == pytest.approx(3.0 * doubt)
    assert len({scores[n] for n in turns if n != 4}) == 1


def test_a_neighbour_that_holds_words_gains_them_although_it_was_not_among_the_best() -> None:
    """How many candidates were looked at changes nothing for a turn that comes in as a neighbour."""
    near = Neighbourhood([Surroundings(2, "s", [1], [])], frozenset(), {})
    words = [Held("apple", 5.0, {2}), Held("banana", 3.0, {1, 2})]
    among = in_context({2: 8.0, 1: 3.0}, near, (), words, 2)
    beside = in_context({2: 8.0}, near, (), words, 2)
    assert among == beside
    assert [one.reasons.words for one in beside] == [8.0, 3.0]


def test_only_what_holds_a_word_is_said_to_match() -> None:
    """A neighbour is ranked without a word of its own; of a hit each word is named, the rarest first."""
    near = Neighbourhood([session_of(2, 1)], frozenset(), {})
    words = [Held("ord-1234", 4.0, {1}), Held("refund", 2.0, {1})]
    ranked = in_context({1: 6.0}, near, (), words, 10)
    assert [(one.episode_id, one.matched) for one in ranked] == [(1, ("ord-1234", "refund")), (2, ())]


@given(POSTINGS, LIMITS)
def test_without_surroundings_the_ranking_is_that_of_the_hits(postings: list[list[int]], limit: int) -> None:
    """Hits beyond those that spread keep their scores and their order."""
    words = held_in(postings)
    hits = best(words, TOTAL)
    ranked = in_context(hits, Neighbourhood([], frozenset(), {}), (), words, limit)
    assert [(one.episode_id, one.score) for one in ranked] == list(hits.items())[:limit]
    assert all(one.matched == tuple(word.text for word in words if one.episode_id in word.ids) for one in ranked)


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
