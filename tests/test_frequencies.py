"""What is remembered of how frequent words are stays true while the log grows, and stays bounded."""

from __future__ import annotations

from pathlib import Path

from episodic import Draft, EpisodicLog
from episodic.sqlite.frequencies import MOST_CHARACTERS, MOST_WORDS, NOTHING, Counted, Frequencies


def known(frequencies: Frequencies, match: str, bound: int = 10) -> Counted:
    """Return what is known of one word."""
    [one] = frequencies.known([("a", match, bound)])
    return one


def test_an_older_count_never_takes_the_place_of_a_newer_one() -> None:
    """Two readers count at once, and the one whose snapshot is older may come last."""
    frequencies = Frequencies()
    frequencies.learn(("a", "refund", 10), Counted(5, upto=50), 0)
    frequencies.learn(("a", "refund", 10), Counted(3, upto=30), 0)
    assert known(frequencies, "refund") == Counted(5, upto=50)


def test_a_count_up_to_one_bound_says_nothing_of_another() -> None:
    """Nine counted up to nine may be a thousand."""
    frequencies = Frequencies()
    frequencies.learn(("a", "refund", 9), Counted(9, upto=50), 0)
    assert known(frequencies, "refund", bound=10) == NOTHING


def test_the_words_asked_for_least_recently_are_dropped() -> None:
    """A full memory keeps what is in use, whenever it was learnt."""
    frequencies = Frequencies()
    for number in range(MOST_WORDS):
        frequencies.learn(("a", str(number), 10), Counted(1, upto=1), 0)
    assert known(frequencies, "0") == Counted(1, upto=1)
    frequencies.learn(("a", "new", 10), Counted(1, upto=1), 0)
    assert known(frequencies, "0") == Counted(1, upto=1)
    assert known(frequencies, "1") == NOTHING
    assert known(frequencies, "new") == Counted(1, upto=1)


def test_what_was_counted_before_a_removal_is_not_learnt_after_it() -> None:
    """A reader with an older snapshot may come last, and its count is of episodes that are gone."""
    frequencies = Frequencies()
    frequencies.learn(("a", "refund", 10), Counted(5, upto=50), 0)
    frequencies.forget(1)
    assert known(frequencies, "refund") == NOTHING
    frequencies.learn(("a", "refund", 10), Counted(5, upto=50), 0)
    assert known(frequencies, "refund") == NOTHING
    frequencies.learn(("a", "refund", 10), Counted(4, upto=50), 1)
    assert known(frequencies, "refund") == Counted(4, upto=50)


def test_a_word_of_hundreds_of_characters_is_not_remembered() -> None:
    """What it would take up in memory is not worth a count."""
    frequencies = Frequencies()
    frequencies.learn(("a", "x" * (MOST_CHARACTERS + 1), 10), Counted(1, upto=1), 0)
    assert known(frequencies, "x" * (MOST_CHARACTERS + 1)) == NOTHING


async def test_what_is_remembered_ranks_as_what_is_counted_anew(log: EpisodicLog, path: Path) -> None:
    """A log that was searched before it grew answers as one that was opened afterwards."""
    for turn in ("refund of the order", "order of a lamp", "the lamp arrived"):
        await log.record_many(Draft("a", f"{turn} {n}", "user", turn) for n in range(20))
        await log.record_many(Draft("b", f"{turn} {n}", "user", "lamp") for n in range(5))
        for query in ("lamp refund", "order", "where is my order of a lamp"):
            async with EpisodicLog.open(path, read_only=True) as fresh:
                assert await log.search("a", query, limit=50) == await fresh.search("a", query, limit=50)
