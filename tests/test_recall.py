"""What a model is given before it answers: the relevant and the recent, each once, within scope."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from episodic import Context, Draft, Episode, EpisodicLog, Filter, FilterError
from episodic.search.rank import RECENCY_WEIGHT

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


async def say(log: EpisodicLog, *contents: str, role: str = "user", session_id: str = "s") -> list[Episode]:
    """Record texts in one session, one episode each."""
    return await log.record_many([Draft("a", session_id, role, content) for content in contents])


def contents_of(context: Context) -> list[str]:
    """Return what the items say, in their order."""
    return [item.episode.content for item in context.items]


TALK = ["thanks for calling", "good morning", "one moment please", "is there anything else", "have a nice day"]


async def test_the_relevant_and_the_recent_are_both_there(either: EpisodicLog) -> None:
    """An old episode that answers the message comes with the newest ones, each with its reason."""
    await say(either, "the refund for ORD-1234 was sent on Monday", session_id="old")
    await say(either, *TALK)
    context = await either.recall_context("a", "where is my refund?", limit=4)
    assert contents_of(context) == [
        "the refund for ORD-1234 was sent on Monday",
        "have a nice day",
        "is there anything else",
        "one moment please",
    ]
    reasons = [(item.relevance_rank, item.recency_rank, item.matched) for item in context.items]
    assert reasons == [(1, None, ("refund",)), (None, 1, ()), (None, 2, ()), (None, 3, ())]


async def test_what_is_both_relevant_and_recent_comes_first(either: EpisodicLog) -> None:
    """An episode that both lists name stands before a more relevant one that only one does."""
    await say(either, "the refund for ORD-1234 was sent", session_id="old")
    await say(either, *TALK)
    await say(either, "a refund takes five days", session_id="new")
    context = await either.recall_context("a", "refund ORD-1234", limit=3)
    both, relevant, recent = context.items
    assert both.episode.content == "a refund takes five days"
    assert (both.relevance_rank, both.recency_rank) == (2, 1)
    assert relevant.episode.content == "the refund for ORD-1234 was sent"
    assert (relevant.relevance_rank, relevant.recency_rank) == (1, None)
    assert (recent.relevance_rank, recent.recency_rank) == (None, 2)


async def test_a_score_is_relevance_and_a_little_recency(either: EpisodicLog) -> None:
    """The best hit scores 1, the newest episode gains the weight of recency, and who is both has the sum."""
    await say(either, "refund", session_id="old")
    await say(either, *TALK)
    context = await either.recall_context("a", "refund?", limit=2)
    assert [item.score for item in context.items] == pytest.approx([1.0, RECENCY_WEIGHT])
    await say(either, "double refund", session_id="new")
    context = await either.recall_context("a", "double refund?", limit=1)
    assert context.items[0].score == pytest.approx(1.0 + RECENCY_WEIGHT)


async def test_the_same_text_in_the_same_role_takes_one_place(either: EpisodicLog) -> None:
    """A repeated text comes once; in another role it is something else."""
    await say(either, "my refund is late", "my refund is late", "good morning", "my refund is late", "good morning")
    await say(either, "my refund is late", "good morning", role="assistant")
    context = await either.recall_context("a", "is the refund late?", limit=10)
    said = [(item.episode.role, item.episode.content) for item in context.items]
    assert sorted(said) == [
        ("assistant", "good morning"),
        ("assistant", "my refund is late"),
        ("user", "good morning"),
        ("user", "my refund is late"),
    ]


async def test_repeats_leave_their_places_to_others(either: EpisodicLog) -> None:
    """A text said several times does not crowd out other relevant ones."""
    await say(either, "refund one", "refund two", "refund three")
    await say(either, *["refund"] * 12)
    await say(either, "noted", role="assistant")
    context = await either.recall_context("a", "refund", limit=4)
    assert sorted(contents_of(context)) == ["refund", "refund one", "refund three", "refund two"]


async def test_a_text_that_both_lists_hold_takes_one_place(either: EpisodicLog) -> None:
    """Where the relevant list and the recent one each hold a copy of a text, the relevant one stands for both."""
    await either.record("a", "new", "user", "my refund is late", timestamp=NOON + timedelta(hours=1))
    await either.record_many([Draft("a", "s", "user", content, timestamp=NOON) for content in TALK])
    relevant = await either.record("a", "old", "user", "my refund is late", timestamp=NOON - timedelta(hours=1))
    context = await either.recall_context("a", "refund late please", limit=10)
    assert [item.episode for item in context.items if item.episode.content == "my refund is late"] == [relevant]
    assert len(context.items) == 1 + len(TALK)


@pytest.mark.parametrize("said", ["where is my refund?", "  where is my refund?\n"])
async def test_the_message_itself_is_left_out(either: EpisodicLog, said: str) -> None:
    """A message that was just recorded and is not answered yet is no context of its own."""
    await say(either, "the refund was sent", said)
    context = await either.recall_context("a", "where is my refund?")
    assert contents_of(context) == ["the refund was sent"]


async def test_the_same_question_asked_and_answered_before_is_kept(either: EpisodicLog) -> None:
    """Only the current message is left out: an identical one from before, with its answer, is the best context."""
    question = "where is my refund?"
    [old] = await say(either, question, session_id="old")
    await say(either, "it was sent on Monday", role="assistant", session_id="old")
    await say(either, question, session_id="new")
    context = await either.recall_context("a", question, limit=10)
    assert [item.episode.id for item in context.items if item.episode.content == question] == [old.id]


async def test_a_message_that_was_answered_is_kept(either: EpisodicLog) -> None:
    """Asked again without being recorded again, an answered question is context."""
    await say(either, "where is my refund?")
    await say(either, "it was sent on Monday", role="assistant")
    context = await either.recall_context("a", "where is my refund?")
    assert "where is my refund?" in contents_of(context)


async def test_what_an_assistant_said_is_not_the_message(either: EpisodicLog) -> None:
    """Only a user's episode can be the message that is being answered."""
    await say(either, "where is my refund?", role="assistant")
    assert contents_of(await either.recall_context("a", "where is my refund?")) == ["where is my refund?"]


async def test_every_copy_that_was_just_said_and_not_answered_is_the_message(either: EpisodicLog) -> None:
    """Two customers, or one who asks twice, say the same at the same moment: neither gets it back as a memory."""
    await say(either, "the refund was sent", session_id="one")
    await say(either, "hello?", "hello?", session_id="one")
    await say(either, "hello?", session_id="two")
    assert contents_of(await either.recall_context("a", "hello?")) == ["the refund was sent"]


async def test_a_question_that_nobody_answered_days_ago_is_kept(either: EpisodicLog) -> None:
    """Asked again in other words or in the same ones, that it was asked before is what the model must know."""
    await either.record("a", "old", "user", "where is my refund?", timestamp=NOON)
    await say(either, "hello", session_id="new")
    assert "where is my refund?" in contents_of(await either.recall_context("a", "where is my refund?"))


@pytest.mark.parametrize("limit", [1, 2, 5, 30])
async def test_the_limit_is_kept(either: EpisodicLog, limit: int) -> None:
    """As many items as there are, up to the limit, however many are relevant and recent; 5 without one."""
    await say(either, *[f"refund {n}" for n in range(10)], *[f"hello {n}" for n in range(10)])
    context = await either.recall_context("a", "refund", limit=limit)
    assert len(context.items) == min(limit, 20)
    assert len((await either.recall_context("a", "refund")).items) == 5


@pytest.mark.parametrize("limit", [2**60, 2**62, 2**63 - 1])
async def test_an_endless_limit_gives_everything(either: EpisodicLog, limit: int) -> None:
    """Any limit that fits into 64 bits is a limit."""
    await say(either, "refund", *TALK)
    assert len((await either.recall_context("a", "refund?", limit=limit)).items) == 1 + len(TALK)


async def test_without_a_hit_the_recent_are_given(either: EpisodicLog) -> None:
    """A message that matches nothing, or holds nothing to look for, still brings the newest episodes in their order."""
    await say(either, *TALK)
    for message in ("zebra", "...", "", "👍"):
        context = await either.recall_context("a", message, limit=3)
        assert contents_of(context) == TALK[:1:-1]
        assert [item.recency_rank for item in context.items] == [1, 2, 3]


async def test_an_empty_log_gives_an_empty_context(either: EpisodicLog) -> None:
    """Nothing recorded is nothing recalled, and an empty text for the prompt."""
    context = await either.recall_context("a", "refund")
    assert context == Context(())
    assert context.render(800) == ""


async def test_recency_is_by_time(either: EpisodicLog) -> None:
    """The newest are those that happened last, whenever they were recorded."""
    for n, hours in enumerate([3, 1, 2]):
        await either.record("a", "s", "user", f"hello {n}", timestamp=NOON + timedelta(hours=hours))
    context = await either.recall_context("a", "zebra", limit=2)
    assert contents_of(context) == ["hello 0", "hello 2"]


async def test_a_context_is_of_its_scope(either: EpisodicLog) -> None:
    """Relevant and recent episodes of others, of other users or outside the filter are not recalled."""
    await either.record("a", "s", "user", "my refund one", user_id="me")
    await either.record("a", "s", "assistant", "my refund two", user_id="me")
    await either.record("a", "s", "user", "your refund", user_id="you")
    await either.record("b", "s", "user", "my refund three", user_id="me")
    context = await either.recall_context("a", "refund", where=Filter(user_id="me"))
    assert sorted(contents_of(context)) == ["my refund one", "my refund two"]
    context = await either.recall_context("a", "refund", where=Filter(user_id="me", roles=["assistant"]))
    assert contents_of(context) == ["my refund two"]


async def test_the_current_message_is_left_out_in_a_scope_too(either: EpisodicLog) -> None:
    """With a user's filter the user's own message is left out, and another user's same question changes nothing."""
    await either.record("a", "s", "user", "the refund was sent", user_id="me")
    await either.record("a", "s", "user", "where is my refund?", user_id="me")
    await either.record("a", "t", "user", "where is my refund?", user_id="you")
    context = await either.recall_context("a", "where is my refund?", where=Filter(user_id="me"))
    assert contents_of(context) == ["the refund was sent"]


async def test_a_context_is_rendered_in_its_order(either: EpisodicLog) -> None:
    """What comes first in the items comes first in the prompt."""
    await say(either, "the refund for ORD-1234 was sent", *TALK)
    context = await either.recall_context("a", "what about ORD-1234?")
    text = context.render(800)
    places = [text.index(content) for content in contents_of(context)]
    assert places == sorted(places)
    assert len(places) == 5


async def test_what_worked_before_comes_first_when_asked(either: EpisodicLog) -> None:
    """Of two answers that are as relevant, the one whose session ended as preferred leads, whatever its age."""
    await say(either, "the printer is offline", session_id="well")
    await say(either, "turn the printer off and on", role="assistant", session_id="well")
    await say(either, "the printer is offline again", session_id="badly")
    await say(either, "reinstall the printer", role="assistant", session_id="badly")
    await either.resolve("a", "well", "success")
    await either.resolve("a", "badly", "failure")
    for outcome, session_id in (("success", "well"), ("failure", "badly")):
        context = await either.recall_context("a", "printer offline", limit=4, prefer=outcome)
        first, second, *others = context.items
        assert {first.episode.session_id, second.episode.session_id} == {session_id}
        assert [item.preferred for item in (first, second)] == [True, True]
        assert not any(item.preferred for item in others)


async def test_what_is_preferred_is_relevant_all_the_same(either: EpisodicLog) -> None:
    """An episode that only is recent, or hardly relevant, does not come in for its outcome."""
    await say(either, "the refund for ORD-1234 was sent on Monday", session_id="old")
    await say(either, *TALK, session_id="well")
    await either.resolve("a", "well", "success")
    context = await either.recall_context("a", "refund for ORD-1234", limit=2, prefer="success")
    assert [item.preferred for item in context.items] == [False, False]
    assert contents_of(context)[0] == "the refund for ORD-1234 was sent on Monday"


async def test_an_episode_has_its_own_outcome_before_that_of_its_session(either: EpisodicLog) -> None:
    """A turn that failed in a session that went well is not what worked."""
    await either.record("a", "s", "tool", "refund declined", outcome="failure")
    await either.record("a", "s", "tool", "refund accepted")
    await either.resolve("a", "s", "success")
    context = await either.recall_context("a", "refund", prefer="success")
    assert [(item.episode.content, item.preferred) for item in context.items] == [
        ("refund accepted", True),
        ("refund declined", False),
    ]


async def test_a_preference_stays_within_the_scope(either: EpisodicLog) -> None:
    """Another user's success is not recalled, and a filter by another outcome leaves nothing to prefer."""
    await either.record("a", "s", "tool", "my refund", user_id="me", outcome="failure")
    await either.record("a", "t", "tool", "your refund", user_id="you", outcome="success")
    context = await either.recall_context("a", "refund", where=Filter(user_id="me"), prefer="success")
    assert [(item.episode.content, item.preferred) for item in context.items] == [("my refund", False)]
    context = await either.recall_context("a", "refund", where=Filter(outcome="failure"), prefer="success")
    assert [(item.episode.content, item.preferred) for item in context.items] == [("my refund", False)]


@pytest.mark.parametrize("prefer", ["won", "", 1, ["success"]])
async def test_only_an_outcome_can_be_preferred(log: EpisodicLog, prefer: Any) -> None:  # noqa: ANN401 - wrong on purpose
    """Anything else is refused with the outcomes that there are."""
    with pytest.raises(FilterError, match="prefer must be one of failure, partial, success or None"):
        await log.recall_context("a", "refund", prefer=prefer)
