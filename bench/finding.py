"""How much of the evidence for questions is found, how quickly, and by whom: ours, the recipe, and tantivy."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

import tantivy

from bench.haystack import Question
from bench.peers import PRAGMAS
from bench.rounds import percentiles
from episodic import Draft, EpisodicLog, Filter
from episodic.search.stopwords import ENGLISH

__all__ = ["LOOKED_AT", "Find", "Quality", "Where", "by_recall", "by_search", "compared", "recipe", "tantivy_index"]

LOOKED_AT = 10

Find: TypeAlias = Callable[[Question], Awaitable[Sequence[str | None]]]
"""Returns the event ids of episodes, the best first."""

Where: TypeAlias = Callable[[Question], Filter | None]
"""Narrows a search to what a question is about."""

RECIPE = """
CREATE TABLE episodes (id INTEGER PRIMARY KEY, agent_id TEXT, content TEXT, event_id TEXT);
CREATE INDEX episodes_by_agent ON episodes (agent_id);
CREATE VIRTUAL TABLE episodes_fts USING fts5 (content, agent_id UNINDEXED, episode_id UNINDEXED);
"""
RECIPE_INSERT = "INSERT INTO episodes (agent_id, content, event_id) VALUES (?, ?, ?)"
RECIPE_INDEX = "INSERT INTO episodes_fts SELECT content, agent_id, id FROM episodes"
RECIPE_SEARCH = """
SELECT event_id FROM episodes_fts JOIN episodes ON episodes.id = episode_id
WHERE episodes_fts MATCH ? AND episodes.agent_id = ? ORDER BY bm25(episodes_fts) LIMIT ?
"""

TANTIVY_BYTES = 200_000_000


@dataclass(slots=True)
class Quality:
    """What one way has found of the questions asked so far, and the seconds of each search."""

    first_5: float = 0.0
    first_10: float = 0.0
    reciprocal: float = 0.0
    seconds: list[float] = field(default_factory=list)

    def add(self, evidence: frozenset[str], found: Sequence[str | None], seconds: float) -> None:
        """Add the answer to one question."""
        self.seconds.append(seconds)
        self.first_5 += len(evidence.intersection(found[:5])) / len(evidence)
        self.first_10 += len(evidence.intersection(found[:10])) / len(evidence)
        self.reciprocal += next((1 / rank for rank, name in enumerate(found, start=1) if name in evidence), 0.0)

    @property
    def recall(self) -> float:
        """Share of the evidence among the first ten."""
        return self.first_10 / len(self.seconds)

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank of the first evidence."""
        return self.reciprocal / len(self.seconds)

    @property
    def p95(self) -> float:
        """95th percentile of the searches, in milliseconds."""
        return percentiles(self.seconds)["p95"]

    def figures(self) -> dict[str, float]:
        """Return everything by name."""
        shares = {"r@5": self.first_5 / len(self.seconds), "r@10": self.recall, "mrr": self.mrr}
        return shares | {"questions": len(self.seconds)} | dict(percentiles(self.seconds))


async def compared(ways: Mapping[str, Find], questions: Iterable[Question]) -> dict[str, Quality]:
    """Ask each question in every way, one after the other, so that a machine that slows down slows down all of them."""
    found = {name: Quality() for name in ways}
    for question in questions:
        for name, find in ways.items():
            begun = perf_counter()
            answer = await find(question)
            found[name].add(question.evidence, answer, perf_counter() - begun)
    return found


def by_search(log: EpisodicLog, where: Where = lambda _: None) -> Find:
    """Ask `log.search`."""

    async def find(question: Question) -> Sequence[str | None]:
        found = await log.search(question.agent_id, question.text, LOOKED_AT, where(question))
        return [hit.episode.event_id for hit in found.hits]

    return find


def by_recall(log: EpisodicLog, where: Where = lambda _: None) -> Find:
    """Ask `log.recall_context`."""

    async def find(question: Question) -> Sequence[str | None]:
        context = await log.recall_context(question.agent_id, question.text, LOOKED_AT, where(question))
        return [item.episode.event_id for item in context.items]

    return find


@asynccontextmanager
async def recipe(folder: Path, drafts: Iterable[Draft]) -> AsyncIterator[Callable[[str], Find]]:
    """Fill the tables of the recipe that everyone copies; what is lent joins the words of a question by an operator."""
    with closing(sqlite3.connect(folder / "recipe.db", isolation_level=None)) as db:
        for statement in (*PRAGMAS, *RECIPE.split(";\n")):
            db.execute(statement)
        db.execute("BEGIN")
        db.executemany(RECIPE_INSERT, ((draft.agent_id, _text(draft), draft.event_id) for draft in drafts))
        db.execute(RECIPE_INDEX)
        db.execute("COMMIT")

        def joined_by(operator: str) -> Find:
            async def find(question: Question) -> Sequence[str | None]:
                words = operator.join(f'"{word}"' for word in re.findall(r"\w+", question.text))
                rows = db.execute(RECIPE_SEARCH, (words, question.agent_id, LOOKED_AT))
                return [name for (name,) in rows]

            return find

        yield joined_by


def tantivy_index(folder: Path, drafts: Iterable[Draft]) -> Callable[..., Find]:
    """Fill an index of tantivy; what is returned makes a way to search it.

    Its arguments: whether English stopwords are left out, and whether the agent is a condition; without it, all agents'
    episodes are ranked together, which is quicker and finds what it must not.
    """
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("agent", tokenizer_name="raw")
    builder.add_text_field("name", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", tokenizer_name="en_stem")
    schema = builder.build()
    folder.mkdir()
    index = tantivy.Index(schema, path=str(folder))
    writer = index.writer(heap_size=TANTIVY_BYTES, num_threads=1)
    for draft in drafts:
        document = tantivy.Document(agent=draft.agent_id, name=draft.event_id or "", text=_text(draft))
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def way(*, stopwords: bool, scoped: bool) -> Find:
        async def find(question: Question) -> Sequence[str | None]:
            words = re.findall(r"\w+", question.text.lower())
            told = words if stopwords else [word for word in words if word not in ENGLISH] or words
            query = index.parse_query(" ".join(told), ["text"])
            if scoped:
                agent = tantivy.Query.term_query(schema, "agent", question.agent_id)
                must = tantivy.Occur.Must
                scope = tantivy.Query.const_score_query(agent, 0.0)
                query = tantivy.Query.boolean_query([(must, scope), (must, query)])
            hits = searcher.search(query, LOOKED_AT, count=False).hits
            return [str(searcher.doc(address)["name"][0]) for _, address in hits]

        return find

    return way


def _text(draft: Draft) -> str:
    return draft.content if draft.author is None else f"{draft.author}: {draft.content}"
