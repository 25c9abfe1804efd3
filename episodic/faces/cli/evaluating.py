"""The command that measures how well a log answers questions of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import click
from anyio import to_thread
from rich.text import Text

from episodic.errors import TransferError
from episodic.faces.cli.exits import OK, NothingFoundError
from episodic.faces.cli.options import agent_option, awaited, chosen_agent, command, db_option, json_option
from episodic.faces.cli.progress import counting
from episodic.faces.cli.screen import Screen
from episodic.faces.cli.text import one_line
from episodic.log import EpisodicLog
from episodic.model import Episode, Filter
from episodic.transfer import Question, read_questions

__all__ = ["eval_"]

LARGEST = "of lines that name none; without it, the one with most episodes"
CUTOFFS = (1, 3, 5, 10)
LOOKED_AT = max(CUTOFFS)
MISSES_SHOWN = 20


class Answer(NamedTuple):
    """What one question found: at which place the first expected episode came, from 1, or None."""

    question: Question
    rank: int | None
    found: Sequence[Episode]


@command("eval", exits="A miss is no error.")
@click.argument("file", type=click.Path(path_type=Path))
@db_option
@agent_option(LARGEST)
@click.option("--recall", "by_recall", is_flag=True, help="Ask recall_context instead of search.")
@json_option
@awaited
async def eval_(*, file: Path, db: Path, agent_id: str | None, by_recall: bool, as_json: bool) -> int:
    """Measure how well the log answers the questions in FILE.

    FILE holds one JSON object a line, packed by gzip or not: {"question": "...", "expected": 17}. What is expected is
    the id of an episode, its event id as text, or a list of these, any of which will do; agent_id, user_id and
    session_id narrow a question.

    Shown are the share of questions with an expected episode among the first 1, 3, 5 and 10, the mean reciprocal rank
    of the first one, and the questions that missed.
    """
    # In a thread, which Ctrl-C need not wait for: the file may be a pipe, or never end.
    questions = await to_thread.run_sync(read_questions, file, abandon_on_cancel=True)
    if not questions:
        msg = f"{file} holds no question"
        raise NothingFoundError(msg)
    answers: list[Answer] = []
    async with EpisodicLog.open(db, read_only=True) as log:
        if agent_id is None and any(question.agent_id is None for question in questions):
            agent_id = await chosen_agent(log, None)
        _check_agents(questions, {agent.agent_id for agent in await log.agents()}, file)
        with counting(file.name, "questions") as advance:
            for question in questions:
                answers.append(await _answer(log, question, agent_id, by_recall=by_recall))
                if advance is not None:
                    advance(len(answers), len(answers), len(questions))
    screen, figures = Screen.open(), measured([answer.rank for answer in answers])
    misses = [answer for answer in answers if answer.rank is None]
    if as_json:
        screen.records([figures, *map(_miss_record, misses)])
    else:
        _print_figures(screen, figures, "recall_context" if by_recall else "search")
        _print_misses(screen, misses)
    return OK


def _check_agents(questions: Sequence[Question], known: AbstractSet[str], file: Path) -> None:
    """Refuse a question to nobody, which would look like one that missed."""
    for question in questions:
        if question.agent_id is not None and question.agent_id not in known:
            msg = f"{file.name}, line {question.line}: the log has no agent {question.agent_id!r}; see `episodic stats`"
            raise TransferError(msg)


def measured(ranks: Sequence[int | None]) -> dict[str, float]:
    """Sum up at which places the first expected episodes came.

    Args:
        ranks: one for each question, from 1; None where none of them was found.

    Returns:
        How many questions, hit@k as a share of them for each cut-off, and the mean reciprocal rank (Voorhees, TREC-8,
        1999), to which a miss adds nothing.
    """
    hits = {f"hit@{most}": sum(rank is not None and rank <= most for rank in ranks) / len(ranks) for most in CUTOFFS}
    return {"questions": len(ranks), **hits, "mrr": sum(1 / rank for rank in ranks if rank is not None) / len(ranks)}


async def _answer(log: EpisodicLog, question: Question, agent_id: str | None, *, by_recall: bool) -> Answer:
    of_whom = question.agent_id if question.agent_id is not None else agent_id or ""
    where = Filter(user_id=question.user_id, session_id=question.session_id)
    if by_recall:
        context = await log.recall_context(of_whom, question.text, LOOKED_AT, where)
        found = [item.episode for item in context.items]
    else:
        result = await log.search(of_whom, question.text, LOOKED_AT, where)
        found = [hit.episode for hit in result.hits]
    places = (
        place for place, episode in enumerate(found, start=1) if {episode.id, episode.event_id} & question.expected
    )
    return Answer(question, next(places, None), found)


def _print_figures(screen: Screen, figures: dict[str, float], way: str) -> None:
    screen.line(f"{figures['questions']:,.0f} questions to {way}")
    shares = [f"{name} {share:.1%}" for name, share in figures.items() if name.startswith("hit")]
    screen.line("  ".join([*shares, f"MRR {figures['mrr']:.3f}"]))


def _print_misses(screen: Screen, misses: Sequence[Answer]) -> None:
    if not misses:
        return
    screen.line()
    screen.line(f"{len(misses):,} missed: what was expected is not among the first {LOOKED_AT}")
    for answer in misses[:MISSES_SHOWN]:
        expected = ", ".join(one_line(str(one)) for one in sorted(answer.question.expected, key=str))
        lead = Text(f"line {answer.question.line}", "dim")
        screen.turn(lead, Text(f"{one_line(answer.question.text)}  (expected {expected})"))
    if len(misses) > MISSES_SHOWN:
        screen.line(f"and {len(misses) - MISSES_SHOWN:,} more; --json has them all")


def _miss_record(answer: Answer) -> dict[str, object]:
    return {
        "line": answer.question.line,
        "question": answer.question.text,
        "expected": sorted(answer.question.expected, key=str),
        "found": [episode.id for episode in answer.found],
    }
