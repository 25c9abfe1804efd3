"""A million turns of task dialogues, and a few thousand among them that questions are about.

The dialogues are repeated until there are as many turns as wanted, each time with other names and numbers, and take
turns with one another as conversations of one moment do. A third of all turns is one agent's, and among that agent's
are LoCoMo's conversations: each is one user's, in sessions of its own.
"""

from __future__ import annotations

import gzip
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count, groupby
from pathlib import Path
from typing import NamedTuple

import orjson

from episodic import Draft

__all__ = ["AGENT", "DATA", "DIALOGUES", "LOCOMO", "Question", "haystack", "locomo"]

DATA = Path(os.environ.get("EPISODIC_DATA", Path(__file__).parents[2] / "shared/data"))
LOCOMO = DATA / "retrieval/locomo_dev.jsonl.gz"
DIALOGUES = DATA / "support/sgd.jsonl.gz"

BEGUN = datetime(2023, 1, 1, tzinfo=UTC)
TURN_EVERY = timedelta(seconds=1)

# Who holds a third of the turns, and the others.
AGENT = "desk"
SHARE = 3
OTHERS = [f"desk-{number}" for number in range(1, 12)]

# Turns of one user of the busy agent, about as many as a LoCoMo conversation has.
TURNS_A_USER = 500

# Conversations that take turns at any moment.
AT_ONCE = 200

# What is exchanged: a number, or a name inside a sentence.
ENTITY = re.compile(r"\d+|(?<=[a-z,] )[A-Z][a-z]+")


class Question(NamedTuple):
    """A question about one conversation.

    Attributes:
        agent_id: whose log is asked.
        user_id: whose conversation it is.
        text: the question.
        evidence: event ids of the turns that hold the answer.
        session_id: the session of the first of them.
    """

    agent_id: str
    user_id: str
    text: str
    evidence: frozenset[str]
    session_id: str


@dataclass(frozen=True, slots=True)
class Conversations:
    """LoCoMo's conversations, each one user's, and the questions about them."""

    sessions: Sequence[Sequence[Draft]]
    questions: Sequence[Question]


def locomo(path: Path = LOCOMO) -> Conversations:
    """Read the conversations, and the questions that have evidence; a turn's event id is its name."""
    with gzip.open(path) as file:
        lines = [orjson.loads(line) for line in file]
    turns = [line for line in lines if line["type"] == "episode"]
    drafts = [
        Draft(
            AGENT,
            f"{turn['conv']}/{turn['session']}",
            "user",
            f"{turn['text']} [{turn['caption']}]" if turn.get("caption") else turn["text"],
            user_id=turn["conv"],
            author=turn["speaker"],
            event_id=f"{turn['conv']}/{turn['id']}",
        )
        for turn in turns
    ]
    session_of = {draft.event_id: draft.session_id for draft in drafts}
    questions = []
    for line in lines:
        if line["type"] == "query" and line["evidence"]:
            evidence = [f"{line['conv']}/{key}" for key in line["evidence"]]
            questions.append(
                Question(AGENT, line["conv"], line["question"], frozenset(evidence), session_of[evidence[0]])
            )
    return Conversations([list(turns) for _, turns in groupby(drafts, lambda draft: draft.session_id)], questions)


def haystack(needles: Sequence[Sequence[Draft]], turns: int, seed: int = 5) -> Iterator[Draft]:
    """Draw so many turns, the needles among them, in the order in which they happened.

    Args:
        needles: sessions to hide, at moments spread over all of it.
        turns: of all conversations together.
        seed: of what is drawn.
    """
    draw = random.Random(seed)
    hidden = sum(map(len, needles))
    straw = _repeated(draw, turns - hidden)
    spread = max(1, (turns - hidden) // len(needles))
    waiting = {draw.randrange(number * spread, (number + 1) * spread): one for number, one in enumerate(needles)}
    going: list[Iterator[Draft]] = []
    for number in count():
        while len(going) < AT_ONCE and (one := next(straw, None)) is not None:
            going.append(iter(one))
        if number in waiting:
            going.append(iter(waiting.pop(number)))
        if not going:
            yield from (turn for one in waiting.values() for turn in one)
            return
        place = draw.randrange(len(going))
        turn = next(going[place], None)
        if turn is None:
            going[place] = going[-1]
            going.pop()
            continue
        yield replace(turn, timestamp=BEGUN + number * TURN_EVERY)


def _repeated(draw: random.Random, turns: int) -> Iterator[Sequence[Draft]]:
    """Go through the dialogues again and again, with other names and numbers and other people each time."""
    dialogues = _dialogues()
    entities = sorted({entity for dialogue in dialogues for text in dialogue for entity in ENTITY.findall(text[1])})
    names = [entity for entity in entities if not entity.isdigit()]
    busy = 0
    for number in count():
        is_busy = number % SHARE == 0
        user = f"u{busy // TURNS_A_USER}" if is_busy else f"v{number // 20}"
        agent = AGENT if is_busy else OTHERS[min(int(draw.expovariate(0.4)), len(OTHERS) - 1)]
        exchanged: dict[str, str] = {}

        def other(found: re.Match[str], exchanged: dict[str, str] = exchanged) -> str:
            was = found[0]
            if was not in exchanged:
                digits = str(draw.randrange(10 ** len(was)))
                exchanged[was] = digits if was.isdigit() else draw.choice(names)
            return exchanged[was]

        dialogue = draw.choice(dialogues)[:turns]
        yield [Draft(agent, f"s{number}", role, ENTITY.sub(other, text), user_id=user) for role, text in dialogue]
        busy += len(dialogue) if is_busy else 0
        turns -= len(dialogue)
        if turns <= 0:
            return


def _dialogues() -> list[list[tuple[str, str]]]:
    with gzip.open(DIALOGUES) as file:
        lines = [orjson.loads(line) for line in file]
    return [
        [(line["role"], line["content"]) for line in dialogue]
        for _, dialogue in groupby(lines, lambda line: line["session_id"])
    ]
