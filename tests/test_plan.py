"""Which words of a query are worth their cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodic.ports import Lookup
from episodic.search.plan import (
    BUDGET,
    COUNTED,
    COUNTED_TOGETHER,
    FEWEST_WORDS,
    PER_SEARCH,
    PER_WORD,
    Plan,
    Word,
    choose,
    count_to,
    gather,
    is_exhaustive,
    look_through,
    lookups,
)

FREQUENCIES = st.lists(st.integers(0, COUNTED), max_size=12)


def named(frequencies: list[int]) -> list[str]:
    """Name a word for each frequency."""
    return [f"w{place}" for place in range(len(frequencies))]


def slow_choice(words: list[str], frequencies: list[int], budget: int) -> Plan:
    """Take the rarest word again and again, until the next one would pass the budget; two if already the first does."""
    present = [Word(*pair) for pair in zip(words, frequencies, strict=True) if pair[1] > 0]
    kept: list[Word] = []
    while present:
        rarest = min(present, key=lambda word: word.frequency)
        passes = sum(word.frequency for word in kept) + rarest.frequency > budget
        if passes and (len(kept) >= FEWEST_WORDS or (sum(word.frequency for word in kept) <= budget and kept)):
            break
        present.remove(rarest)
        kept.append(rarest)
    return Plan(tuple(kept), tuple(sorted(present, key=lambda word: word.frequency)))


def test_the_rarest_words_are_kept_within_the_budget() -> None:
    """Words are kept from the rarest on while their frequencies add up to no more than the budget."""
    plan = choose(["late", "refund", "order", "once"], [60, 10, 40, 1], budget=51)
    assert plan.kept == (Word("once", 1), Word("refund", 10), Word("order", 40))
    assert plan.left == (Word("late", 60),)


def test_the_two_rarest_words_are_kept_whatever_they_cost() -> None:
    """A query of common words only is still searched by two of them."""
    plan = choose(["order", "late", "help"], [900, 800, 950], budget=1)
    assert plan == ((Word("late", 800), Word("order", 900)), (Word("help", 950),))


def test_one_rare_word_is_enough() -> None:
    """A common word does not join a rare one that is within the budget: it is looked for beside it."""
    assert choose(["order", "ord-1234"], [900, 1], budget=100) == ((Word("ord-1234", 1),), (Word("order", 900),))


def test_common_words_are_looked_for_where_a_rare_one_stands() -> None:
    """One lookup for each common word, beside all the rare ones together."""
    plan = Plan((Word("a", 1), Word("b", 2)), (Word("c", BUDGET), Word("d", COUNTED)))
    assert lookups(plan) == [
        Lookup("a", 1),
        Lookup("b", 2),
        Lookup("c", BUDGET, ["a", "b"], 3),
        Lookup("d", COUNTED, ["a", "b"], 3),
    ]


def test_common_words_alone_are_looked_for_in_pairs_with_the_two_rarest() -> None:
    """Their newest rows, and what holds two of them however old."""
    plan = Plan((Word("a", BUDGET), Word("b", BUDGET + 1)), (Word("c", COUNTED),))
    assert lookups(plan) == [
        Lookup("a", BUDGET),
        Lookup("b", BUDGET + 1),
        Lookup("b", BUDGET + 1, ["a"], BUDGET),
        Lookup("c", COUNTED, ["a"], BUDGET),
        Lookup("c", COUNTED, ["b"], BUDGET + 1),
    ]


def test_what_holds_a_pair_holds_both_words() -> None:
    """An episode found by two words together is known to hold either."""
    wanted = [
        Lookup("a", 9),
        Lookup("b", 9),
        Lookup("b", 9, ["a"], 9),
        Lookup("c", 9, ["a"], 9),
        Lookup("c", 9, ["b"], 9),
    ]
    held = gather(wanted, [[9], [8], [3], [2], [1]])
    assert held == {"a": {9, 3, 2}, "b": {8, 3, 1}, "c": {2, 1}}


def test_what_holds_a_word_beside_one_of_several_is_known_to_hold_that_word_alone() -> None:
    """Which of the others it holds is told by their own lookups."""
    assert gather([Lookup("a", 1), Lookup("b", 1), Lookup("c", 9, ["a", "b"], 2)], [[1], [2], [1, 2]]) == {
        "a": {1},
        "b": {2},
        "c": {1, 2},
    }


def test_a_word_that_does_not_occur_is_in_neither_part() -> None:
    """It costs nothing and brings in nothing."""
    assert choose(["zebra", "order"], [0, 3]) == ((Word("order", 3),), ())
    assert choose(["zebra"], [0]) == ((), ())
    assert choose([], []) == ((), ())


def test_equally_rare_words_stay_in_the_order_of_the_query() -> None:
    """The plan of a query is the same each time."""
    assert [word.text for word in choose(["b", "c", "a"], [5, 5, 5]).kept] == ["b", "c", "a"]


def test_the_default_budget_holds() -> None:
    """Without a budget of its own a search brings in `BUDGET` rows at the most, unless the rarest alone has more."""
    assert choose(["a", "b", "c"], [BUDGET - 2, 1, 1]).left == ()
    assert choose(["a", "b", "c"], [BUDGET - 1, 1, 1]).left == (Word("a", BUDGET - 1),)


@given(FREQUENCIES, st.integers(0, 4 * COUNTED))
def test_the_plan_is_the_one_of_a_slow_reference(frequencies: list[int], budget: int) -> None:
    """What is kept and what is left is what taking the rarest word again and again gives."""
    words = named(frequencies)
    assert choose(words, frequencies, budget) == slow_choice(words, frequencies, budget)


@given(FREQUENCIES)
def test_nothing_that_occurs_is_lost(frequencies: list[int]) -> None:
    """Kept and left together are the words that occur."""
    words = named(frequencies)
    kept, left = choose(words, frequencies)
    assert sorted(kept + left) == sorted(Word(*pair) for pair in zip(words, frequencies, strict=True) if pair[1])


@pytest.mark.parametrize(
    ("frequencies", "exhaustive"),
    [([], True), ([BUDGET], True), ([COUNTED], False), ([1, COUNTED, 2], False)],
)
def test_a_search_is_exhaustive_when_all_episodes_of_each_word_fit(frequencies: list[int], *, exhaustive: bool) -> None:
    """A frequency that passed the budget was not counted to its end, so it may be any number."""
    words = [Word(*pair) for pair in zip(named(frequencies), frequencies, strict=True)]
    assert is_exhaustive(words) is exhaustive


@given(st.integers(1, 1_000))
def test_counting_and_filtering_are_bounded_whatever_is_asked(words: int) -> None:
    """However many words there are, all of them together cost no more than a bound, and few ones are counted far."""
    assert count_to(words) * words <= COUNTED_TOGETHER
    assert look_through(words) * words <= PER_SEARCH
    assert count_to(words) in {COUNTED >> halved for halved in range(10)}
    assert (count_to(1), look_through(1)) == (COUNTED, PER_WORD)
