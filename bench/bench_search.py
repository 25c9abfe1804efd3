"""Finding: how much of the evidence for a question is among the first hits, and how soon, beside what others use.

LoCoMo (snap-research/locomo, CC BY-NC 4.0, evaluation only) and the Schema-Guided Dialogues (CC BY-SA 4.0) are no part
of the project: EPISODIC_DATA names the folder that holds them as `bench/haystack.py` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.bench_read import drop_from_page_cache
from bench.finding import LOOKED_AT, Quality, Where, by_recall, by_search, compared, recipe, tantivy_index
from bench.haystack import AGENT, DIALOGUES, LOCOMO, Question, haystack, locomo
from bench.load import offered
from bench.rounds import bar
from bench.stage import CHUNK, Effort, Pool, Stage
from episodic import EpisodicLog, Filter
from episodic.search.stopwords import ENGLISH

NEEDS_LOCOMO = pytest.mark.skipif(not LOCOMO.exists(), reason="LoCoMo is not there: set EPISODIC_DATA")
NEEDS_DIALOGUES = pytest.mark.skipif(not DIALOGUES.exists(), reason="the dialogues are not there: set EPISODIC_DATA")

SCOPES: dict[str, Where] = {
    "agent": lambda _: None,
    "user": lambda question: Filter(user_id=question.user_id),
    "session": lambda question: Filter(session_id=question.session_id),
}

# The recipe takes up to a second for a question.
RECIPE_STEP = 16

# Records that come in each second while questions are asked, and how many questions.
OFFERED = 5_000
WRITING_STEP = 4

# Texts that are long, hostile, or of nothing but words that many episodes hold; each is asked for first and again.
COMMON = "looking restaurant city time book date find help want need like please reservation people movie hotel ride"
ANY_TEXTS: dict[str, str] = {
    "common words": COMMON,
    "common words, all": " ".join(sorted(ENGLISH)) + " " + COMMON,
    "100,000 words": " ".join(f"w{number}" for number in range(100_000)),
    "100,000 common words": " ".join(COMMON.split() * 5_000),
    "100,000 brackets": "(" * 100_000,
    "one word of a million letters": "a" * 1_000_000,
    "5,000 order numbers": " ".join(f"ORD-{number}" for number in range(5_000)),
    "numbers": " ".join(map(str, range(20_000))),
    "Chinese": "我想要退款因为" * 20_000,
    "Thai": "ฉันต้องการคืนเงิน" * 5_000,
    "emoji": "😀👍" * 50_000,
    "accents in a heap": "a" + "\u0301" * 100_000,
    "invisible characters": "re\u200bfund " * 20_000,
    "address": "@".join(["a"] * 50_000),
}

# Where the plot of the cost begins to be one of size.
SMALL, LARGE = 100_000, 1_000_000


@NEEDS_LOCOMO
def test_locomo(benchmark: BenchmarkFixture, stage: Stage) -> None:
    """Each conversation is the history of an agent of its own."""
    benchmark.group = "finding"
    conversations = locomo()
    sessions = [[replace(turn, agent_id=turn.user_id or "") for turn in turns] for turns in conversations.sessions]
    questions = [question._replace(agent_id=question.user_id) for question in conversations.questions]
    if benchmark.disabled:
        questions = questions[:20]
    log = stage.log()
    drafts = [turn for turns in sessions for turn in turns]
    stage.run(log.record_many(drafts))
    joined_by = stage.enter(recipe(stage.folder, drafts))
    ways = {
        "search": by_search(log),
        "recall_context": by_recall(log),
        "recipe, all words": joined_by(" "),
        "recipe, any word": joined_by(" OR "),
    }
    found: dict[str, Quality] = {}
    benchmark.pedantic(lambda: found.update(stage.run(compared(ways, questions))), rounds=1)  # type: ignore[no-untyped-call]
    benchmark.extra_info.update(episodes=len(drafts), ways=figures(found))
    ours = found["search"]
    lost = ours.recall - found["recall_context"].recall
    bar(benchmark, "search: evidence among the first 10, LoCoMo", figure=ours.recall, least=0.785, unit="")
    bar(benchmark, "search: mean reciprocal rank, LoCoMo", figure=ours.mrr, least=0.575, unit="")
    bar(benchmark, "recall_context: evidence that recency costs, LoCoMo", figure=lost, most=0.01, unit="")


@pytest.fixture(scope="session")
def p95_by_size() -> dict[int, float]:
    """How long a search of one user took in logs of several sizes, in this run."""
    return {}


@NEEDS_LOCOMO
@NEEDS_DIALOGUES
def test_haystack(  # noqa: PLR0917
    benchmark: BenchmarkFixture, effort: Effort, stage: Stage, pool: Pool, size: int, p95_by_size: dict[int, float]
) -> None:
    """The conversations are one agent's among the task dialogues of many."""
    benchmark.group = f"haystack, {size:,} episodes"
    turns = min(size, 30 * effort.most_rows)
    conversations = locomo()
    questions = conversations.questions[:5] if benchmark.disabled else conversations.questions
    path = stage.folder / "haystack.db"
    stage.run(fill(path, turns))
    cold = stage.run(first_of_all(path, questions[:: max(1, len(questions) // effort.cold_calls)]))
    log = stage.log(path)
    index = tantivy_index(stage.folder / "tantivy", haystack(conversations.sessions, turns))
    joined_by = stage.enter(recipe(stage.folder, haystack(conversations.sessions, turns)))
    ways = {f"search, {scope}": by_search(log, where) for scope, where in SCOPES.items()}
    ways |= {f"recall_context, {scope}": by_recall(log, where) for scope, where in SCOPES.items()}
    first = stage.run(compared(ways, questions))
    ways |= {
        "tantivy, all words": index(stopwords=True, scoped=False),
        "tantivy, all words, of the agent": index(stopwords=True, scoped=True),
        "tantivy, no stopwords, of the agent": index(stopwords=False, scoped=True),
    }
    found: dict[str, Quality] = {}
    benchmark.pedantic(lambda: found.update(stage.run(compared(ways, questions))), rounds=1)  # type: ignore[no-untyped-call]
    slow = {
        "recipe, all words": joined_by(" "),
        "recipe, any word": joined_by(" OR "),
        "search, for the recipe": ways["search, agent"],
    }
    found |= stage.run(compared(slow, questions[::RECIPE_STEP]))
    slowest = stage.run(any_text(path))
    writing = stage.run(beside_writes(log, pool, questions[::WRITING_STEP]))
    states = {
        "search, agent, first call on a cold log": cold,
        **{f"{name}, words asked for first": quality for name, quality in first.items() if name.startswith("search")},
        **{f"{name}, beside {OFFERED:,} records/s": quality for name, quality in writing.items()},
    }
    benchmark.extra_info.update(episodes=turns, ways=figures(found | states), any_text_ms=slowest)
    if turns == LARGE:
        longest = max(slowest.values())
        bar(benchmark, "haystack: the slowest search of any text", figure=longest, most=100, unit="ms")
    p95_by_size[turns] = found["search, user"].p95
    if turns == LARGE:
        hold_to_bars(benchmark, found, p95_by_size)


def hold_to_bars(benchmark: BenchmarkFixture, found: Mapping[str, Quality], p95_by_size: Mapping[int, float]) -> None:
    """Note what must be reached among a million."""
    ours, user, theirs = found["search, agent"], found["search, user"], found["tantivy, all words"]
    lost = ours.recall - found["recall_context, agent"].recall
    against = found["search, for the recipe"].p95 / found["recipe, any word"].p95
    bar(benchmark, "haystack: evidence among the first 10", figure=ours.recall, least=0.68, unit="")
    bar(benchmark, "haystack: the same against tantivy, all words", figure=ours.recall / theirs.recall, least=1.6)
    bar(benchmark, "haystack: p95 against tantivy, all words", figure=ours.p95 / theirs.p95, most=0.8)
    bar(benchmark, "haystack: p95 against the recipe, any word", figure=against, most=1 / 60)
    bar(benchmark, "haystack: p95 of one user against the whole agent", figure=user.p95 / ours.p95, most=0.5)
    bar(benchmark, "haystack: evidence that recency costs recall_context", figure=lost, most=0.01, unit="")
    if SMALL in p95_by_size:
        growth = p95_by_size[LARGE] / p95_by_size[SMALL]
        bar(benchmark, "haystack: p95 of one user against that among a hundred thousand", figure=growth, most=1.5)


def figures(found: Mapping[str, Quality]) -> dict[str, dict[str, float]]:
    """Return everything by name, for the report."""
    return {name: quality.figures() for name, quality in found.items()}


async def fill(path: Path, turns: int) -> None:
    """Make the log."""
    drafts = haystack(locomo().sessions, turns)
    async with EpisodicLog.open(path) as log:
        while chunk := list(islice(drafts, CHUNK)):
            await log.record_many(chunk)


async def first_of_all(path: Path, questions: Sequence[Question]) -> Quality:
    """Ask each question as the first one of a log that was just opened, its pages not in memory."""
    cold = Quality()
    for question in questions:
        drop_from_page_cache(path)
        async with EpisodicLog.open(path, read_only=True) as log:
            asked = await compared({"cold": by_search(log)}, [question])
        cold.first_5 += asked["cold"].first_5
        cold.first_10 += asked["cold"].first_10
        cold.reciprocal += asked["cold"].reciprocal
        cold.seconds += asked["cold"].seconds
    return cold


async def any_text(path: Path) -> dict[str, float]:
    """Ask each text of a log that was just opened, again, and for one role; return the longest in ms."""
    slowest: dict[str, float] = {}
    for name, text in ANY_TEXTS.items():
        seconds = []
        async with EpisodicLog.open(path, read_only=True) as log:
            for where in (None, None, Filter(roles=["assistant"])):
                begun = perf_counter()
                await log.search(AGENT, text, LOOKED_AT, where)
                seconds.append(perf_counter() - begun)
        slowest[name] = 1000 * max(seconds)
    return slowest


async def beside_writes(log: EpisodicLog, pool: Pool, questions: Sequence[Question]) -> dict[str, Quality]:
    """Ask while thousands of records come in each second."""
    ways = {"search, agent": by_search(log), "search, user": by_search(log, SCOPES["user"])}
    async with offered(log, pool.part(0, CHUNK), OFFERED):
        return await compared(ways, questions)
