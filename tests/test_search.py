"""Searching by any text: what is there is found, and how the search went is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from episodic import Draft, EpisodicLog, Filter, QueryError, SearchResult
from episodic.search.plan import BUDGET, LOOKED_THROUGH
from episodic.search.words import MOST_WORDS
from tests.conftest import Sql

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


async def record_all(log: EpisodicLog, *contents: str) -> None:
    """Record texts, each in a session of its own, where no neighbour gains from it."""
    await log.record_many([Draft("a", content, "user", content) for content in contents])


def contents_of(result: SearchResult) -> list[str]:
    """Return what was found, the best first."""
    return [hit.episode.content for hit in result.hits]


OTHERS = ["my parcel is late", "the invoice is wrong", "thanks for your help", "please call me back", "nothing works"]

IDENTIFIERS = [
    ("I was charged twice for order ORD-1234.", "ORD-1234"),
    ("I was charged twice for order ORD-1234.", "what about ord-1234?"),
    ("I was charged twice for order ORD-1234.", "1234"),
    ("see ticket #4432, please", "#4432"),
    ("see ticket #4432, please", "4432"),
    ("since v1.2.3 it crashes", "v1.2.3"),
    ("since v1.2.3 it crashes", "is it (v1.2.3)?"),
    ("my address is jo.doe@example.co", "jo.doe@example.co"),
    ("my address is a@b.co", "a@b.co"),
    ("set my_variable to 1", "my_variable"),
    ("either a/b or none", "a/b"),
    ("I don't know", "don't"),
    ("I don't know", "don’t"),
    ("I don’t know", "don't"),
    ("the customer's order", "customer’s"),
    ("status: done", "status: done"),
    ('he said foo"bar', 'foo"bar'),
    ("price is $9.99", "$9.99"),
    ("at 10:30 tomorrow", "10:30"),
    ("https://example.com/help?x=1", "example.com/help"),
    ("path C:\\Users\\jo", "C:\\Users"),
    ("100% of it", "100%"),
    ("Über Größe und Ärger", "ärger"),
    ("Über Größe und Ärger", "ÜBER GRÖẞE"),
    ("ВОЗВРАТ денег", "возврат"),
    ("возврат денег", "ВОЗВРАТ"),
    ("the refund", "refund OR"),
    ("the refund", "NEAR(refund)"),
    ("the refund", "-refund"),
    ("the refund", "^refund*"),
    ("the refund", "content:refund"),
    ("the refund", "refund NOT refund"),
    ("the refund", "(" * 100 + "refund"),
    ("the refund", "refund\0"),
    ("the refund", "\ud83drefund"),
    ("the refund", "refund " * 100_000),
]


@pytest.mark.parametrize(("content", "query"), IDENTIFIERS)
async def test_what_is_there_is_found_by_its_name(either: EpisodicLog, content: str, query: str) -> None:
    """Identifiers, contractions, capitals of any alphabet and the syntax of the index: the episode comes first."""
    await record_all(either, content, *OTHERS)
    assert contents_of(await either.search("a", query))[:1] == [content]


@pytest.mark.parametrize(
    ("exact", "near", "query"),
    [
        ("order ORD-1234", "order ORD-1235 and 1234", "ORD-1234"),
        ("order ORD-1234", "the 1234th order ORD-99", "is ORD-1234 there?"),
        ("since v1.2.3", "since v1 of 3.2 and 2.3", "v1.2.3"),
        ("jo@example.co", "example jo co", "jo@example.co"),
        ("my_variable", "variable my", "my_variable"),
    ],
)
async def test_a_whole_identifier_beats_its_parts(either: EpisodicLog, exact: str, near: str, query: str) -> None:
    """An episode with the identifier as it was asked for comes before one with its parts elsewhere."""
    await record_all(either, exact, near, *OTHERS)
    assert contents_of(await either.search("a", query))[0] == exact


async def test_a_name_of_one_letter_and_signs_is_found(log: EpisodicLog) -> None:
    """`c++` finds who said it; signs that no other letter stands behind are not compared."""
    await record_all(log, "a library in c++", *OTHERS)
    assert contents_of(await log.search("a", "is there one in c++?")) == ["a library in c++"]


async def test_an_identifier_is_not_found_in_its_neighbour(log: EpisodicLog) -> None:
    """ORD-1234 is not ORD-12345: parts are compared as whole words."""
    await record_all(log, "order ORD-12345", "order XORD-1234Y")
    assert contents_of(await log.search("a", "1234")) == []


async def test_wildcards_of_like_are_looked_for_as_they_stand(either: EpisodicLog) -> None:
    """A percent sign or an underscore in a word stands for itself on every path."""
    await record_all(either, "a_b", "axb", "x100%y", "x100zzzy")
    found = await either.search("a", "a_b")
    assert "a_b" in contents_of(found)[0]
    assert [hit.matched[0] for hit in found.hits if hit.episode.content == "axb"] in ([], ["b"])
    assert contents_of(await either.search("a", "x100%y")) in (["x100%y"], ["x100%y", "x100zzzy"])


@pytest.mark.parametrize("asked", ["refund", "refunds", "refunded", "refunding", "REFUND", "Refunds!"])
async def test_a_word_is_found_in_any_form(log: EpisodicLog, asked: str) -> None:
    """Words are matched by their stem, whatever their ending and case."""
    forms = ["refund", "refunds", "refunded", "refunding", "Refund", "REFUNDS"]
    await record_all(log, *forms, *OTHERS)
    assert sorted(contents_of(await log.search("a", asked))) == sorted(forms)


async def test_accents_do_not_matter(log: EpisodicLog) -> None:
    """Without the accents, or with them, the same is found."""
    await record_all(log, "café crème", *OTHERS)
    for query in ("cafe", "café", "CAFÉ", "creme"):
        assert contents_of(await log.search("a", query)) == ["café crème"]


async def test_a_question_in_a_full_sentence_finds_the_relevant_first(either: EpisodicLog) -> None:
    """No episode holds every word, and the one that holds the telling ones comes first."""
    relevant = "My card was charged two times last week"
    await record_all(either, relevant, *OTHERS, "when will the shop open", "I have been waiting since May")
    found = await either.search("a", "Could you please tell me why I have been charged two times for the same order?")
    assert contents_of(found)[0] == relevant


async def test_stopwords_find_nothing_beside_other_words(either: EpisodicLog) -> None:
    """An episode that shares only `the` and `is` with the query is no hit."""
    await record_all(either, "the cat is here", "a refund")
    assert contents_of(await either.search("a", "where is the refund?")) == ["a refund"]


async def test_a_query_of_stopwords_alone_is_looked_for(either: EpisodicLog) -> None:
    """`Who are you?` finds who asked that."""
    await record_all(either, "Who are you?", "refund")
    assert contents_of(await either.search("a", "who are you")) == ["Who are you?"]


async def test_the_author_is_searched_too(either: EpisodicLog) -> None:
    """A name finds what that person said."""
    await either.record("a", "s", "user", "hello", author="Marguerite Dupont")
    await record_all(either, *OTHERS)
    assert contents_of(await either.search("a", "what did Marguerite say?")) == ["hello"]


async def test_a_name_of_the_scope_is_not_searched(either: EpisodicLog) -> None:
    """Agent, user, session and role are no text: their names find nothing."""
    await either.record("billingbot", "sess99", "assistant", "hello", user_id="u42")
    agent, user = b"billingbot".hex(), b"u42".hex()
    for name in ("billingbot", "u42", "sess99", "assistant", f"a{agent}0", f"u{agent}x{user}0"):
        assert contents_of(await either.search("billingbot", name)) == []


NOTHING_TO_LOOK_FOR = ["", " ", "\0", "\t\n", "...", '"', '""', "()", "(" * 100, "*", "\ud83d", "_", "--", "?!"]


@pytest.mark.parametrize("query", NOTHING_TO_LOOK_FOR)
async def test_nothing_to_look_for_is_told(either: EpisodicLog, query: str) -> None:
    """A query without a letter, digit or symbol finds nothing, and names no words."""
    await record_all(either, *OTHERS)
    found = await either.search("a", query)
    assert (found.hits, found.words, found.exhaustive) == ((), (), True)


@pytest.mark.parametrize(
    "query", ["zebra", "zebra ORD-9", "Zebras?", "zebra " * 5, "\U0001e900", "\U0001e900-\U0001e901"]
)
async def test_nothing_found_is_told_from_nothing_to_look_for(either: EpisodicLog, query: str) -> None:
    """A query whose words nobody said finds nothing, names its words, and has looked everywhere."""
    await record_all(either, *OTHERS)
    found = await either.search("a", query)
    assert found.hits == ()
    assert found.words
    assert found.exhaustive


async def test_the_words_that_were_looked_for_are_named(either: EpisodicLog) -> None:
    """Words of the query in its order, without stopwords, found or not; a hit names its own, the rarest first."""
    await record_all(either, "late order", "order", "order", *OTHERS)
    found = await either.search("a", "Where is the order, late zebra?")
    assert found.words == ("order", "late", "zebra")
    assert found.hits[0].matched == ("late", "order")


async def test_the_best_come_first_and_ties_go_to_the_newer(either: EpisodicLog) -> None:
    """Scores fall; the rarer word counts for more; of equals the newer is first."""
    await record_all(either, "refund one", "refund two", "order refund", "order", "refund three", "order four", *OTHERS)
    found = await either.search("a", "refund order three")
    scores = [hit.score for hit in found.hits]
    assert contents_of(found)[:2] == ["refund three", "order refund"]
    assert scores == sorted(scores, reverse=True)
    ids = [(hit.score, hit.episode.id) for hit in found.hits]
    assert ids == sorted(ids, reverse=True)


async def test_the_turn_beside_a_hit_is_found_with_it(either: EpisodicLog) -> None:
    """An answer stands next to the question whose words match: it comes behind it, with no word of its own."""
    await record_all(either, *OTHERS)
    talk = ["where is my refund?", "it was sent on Monday", "thank you"]
    await either.record_many([Draft("a", "talk", "user", content) for content in talk])
    found = await either.search("a", "refund")
    assert sorted(contents_of(found)) == sorted(talk)
    assert contents_of(found)[-1] == "thank you"
    assert {hit.episode.content: hit.matched for hit in found.hits}["it was sent on Monday"] == ()


async def test_a_neighbour_is_in_scope_like_any_hit(either: EpisodicLog) -> None:
    """What another user, agent or role said beside a hit is not found under a filter that leaves it out."""
    await either.record("a", "s", "user", "my refund", user_id="u1")
    for agent_id, user_id, role in (("a", "u2", "user"), ("b", "u1", "user"), ("a", "u1", "assistant")):
        await either.record(agent_id, "s", role, "beside it", user_id=user_id)
    found = await either.search("a", "refund", where=Filter(user_id="u1", roles=["user"]))
    assert contents_of(found) == ["my refund"]


async def test_words_are_counted_again_as_the_log_grows(log: EpisodicLog) -> None:
    """A frequency that was known stays true: a word that was rare weighs less once many have said it."""
    await record_all(log, "refund one", "parcel one", *OTHERS)
    rare = (await log.search("a", "refund zebra")).hits[0].score
    for n in range(20):
        await log.record("a", f"more {n}", "user", "another parcel")
    assert (await log.search("a", "refund zebra")).hits[0].score > rare
    await record_all(log, *[f"refund {n}" for n in range(20)], "zebra")
    assert (await log.search("a", "refund zebra")).hits[0].episode.content == "zebra"
    assert len((await log.search("a", "refund", 100)).hits) == 21


async def test_the_limit_is_kept(either: EpisodicLog) -> None:
    """As many hits as there are, up to the limit; 10 without one."""
    await record_all(either, *[f"refund {n}" for n in range(30)])
    for limit in (1, 9, 30, 100, 2**63 - 1):
        assert len((await either.search("a", "refund", limit)).hits) == min(limit, 30)
    assert len((await either.search("a", "refund")).hits) == 10


async def test_common_words_join_where_the_rare_ones_find_too_little(log: EpisodicLog) -> None:
    """Beyond the budget a common word brings in nothing, until the limit is not reached without it."""
    await log.record_many([Draft("a", "s", "user", "order")] * (BUDGET + 50))
    await record_all(log, "late refund", "late refund")
    alone = await log.search("a", "order late refund", 2)
    assert alone.words == ("order", "late", "refund")
    assert not alone.exhaustive
    assert contents_of(alone) == ["late refund", "late refund"]
    joined = await log.search("a", "order late refund", 5)
    assert contents_of(joined) == ["late refund", "late refund", "order", "order", "order"]


async def test_a_common_word_tells_apart_what_a_rare_one_finds(log: EpisodicLog) -> None:
    """Of two episodes with the rare word the one that holds the common word, too, comes first, although it is older."""
    await record_all(log, "the refund of an order")
    await log.record_many([Draft("a", "s", "user", "order")] * (BUDGET + 50))
    await record_all(log, "a refund")
    found = await log.search("a", "order refund", 2)
    assert contents_of(found) == ["the refund of an order", "a refund"]
    assert found.hits[0].matched == ("refund", "order")


async def test_where_all_words_are_common_what_holds_several_comes_first(log: EpisodicLog) -> None:
    """The episode that holds all three is found among thousands that hold one, however old it is."""
    common = ["reserve", "table", "jose"]
    await record_all(log, "Reserve a table for three at Teske's in San Jose")
    await log.record_many([Draft("a", f"s{n}", "user", common[n % 3]) for n in range(3 * BUDGET + 30)])
    found = await log.search("a", "reserve a table, Jose", 1)
    assert contents_of(found) == ["Reserve a table for three at Teske's in San Jose"]
    assert sorted(found.hits[0].matched) == ["jose", "reserve", "table"]
    assert not found.exhaustive


async def test_a_search_says_whether_it_looked_at_everything(log: EpisodicLog) -> None:
    """With more episodes of a word than a search looks at, or more words than it takes, it is not exhaustive."""
    await log.record_many([Draft("a", "s", "user", "order")] * (BUDGET + 1))
    await record_all(log, "refund")
    assert (await log.search("a", "refund")).exhaustive
    assert not (await log.search("a", "order")).exhaustive
    assert not (await log.search("a", "refund " + " ".join(f"w{n}" for n in range(MOST_WORDS)))).exhaustive


async def test_a_search_without_the_index_says_that_it_did_not_look_at_everything(
    path: Path, without_fts5: Callable[[], None]
) -> None:
    """Where only the newest episodes are compared, a word of an older one is not found, and that is told."""
    async with EpisodicLog.open(path) as log:
        await record_all(log, "zebra")
        await log.record_many([Draft("a", "s", "user", "order")] * (LOOKED_THROUGH - 2))
        found = await log.search("a", "zebra")
        assert (contents_of(found), found.exhaustive) == (["zebra"], True)
        await log.record_many([Draft("a", "s", "user", "order")] * 2)
        found = await log.search("a", "zebra")
        assert (found.hits, found.words, found.exhaustive) == ((), ("zebra",), False)


async def test_the_mode_is_told(either: EpisodicLog) -> None:
    """A result says in which way words were found."""
    assert (await either.search("a", "refund")).mode == either.stats().mode


async def test_what_was_recorded_without_the_index_is_found_with_it(
    path: Path, without_fts5: Callable[[], None]
) -> None:
    """A file written by a build without FTS5 is indexed by the next build that has it, and the other way round."""
    async with EpisodicLog.open(path) as log:
        await record_all(log, "one refund", *OTHERS)
    without_fts5()
    async with EpisodicLog.open(path) as log:
        found = await log.search("a", "refunds")
        assert (contents_of(found), found.mode) == (["one refund"], "fts")
        assert log.stats().reindexed == 1 + len(OTHERS)


async def test_what_a_search_finds_is_what_was_there_when_it_began(log: EpisodicLog, sql: Sql) -> None:
    """An index row whose episode was deleted behind the log's back is no hit and no error."""
    await record_all(log, "refund one", "refund two")
    sql("DELETE FROM episodes WHERE id = 1")
    assert contents_of(await log.search("a", "refund")) == ["refund two"]
    assert len((await log.recall_context("a", "refund")).items) == 1


async def test_a_new_episode_is_found_at_once(either: EpisodicLog) -> None:
    """What is acknowledged is in the index."""
    for n in range(10):
        await either.record("a", "s", "user", f"refund ORD-{n}")
        assert len((await either.search("a", f"ORD-{n}", where=Filter(roles=["user"]))).hits) == n + 1


@pytest.mark.parametrize("query", [None, b"refund", 7, ["refund"]])
async def test_what_is_no_text_is_no_query(log: EpisodicLog, query: Any) -> None:  # noqa: ANN401 - wrong types
    """Another type raises QueryError before anything is read."""
    for call in (log.search, log.recall_context):
        with pytest.raises(QueryError, match="must be text"):
            await call("a", query)


OPERATORS = [
    "AND",
    "OR",
    "NOT",
    "NEAR",
    "(",
    ")",
    '"',
    "'",
    "*",
    "^",
    "-",
    "+",
    ":",
    "{",
    "}",
    ",",
    ";",
    "--",
    "/*",
    "?",
]
PIECES = [
    *OPERATORS,
    "content",
    "scope",
    "rank",
    "refund",
    "%",
    "_",
    "\\",
    "\0",
    "\ud83d",
    "é",
    "e\u0301",
    "😀",
    "退款",
    " ",
]
ANY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=ANY_TEXT)
async def test_any_text_is_a_valid_query(either: EpisodicLog, query: str) -> None:
    """No text is an error; each hit holds a word that it names; a word that is named was in the query."""
    if await either.newest_id() == 0:
        at = (NOON + timedelta(seconds=n) for n in range(9))
        texts = ["refund content", "AND OR NOT NEAR", "e\u0301 é", "退款", "scope rank", "a_b", "100%", "\\", '"']
        await either.record_many([Draft("a", text, "user", text, timestamp=next(at)) for text in texts])
    found = await either.search("a", query)
    assert found.exhaustive
    assert len(found.hits) <= len(found.words) * 9
    for hit in found.hits:
        assert hit.matched
        assert set(hit.matched) <= set(found.words)
    context = await either.recall_context("a", query)
    assert context.items


async def test_a_query_as_long_as_a_book_is_no_error(either: EpisodicLog) -> None:
    """100,000 words are cut to the first few, and what these find is found."""
    await record_all(either, "refund w3", *OTHERS)
    found = await either.search("a", " ".join(f"w{n}" for n in range(100_000)))
    assert contents_of(found) == ["refund w3"]
    assert not found.exhaustive
    assert len(found.words) == MOST_WORDS


@pytest.mark.parametrize(
    "query", ["1-" * 5_000, "a.b_" * 2_500, "x@" * 5_000, "z" * 10_000, "%_\\" * 3_000, "é" * 10_000]
)
async def test_one_endless_word_is_no_error(either: EpisodicLog, query: str) -> None:
    """A chain of thousands of parts, or a single word of thousands of letters, is a query like any other."""
    await record_all(either, "1 a x zz é", *OTHERS)
    found = await either.search("a", query)
    assert len(found.hits) <= 1


async def test_a_stretch_of_time_long_ago_is_searched_itself(log: EpisodicLog) -> None:
    """Newer episodes that hold the word take no place in a search of older ones, however many there are."""
    old = await log.record("a", "s", "user", "my order is late", timestamp=NOON)
    later = NOON + timedelta(days=9)
    drafts = [Draft("a", "t", "user", f"order {n}", timestamp=later) for n in range(LOOKED_THROUGH + 100)]
    await log.record_many(drafts)
    found = await log.search("a", "order", where=Filter(until=NOON + timedelta(days=1)))
    assert [hit.episode for hit in found.hits] == [old]
    assert found.exhaustive


async def test_an_index_that_lags_behind_is_told(path: Path, without_fts5: Callable[[], None]) -> None:
    """What a build without FTS5 wrote meanwhile cannot be found, also behind later episodes, and that is told."""
    async with EpisodicLog.open(path) as plain:
        without_fts5()
        async with EpisodicLog.open(path) as log:
            assert (await log.search("a", "zebra")).exhaustive
            await plain.record("a", "s", "user", "zebra")
            await log.record("a", "s", "user", "hello there")
            found = await log.search("a", "zebra")
            assert (found.hits, found.exhaustive) == ((), False)
    async with EpisodicLog.open(path) as log:
        found = await log.search("a", "zebra")
        assert (contents_of(found), found.exhaustive) == (["zebra", "hello there"], True)


@pytest.mark.parametrize("query", ["banana", "apple banana"])
async def test_a_limit_beyond_the_budget_is_kept(either: EpisodicLog, query: str) -> None:
    """Who asks for more than a search usually brings in gets all there is, and is told so."""
    await record_all(either, "apple")
    await either.record_many([Draft("a", "s", "user", "banana")] * (2 * BUDGET))
    await either.record_many([Draft("a", "s", "user", "other")] * (2 * BUDGET + 2))
    found = await either.search("a", query, limit=10_000)
    assert sum(bool(hit.matched) for hit in found.hits) == 2 * BUDGET + ("apple" in query)
    assert found.exhaustive


async def test_a_character_that_stands_alone_is_named_as_it_was_asked_for(either: EpisodicLog) -> None:
    """The words of the answer are words, without signs of their own."""
    await record_all(either, "我家有猫很可爱")
    found = await either.search("a", "猫")
    assert (found.words, found.hits[0].matched) == (("猫",), ("猫",))
