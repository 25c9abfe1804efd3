"""What a search finds, and why: hits, words, scores. Values only; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from episodic.model import Episode

__all__ = ["Hit", "Reasons", "SearchResult", "Term", "Use"]

Use: TypeAlias = Literal["candidates", "beside", "unused", "absent"]

USES: dict[Use, str] = {
    "candidates": "brings in candidates",
    "beside": "looked up where another word stands",
    "unused": "too common beside the others, not looked up",
    "absent": "in no episode",
}
MODES = {"fts": "found by the full-text index", "like": "found by comparing text"}

# Enough of an episode to know it again.
EXCERPT = 70


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query, and what became of it.

    Attributes:
        word: the word, folded.
        frequency: episodes in scope that hold it, as far as they were counted.
        is_bound: whether the count stopped there, so that there may be more.
        weight: what an episode gains that holds it: Robertson's ln((N - df + 0.5) / (df + 0.5)), floored; 0 for a word
            that is in no episode.
        use: "candidates" when all or the newest of its episodes were ranked, "beside" when it was looked up only where
            another word stands, "unused" when it was not looked up, "absent" when no episode in scope holds it.
    """

    word: str
    frequency: int
    is_bound: bool
    weight: float
    use: Use


@dataclass(frozen=True, slots=True)
class Reasons:
    """What the score of a hit consists of: `(words + nearby + session) * factor + author`.

    Attributes:
        words: weights of the words that it holds.
        nearby: from words that turns next to it hold.
        session: from words that its session holds.
        factor: 1, or less for a turn that asks.
        author: for an author whom the query names.
    """

    words: float
    nearby: float
    session: float
    factor: float
    author: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One episode that a search found.

    Attributes:
        score: higher is better; comparable within one result only.
        matched: the words that were looked for and that it holds, the rarest first; empty for a turn that was found
            because it stands beside one that holds them.
        reasons: what the score consists of.
    """

    episode: Episode
    score: float
    matched: tuple[str, ...]
    reasons: Reasons


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, the best first.

    Attributes:
        hits: the episodes with their scores.
        mode: "fts" with the full-text index, "like" on a build of SQLite without FTS5.
        words: the words that were looked for; empty when the query held nothing to look for.
        exhaustive: whether every episode in scope that holds one of the query's words was considered.
        terms: what became of each word, the rarest first.
        total: episodes of the agent or, if the filter names a user, of the agent about that user; 0 where there was
            nothing to look for or nothing to look at.
        truncated: whether the query held more than is looked for, so that its end was left out.
    """

    hits: tuple[Hit, ...]
    mode: Literal["fts", "like"]
    words: tuple[str, ...]
    exhaustive: bool
    terms: tuple[Term, ...]
    total: int
    truncated: bool

    def explain(self) -> str:
        """Write down for a person what was looked for, and why each hit stands where it does."""
        cut = "; the query was cut" if self.truncated else ""
        if not self.terms:
            return f"There was no word to look for{cut}."
        considered = "all that hold a word" if self.exhaustive else "not all that hold a word"
        lines = [f"{self.total:,} episodes in scope, {MODES[self.mode]}, {considered} were considered{cut}"]
        width = max(len("word"), *(len(term.word) for term in self.terms))
        lines += ["", f"{'word':<{width}}  {'episodes':>9}  {'weight':>6}  use"]
        lines += [_term_line(term, width) for term in self.terms]
        for place, hit in enumerate(self.hits, start=1):
            lines += ["", *_hit_lines(place, hit)]
        return "\n".join(lines)


def _term_line(term: Term, width: int) -> str:
    count = f"{term.frequency:,}{'+' if term.is_bound else ''}"
    return f"{term.word:<{width}}  {count:>9}  {term.weight:>6.2f}  {USES[term.use]}"


def _hit_lines(place: int, hit: Hit) -> list[str]:
    episode, reasons = hit.episode, hit.reasons
    text = _one_line(episode.content)
    excerpt = text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1]}…"
    parts = [
        f"words {reasons.words:.2f}" + (f" ({', '.join(hit.matched)})" if hit.matched else ""),
        f"nearby {reasons.nearby:.2f}",
        f"session {reasons.session:.2f}",
    ]
    asks = "" if reasons.factor == 1 else f", times {reasons.factor:.2f} for a question"
    author = f", and {reasons.author:.2f} for its author" if reasons.author else ""
    return [
        f"{place:2}  episode {episode.id} in session {_one_line(episode.session_id)}, {episode.role}: {excerpt}",
        f"    score {hit.score:.2f}: {' + '.join(parts)}{asks}{author}",
    ]


def _one_line(text: str) -> str:
    """Leave no line break in what a person wrote, so that it cannot pass for a line of ours."""
    return " ".join(text.split())
