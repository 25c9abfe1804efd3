"""Finding: how much of the evidence for a question is among the first hits, beside the recipe that everyone copies.

LoCoMo (snap-research/locomo, CC BY-NC 4.0, evaluation only) is not part of the project: set EPISODIC_LOCOMO to its
turns and questions as gzipped JSON lines.
"""

from __future__ import annotations

import gzip
import os
import re
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, TypeAlias

import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.rounds import bar, percentiles
from bench.stage import Stage
from episodic import Draft

LOCOMO = Path(
    os.environ.get("EPISODIC_LOCOMO", Path(__file__).parents[2] / "shared/data/retrieval/locomo_dev.jsonl.gz")
)
BEGUN = datetime(2023, 1, 1, tzinfo=UTC)
LOOKED_AT = 10

RECIPE = """
CREATE TABLE episodes (id INTEGER PRIMARY KEY, agent_id TEXT, content TEXT);
CREATE VIRTUAL TABLE episodes_fts USING fts5 (content, agent_id UNINDEXED, episode_id UNINDEXED);
"""
RECIPE_SEARCH = """
SELECT episode_id FROM episodes_fts JOIN episodes ON episodes.id = episode_id
WHERE episodes_fts MATCH ? AND episodes.agent_id = ? ORDER BY bm25(episodes_fts) LIMIT ?
"""


class Question(NamedTuple):
    """A question about one conversation, and the places of the turns that hold the answer."""

    agent_id: str
    text: str
    evidence: frozenset[int]


class Quality(NamedTuple):
    """Shares of the evidence among the first 5 and 10, the mean reciprocal rank, and the seconds of each search."""

    first_5: float
    first_10: float
    mrr: float
    seconds: Sequence[float]


Find: TypeAlias = Callable[[Question], Awaitable[Sequence[int]]]
"""Returns the places of turns, the best first."""


@pytest.mark.skipif(not LOCOMO.exists(), reason="LoCoMo is not there: set EPISODIC_LOCOMO to its gzipped JSON lines")
def test_locomo(benchmark: BenchmarkFixture, stage: Stage) -> None:
    """Each conversation is the history of an agent of its own."""
    benchmark.group = "finding"
    drafts, questions = corpus(LOCOMO)
    if benchmark.disabled:
        questions = questions[:20]
    log = stage.log()
    stage.run(log.record_many(drafts))
    recipe = filled_recipe(drafts)

    async def search(question: Question) -> Sequence[int]:
        found = await log.search(question.agent_id, question.text, LOOKED_AT)
        return [hit.episode.id for hit in found.hits]

    async def recall(question: Question) -> Sequence[int]:
        context = await log.recall_context(question.agent_id, question.text, LOOKED_AT)
        return [item.episode.id for item in context.items]

    def recipe_joining(operator: str) -> Find:
        async def find(question: Question) -> Sequence[int]:
            words = operator.join(f'"{word}"' for word in re.findall(r"\w+", question.text))
            rows = recipe.execute(RECIPE_SEARCH, (words, question.agent_id, LOOKED_AT))
            return [number for (number,) in rows]

        return find

    ways = {
        "search": search,
        "recall_context": recall,
        "recipe, all words": recipe_joining(" "),
        "recipe, any word": recipe_joining(" OR "),
    }
    found: dict[str, Quality] = {}
    benchmark.pedantic(
        lambda: found.update({name: stage.run(measured(find, questions)) for name, find in ways.items()}), rounds=1
    )  # type: ignore[no-untyped-call]
    recipe.close()
    for name, quality in found.items():
        figures = {"r@5": quality.first_5, "r@10": quality.first_10, "mrr": quality.mrr}
        benchmark.extra_info[name] = figures | dict(percentiles(quality.seconds))
    ours = found["search"]
    lost = ours.first_10 - found["recall_context"].first_10
    bar(benchmark, "search: evidence among the first 10, LoCoMo", figure=ours.first_10, least=0.785, unit="")
    bar(benchmark, "search: mean reciprocal rank, LoCoMo", figure=ours.mrr, least=0.575, unit="")
    bar(benchmark, "recall_context: evidence that recency costs, LoCoMo", figure=lost, most=0.01, unit="")


async def measured(find: Find, questions: Sequence[Question]) -> Quality:
    """Ask all questions and compare what is found with the evidence."""
    first_5 = first_10 = mrr = 0.0
    seconds: list[float] = []
    for question in questions:
        begun = perf_counter()
        ids = await find(question)
        seconds.append(perf_counter() - begun)
        first_5 += len(question.evidence.intersection(ids[:5])) / len(question.evidence)
        first_10 += len(question.evidence.intersection(ids)) / len(question.evidence)
        mrr += next((1 / rank for rank, number in enumerate(ids, start=1) if number in question.evidence), 0.0)
    return Quality(first_5 / len(questions), first_10 / len(questions), mrr / len(questions), seconds)


def corpus(path: Path) -> tuple[list[Draft], list[Question]]:
    """Read the turns, which a new log numbers from 1 in this order, and the questions that have evidence."""
    with gzip.open(path) as file:
        lines = [orjson.loads(line) for line in file]
    turns = [line for line in lines if line["type"] == "episode"]
    places = {(turn["conv"], turn["id"]): place for place, turn in enumerate(turns, start=1)}
    drafts = [
        Draft(
            turn["conv"],
            f"{turn['conv']}/{turn['session']}",
            "user",
            f"{turn['text']} [{turn['caption']}]" if turn.get("caption") else turn["text"],
            author=turn["speaker"],
            timestamp=BEGUN + timedelta(seconds=place),
        )
        for place, turn in enumerate(turns)
    ]
    questions = [
        Question(line["conv"], line["question"], frozenset(places[line["conv"], key] for key in line["evidence"]))
        for line in lines
        if line["type"] == "query" and line["evidence"]
    ]
    return drafts, questions


def filled_recipe(drafts: Sequence[Draft]) -> sqlite3.Connection:
    """Make the table and the index of the well-known recipe in memory, and fill them with the same turns."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(RECIPE)
    rows = [(place, draft.agent_id, f"{draft.author}: {draft.content}") for place, draft in enumerate(drafts, start=1)]
    db.executemany("INSERT INTO episodes VALUES (?, ?, ?)", rows)
    db.execute("INSERT INTO episodes_fts SELECT content, agent_id, id FROM episodes")
    return db
