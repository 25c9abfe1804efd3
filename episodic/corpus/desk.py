"""The desk itself: draws a case, lets the two sides talk it over, and interleaves many conversations in time."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count as numbers_from
from itertools import islice
from random import Random
from typing import Final, NamedTuple, TypeAlias

from episodic.corpus.facts import Dice, customer, errand, purchase
from episodic.corpus.speech import Issue, Language, Tool
from episodic.corpus.vocabulary import EMOJI
from episodic.model import JSON, Draft

__all__ = ["Conversation", "conversations", "episodes"]

START: Final = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)

_TOPICS: Final = ("billing", "orders", "account", "product")
# The busiest first; what each takes.
_AGENTS: Final = (
    ("support-bot", _TOPICS),
    ("billing-bot", ("billing",)),
    ("orders-bot", ("orders",)),
    ("account-bot", ("account",)),
    ("returns-bot", ("orders", "product")),
    ("app-helper", ("account", "product")),
    ("shipping-bot", ("orders",)),
    ("invoice-bot", ("billing",)),
    ("login-bot", ("account",)),
    ("warranty-bot", ("product",)),
    ("subscriptions-bot", ("billing",)),
    ("vip-desk", _TOPICS),
)
_OUTCOMES: Final = ("success", "success", "success", "failure", "partial")
_CHANNELS: Final = ("chat", "app", "email", "web form")
_ROUTING: Final = (
    "Conversation {ticket} opened, customer plan {plan}, {days} earlier contacts, queue time {minutes} s.",
    "Routed by intent, confidence 0.{card}; customer verified by order {order}; ticket {ticket}.",
    "Working hours policy applied: answers within {minutes} minutes, goodwill limit {part}, ticket {ticket}.",
)
_HANDOVER: Final = (
    "Handed over to {colleague}, second line; the customer was told to expect an answer in {minutes} minutes.",
    "Escalated to {colleague} because of {error}; ticket {ticket} is now owned by a person.",
)
# Customers known after n conversations: n to this power, so that newcomers get rarer but never stop.
_GROWTH: Final = 0.9
# Evenly drawn at 1; above it, those who came first are the more frequent ones.
_SKEW: Final = 1.5
# How many of a customer's turns hold a slip of the hand, and how many end in an emoji.
_MISTYPED: Final = 0.05
_WITH_EMOJI: Final = 0.03

_Line: TypeAlias = tuple[str, str, str]  # role, template, and the name of the tool or of the colleague who speaks


@dataclass(frozen=True, slots=True)
class Conversation:
    """One customer's conversation with one agent, from the first word to the last.

    Attributes:
        agent_id: who answers.
        session_id: unique among the conversations of one seed.
        user_id: the customer, who may come back in later conversations.
        turns: what was said, in order of time, 4 to 24 drafts.
        outcome: how it ended: "success", "failure" or "partial". Only some last turns say it themselves, as in a log
            where the outcome of the others is resolved later.
    """

    agent_id: str
    session_id: str
    user_id: str
    turns: tuple[Draft, ...]
    outcome: str


def conversations(seed: int, *, start: datetime = START) -> Iterator[Conversation]:
    """Draw conversations without end, ordered by when they begin.

    Args:
        seed: the same seed gives the same conversations.
        start: when the first one begins, with a time zone.

    Returns:
        An endless iterator that remembers nothing of what it gave.

    Raises:
        ValueError: when `start` has no time zone.
    """
    _check_aware(start)
    return _conversations(Dice(Random(seed).random), start)


def episodes(seed: int, count: int, *, concurrent: int = 200, start: datetime = START) -> Iterator[Draft]:
    """Draw the episodes of many conversations at once, in order of time, as a busy log would hold them.

    A longer corpus begins with the shorter one of the same seed, start and concurrency.

    Args:
        seed: the same seed gives the same episodes.
        count: how many episodes; the last conversations are cut off there.
        concurrent: how many conversations are open at any time; they take turns.
        start: the time of the first episode, with a time zone.

    Returns:
        An iterator over exactly `count` drafts, none with an `event_id`. Timestamps never decrease. It holds only the
        open conversations.

    Raises:
        ValueError: when `count` is negative, `concurrent` is below 1, or `start` has no time zone.
    """
    if count < 0:
        msg = f"count must not be negative: {count}"
        raise ValueError(msg)
    if concurrent < 1:
        msg = f"concurrent must be at least 1: {concurrent}"
        raise ValueError(msg)
    _check_aware(start)
    dice, numbers = Dice(Random(seed).random), numbers_from()
    # The lanes open one after another, for a desk does not begin its day with everybody at the door.
    lanes = (_lane(lane, dice, numbers, start + timedelta(seconds=lane)) for lane in range(concurrent))
    return (draft for _, _, draft in islice(heapq.merge(*lanes), count))


class _Case(NamedTuple):
    """All that is settled about a conversation before its first word."""

    agent_id: str
    session_id: str
    user_id: str
    language: Language
    issue: Issue
    outcome: str
    channel: str
    begins: datetime
    facts: dict[str, str]


def _check_aware(start: datetime) -> None:
    if start.utcoffset() is None:
        msg = f"start must have a time zone: {start!r}"
        raise ValueError(msg)


def _conversations(dice: Dice, begins: datetime) -> Iterator[Conversation]:
    for number in numbers_from():
        case = _open(dice, number, begins)
        turns = tuple(draft for _, _, draft in _speak(dice, case))
        yield Conversation(case.agent_id, case.session_id, case.user_id, turns, case.outcome)
        begins += dice.pause(5)


def _lane(lane: int, dice: Dice, numbers: Iterator[int], begins: datetime) -> Iterator[tuple[datetime, int, Draft]]:
    """Hold one conversation after another; the lane's number decides between episodes of the same instant."""
    for number in numbers:
        ended = yield from _speak(dice, _open(dice, number, begins), lane)
        begins = ended + dice.pause(10)


def _open(dice: Dice, number: int, begins: datetime) -> _Case:
    """Draw who comes, to whom, and with what."""
    who = int((number + 8) ** _GROWTH * dice.random() ** _SKEW)
    language, person = customer(who)
    agent_id, topics = dice.often_first(_AGENTS)
    issues = [issue for issue in language.issues if issue.kind.topic in topics]
    return _Case(
        agent_id=agent_id,
        # The number makes it unique, the rest keeps the corpora of two seeds apart in one log.
        session_id=f"sess-{number:x}-{dice.whole(0, 16**8):08x}",
        user_id=f"u{who}",
        language=language,
        issue=dice.often_first(issues),
        outcome=dice.pick(_OUTCOMES),
        channel=dice.often_first(_CHANNELS),
        begins=begins,
        facts={"ticket": f"T-{100_000 + number}", **person, **purchase(dice), **errand(dice, begins)},
    )


def _speak(dice: Dice, case: _Case, lane: int = 0) -> Generator[tuple[datetime, int, Draft], None, datetime]:
    """Fill in the templates, one turn after another, each with its time; return when the next would follow."""
    agent_id, session_id, user_id, facts, at = case.agent_id, case.session_id, case.user_id, case.facts, case.begins
    intent, ticket, name = case.issue.kind.intent, facts["ticket"], facts["name"]
    lines = tuple(_script(dice, case))
    stated = case.outcome if dice.chance(0.7) else None
    for left, (role, template, speaker) in zip(range(len(lines) - 1, -1, -1), lines, strict=True):
        content = template.format_map(facts)
        author = speaker or None
        metadata: dict[str, JSON] = {"intent": intent, "ticket_id": ticket}
        if role == "user":
            content = _typed(dice, content)
            author = name
            metadata["channel"] = case.channel
            metadata["lang"] = case.language.code
        elif role == "tool":
            content = f"{{{content}}}"
            author = None
            metadata["tool"] = speaker
            metadata["ms"] = dice.whole(20, 2500)
        draft = Draft(
            agent_id,
            session_id,
            role,
            content,
            user_id=user_id,
            author=author,
            outcome=None if left else stated,
            metadata=metadata,
            timestamp=at,
        )
        yield at, lane, draft
        # A customer takes a while to answer, and now and then hours; the desk answers at once.
        at += dice.pause(45) if role == "assistant" else timedelta(0, 0.2 + 6 * dice.random())
    return at


def _typed(dice: Dice, content: str) -> str:
    """Let a customer's hand slip over two letters, or add an emoji, now and then."""
    slip = dice.random()
    if slip < _MISTYPED:
        at = dice.whole(0, len(content))
        pair = content[at : at + 2]
        if pair.isascii() and pair.isalpha() and pair.islower():
            return f"{content[:at]}{pair[::-1]}{content[at + 2 :]}"
    elif slip < _MISTYPED + _WITH_EMOJI:
        return f"{content} {dice.often_first(EMOJI)}"
    return content


def _script(dice: Dice, case: _Case) -> Iterator[_Line]:
    """Plan who says what, from 4 to 24 lines."""
    said, issue = case.language, case.issue
    circumstances, assurances = dice.round(said.circumstances), dice.round(said.assurances)
    if dice.chance(0.15):
        yield "system", dice.pick(_ROUTING), ""
    opening, request = dice.pick(issue.opening), dice.pick(said.requests)
    yield "user", said.joint.join((opening, next(circumstances), next(circumstances), request)), ""
    if dice.chance(0.7):
        yield "assistant", said.joint.join((dice.pick(said.questions), next(assurances), next(assurances))), ""
        yield "user", said.joint.join((dice.pick(issue.detail), next(circumstances), next(circumstances))), ""
    yield _lookup(dice, issue.kind.reads, works=True)
    finding = dice.pick(issue.finding)
    if dice.chance(0.85):
        offer = dice.pick(said.offers)
        yield "assistant", said.joint.join((finding, next(assurances), next(assurances), offer)), ""
        yield from _asides(dice, said, circumstances, assurances)
        yield "user", dice.pick(said.agreements), ""
        yield from _ending(dice, case, (next(assurances), next(assurances)))
    else:
        yield from _ending(dice, case, (next(assurances),), finding)


def _asides(dice: Dice, said: Language, circumstances: Iterator[str], assurances: Iterator[str]) -> Iterator[_Line]:
    """Let the customer ask up to four other things, mostly none or one, none of them twice."""
    first, many = dice.whole(0, len(said.exchanges)), int(6 ** dice.random()) - 1
    for step in range(min(many, len(said.exchanges))):
        question, answer, tool = said.exchanges[(first + step) % len(said.exchanges)]
        yield "user", said.joint.join((question, next(circumstances), next(circumstances))), ""
        if tool:
            yield _lookup(dice, tool, works=True)
        yield "assistant", said.joint.join((answer, next(assurances), next(assurances))), ""


def _ending(dice: Dice, case: _Case, after: tuple[str, ...], *before: str) -> Iterator[_Line]:
    """Settle the issue or fail to; `before` and `after` are what the assistant says in the same breath."""
    said, issue, failed, speaker = case.language, case.issue, case.outcome == "failure", ""
    if failed and dice.chance(0.5):
        yield "system", dice.pick(_HANDOVER), ""
        speaker = case.facts["colleague"]
    if dice.chance(0.6):
        yield _lookup(dice, issue.kind.acts, works=not failed)
    result = dice.pick(issue.unsolved if failed else issue.solved)
    caveat = (dice.pick(said.caveats),) if case.outcome == "partial" else ()
    yield "assistant", said.joint.join((*before, result, *caveat, *after)), speaker
    if before or dice.chance(0.8):
        yield "user", dice.pick(said.complaints if failed else said.thanks), ""
        if dice.chance(0.5):
            yield "assistant", dice.pick(said.goodbyes), speaker


def _lookup(dice: Dice, tool: Tool, *, works: bool) -> _Line:
    return "tool", dice.pick(tool.found if works else tool.failed), tool.name
