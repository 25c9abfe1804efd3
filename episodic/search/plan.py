"""Which words of a query bring in candidates, and which only tell these apart. Pure.

A rare word says more and costs less, so the rarest bring in the candidates while their frequencies add up to a budget;
the common ones are looked for among those alone, which costs little whatever their frequency. Measured on LoCoMo
questions among a million rows, that finds as much as ranking every row that holds any word does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from episodic.found import Use
from episodic.ports import Lookup

__all__ = [
    "BUDGET",
    "COUNTED",
    "LOOKED_THROUGH",
    "Plan",
    "Word",
    "choose",
    "count_to",
    "fits",
    "gather",
    "is_exhaustive",
    "look_through",
    "lookups",
    "used",
]

# Rows that the words of one search may bring in together. With half as many again no more is found.
BUDGET = 2_000

# Frequencies are counted up to here, which takes a millisecond or two when a word is first asked for; a word that
# passes it weighs as one that reaches it.
COUNTED = 50_000
# A query of many words counts each up to a half of that, or a quarter, so that together they cost no more than this.
COUNTED_TOGETHER = 200_000

# A narrow scope lies where its newest episodes do, so many of them; without an index no others are compared.
LOOKED_THROUGH = 20_000

# A filter looks through as many rows of a word, the newest first, and of all words together.
PER_WORD = 10_000
PER_SEARCH = 30_000

# Where even the rarest passes the budget: two common words say together what neither does alone.
FEWEST_WORDS = 2

# Common words that tell candidates apart, the rarest of them: each takes half a millisecond. In the haystack as much is
# found with three as with all of them.
MOST_BESIDE = 4


class Word(NamedTuple):
    """A word that occurs in scope, and in how many episodes, counted up to `count_to`."""

    text: str
    frequency: int


class Plan(NamedTuple):
    """The words that occur, the rarest first: those that bring in candidates, and those looked for among these."""

    kept: tuple[Word, ...]
    left: tuple[Word, ...]


def count_to(words: int) -> int:
    """Say up to where each of so many words is counted: few steps, since what is known of a word is kept for each."""
    bound = COUNTED
    while bound * words > COUNTED_TOGETHER:
        bound //= 2
    return bound


def look_through(lookups: int) -> int:
    """Say how many rows of each of so many words a filter looks through."""
    return min(PER_WORD, PER_SEARCH // lookups)


def choose(words: Sequence[str], frequencies: Sequence[int], budget: int = BUDGET) -> Plan:
    """Keep the rarest words within the budget or, if there is none, the two rarest that occur.

    Args:
        words: the words of the query, distinct.
        frequencies: how many episodes in scope hold each.
        budget: rows that they may bring in together.
    """
    counted = (Word(text, frequency) for text, frequency in zip(words, frequencies, strict=True) if frequency)
    present = sorted(counted, key=lambda word: word.frequency)
    spent = accumulate(word.frequency for word in present)
    within = sum(total <= budget for total in spent) or FEWEST_WORDS
    return Plan(tuple(present[:within]), tuple(present[within:]))


def fits(words: Sequence[Word], budget: int = BUDGET) -> bool:
    """Tell whether words bring in no more rows together than the budget."""
    return sum(word.frequency for word in words) <= budget


def is_exhaustive(words: Sequence[Word], most: int = BUDGET) -> bool:
    """Tell whether the newest `most` episodes that hold each word are all that do."""
    return all(word.frequency <= most for word in words)


def lookups(plan: Plan) -> list[Lookup]:
    """Say what to look up: the kept words, and each other one where a kept one stands.

    Words that pass the budget bring in their newest rows only, so with each of them the others are looked up apart:
    that finds what holds both, however old.
    """
    alone = [Lookup(word.text, word.frequency) for word in plan.kept]
    if fits(plan.kept):
        beside, others = [word.text for word in plan.kept], sum(word.frequency for word in plan.kept)
        return alone + [Lookup(word.text, word.frequency, beside, others) for word in plan.left[:MOST_BESIDE]]
    return alone + [
        Lookup(word.text, word.frequency, [anchor.text], anchor.frequency)
        for place, anchor in enumerate(plan.kept)
        for word in (*plan.kept[place + 1 :], *plan.left[: MOST_BESIDE // len(plan.kept)])
    ]


def gather(wanted: Sequence[Lookup], postings: Sequence[Sequence[int]]) -> dict[str, set[int]]:
    """Put together which episodes hold each word, from all lookups that tell.

    Args:
        wanted: what was looked up.
        postings: the episodes that each lookup found.
    """
    held: dict[str, set[int]] = {}
    for lookup, ids in zip(wanted, postings, strict=True):
        held.setdefault(lookup.word, set()).update(ids)
        if len(lookup.beside) == 1:
            held[lookup.beside[0]].update(ids)
    return held


def used(word: str, wanted: Sequence[Lookup]) -> Use:
    """Tell what became of a word that occurs.

    Args:
        word: the word.
        wanted: what was looked up.
    """
    alone = {lookup.word for lookup in wanted if not lookup.beside}
    if word in alone:
        return "candidates"
    return "beside" if any(lookup.word == word for lookup in wanted) else "unused"
