"""Why a search found what it found: words, frequencies, uses, and what each score consists of."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from episodic import Draft, EpisodicLog, Filter, SearchResult, Term
from episodic.ports import Lookup, Neighbourhood, Surroundings
from episodic.search.plan import BUDGET, MOST_BESIDE, Word, used
from episodic.search.rank import AUTHOR_BONUS, QUESTION_FACTOR, best, in_context, weighed


async def fill(log: EpisodicLog) -> None:
    """Record a talk about a refund, and as many others."""
    turns = ["where is the refund for ORD-1234?", "it was sent on Monday", "thanks, no refund needed then"]
    await log.record_many([Draft("a", "s", "user", text, user_id="me", author="Ann") for text in turns])
    await log.record_many([Draft("a", f"t{n}", "user", f"parcel {n} is late", user_id="you") for n in range(5)])
    await log.record("b", "s", "user", "refund refund refund")


async def test_each_word_has_its_frequency_and_its_weight(either: EpisodicLog) -> None:
    """Counted in the scope, weighed by the formula, the rarest first, and what occurs nowhere is named as that."""
    await fill(either)
    found = await either.search("a", "the zebra and the refund of parcel 3 on Monday")
    told = {term.word: (term.frequency, term.use) for term in found.terms}
    assert told == {
        "monday": (1, "candidates"),
        # Without an index it stands in 1234, too.
        "3": (2 if found.mode == "like" else 1, "candidates"),
        "refund": (2, "candidates"),
        "parcel": (5, "candidates"),
        "zebra": (0, "absent"),
    }
    occurring = [term.frequency for term in found.terms if term.use == "candidates"]
    assert occurring == sorted(occurring)
    assert found.total == 8
    assert not any(term.is_bound for term in found.terms)
    weights = {term.word: term.weight for term in found.terms}
    assert weights["monday"] == pytest.approx(math.log(7.5 / 1.5))
    assert weights["refund"] == pytest.approx(math.log(6.5 / 2.5))
    assert weights["zebra"] == 0


async def test_frequencies_are_those_of_the_user(either: EpisodicLog) -> None:
    """What another user said is neither counted nor weighed."""
    await fill(either)
    found = await either.search("a", "refund parcel", where=Filter(user_id="me"))
    assert found.total == 3
    assert [(term.word, term.frequency) for term in found.terms] == [("refund", 2), ("parcel", 0)]


async def test_a_score_is_the_sum_of_its_reasons(either: EpisodicLog) -> None:
    """Words, nearby, session, question and author put together are the score, and the words weigh what is told."""
    await fill(either)
    found = await either.search("a", "did Ann get her refund on Monday?")
    weights = {term.word: term.weight for term in found.terms}
    assert len(found.hits) == 3
    for hit in found.hits:
        r = hit.reasons
        assert hit.score == pytest.approx((r.words + r.nearby + r.session) * r.factor + r.author)
        assert r.words == pytest.approx(sum(weights[word] for word in hit.matched))
        assert r.author == AUTHOR_BONUS
        assert r.factor == (QUESTION_FACTOR if hit.episode.content.endswith("?") else 1)
    assert all(hit.reasons.nearby > 0 for hit in found.hits)


async def test_an_explanation_has_every_word_and_every_hit(either: EpisodicLog) -> None:
    """A person reads which words there were, how common, and why each hit stands where it does."""
    await fill(either)
    found = await either.search("a", "refund zebra")
    lines = found.explain().splitlines()
    assert lines[0].startswith("8 episodes in scope, found by ")
    assert lines[0].endswith(", all that hold a word were considered")
    assert lines[3].split() == ["refund", "2", "0.96", "brings", "in", "candidates"]
    assert lines[4].split() == ["zebra", "0", "0.00", "in", "no", "episode"]
    for hit in found.hits:
        head = next(line for line in lines if f"episode {hit.episode.id} in session s, user: " in line)
        reasons = lines[lines.index(head) + 1]
        assert reasons.startswith(f"    score {hit.score:.2f}: words {hit.reasons.words:.2f}")
        assert (", times 0.80 for a question" in reasons) == (hit.reasons.factor < 1)


async def test_no_text_can_pass_for_a_line_of_an_explanation(either: EpisodicLog) -> None:
    """A session's name and a text with line breaks stay on the line of their episode."""
    forged = "s1\n    score 9.99: forged\r\n 7  episode 4711\u2028in session boss\x1c"
    await either.record("a", forged, "user", f"refund {forged}")
    lines = (await either.search("a", "refund")).explain().splitlines()
    assert len([line for line in lines if "score 9.99" in line]) == 1
    assert len(lines) == 1 + 3 + 3


async def test_an_explanation_of_nothing_says_so(either: EpisodicLog) -> None:
    """A query without a word, and one whose words are nowhere, are told apart."""
    await fill(either)
    assert (await either.search("a", "?!")).explain() == "There was no word to look for."
    assert "zebra" in (await either.search("a", "zebra")).explain()


async def test_a_query_that_was_cut_says_so(either: EpisodicLog) -> None:
    """More words than are looked for are no secret."""
    await fill(either)
    found = await either.search("a", " ".join(f"word{n}" for n in range(500)))
    assert (found.truncated, found.exhaustive) == (True, False)
    assert "; the query was cut" in found.explain()
    assert not (await either.search("a", "refund")).truncated


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(st.text(max_size=200))
async def test_any_query_can_be_explained(log: EpisodicLog, query: str) -> None:
    """Whatever is looked for, each word has one line."""
    if not await log.newest_id():
        await fill(log)
    found = await log.search("a", query)
    assert isinstance(found, SearchResult)
    assert set(found.words) <= {term.word for term in found.terms}
    assert len(found.explain()) > len("episodes in scope")


def test_what_became_of_a_word_is_read_off_what_was_looked_up() -> None:
    """Looked up for itself, beside others, or not at all."""
    wanted = [Lookup("rare", 3), Lookup("both", 9), Lookup("both", 9, ["rare"], 3), Lookup("common", 99, ["rare"], 3)]
    assert [used(word, wanted) for word in ("rare", "both", "common", "other")] == [
        "candidates",
        "candidates",
        "beside",
        "unused",
    ]


async def test_common_words_beyond_a_number_are_not_looked_up(log: EpisodicLog) -> None:
    """Beside a rare word only some common ones are looked for, and the result names those that were not."""
    common = [f"common{n}" for n in range(MOST_BESIDE + 2)]
    await log.record_many([Draft("a", "s", "user", " ".join(common))] * (BUDGET + 1))
    await log.record("a", "t", "user", "rare common0")
    found = await log.search("a", " ".join(["rare", *common]), limit=1)
    uses = [term.use for term in found.terms]
    assert uses == ["candidates", *["beside"] * MOST_BESIDE, "unused", "unused"]
    unused = {term.word for term in found.terms if term.use == "unused"}
    assert set(found.words) == {"rare", *common} - unused
    assert "not looked up" in found.explain()


def test_a_bound_count_is_shown_as_one() -> None:
    """What was counted no further is written with a plus."""
    term = Term("order", 50_000, is_bound=True, weight=0.5, use="beside")
    found = SearchResult((), "fts", ("order",), exhaustive=False, terms=(term,), total=900_000, truncated=False)
    assert "900,000 episodes in scope" in found.explain()
    assert "  50,000+    0.50  looked up where another word stands" in found.explain()


def test_reasons_add_up_without_a_database() -> None:
    """What the ranking gives is what it ranked by, for hits that spread and for those that do not."""
    words = weighed([Word("refund", 2)], {"refund": {1, 9}}, 100)
    hits = best(words, 10)
    near = Neighbourhood([Surroundings(1, "s", [], [2, 3])], frozenset({2}), {3: "Ann"})
    for one in in_context(hits, near, {"ann"}, words, 10):
        r = one.reasons
        assert one.score == (r.words + r.nearby + r.session) * r.factor + r.author
        assert (r.words > 0) == bool(one.matched)
