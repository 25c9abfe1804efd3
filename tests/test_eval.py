"""Measuring how well a log answers questions, on the command line."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodic import EpisodicLog
from episodic.faces.cli.evaluating import measured
from tests.conftest import Call, Runner


@pytest.fixture
async def desk(run: Runner) -> Runner:
    """The command line on a log with two agents, and a file of questions about it."""
    async with EpisodicLog.open(run.db) as log:
        await log.record("bot", "s1", "user", "I was charged twice for ORD-1234", user_id="u1", event_id="m1")
        await log.record("bot", "s1", "assistant", "The second charge is refunded.", user_id="u1", event_id="m2")
        await log.record("bot", "s2", "user", "My parcel is late", user_id="u2")
        await log.record("other", "s3", "user", "The invoice is wrong", event_id="m1")
    return run


def write(run: Runner, *questions: object, name: str = "questions.jsonl") -> Path:
    """Write a file of questions."""
    lines = b"".join(orjson.dumps(question, option=orjson.OPT_APPEND_NEWLINE) for question in questions)
    path = run.folder / name
    path.write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    return path


QUESTIONS = (
    {"question": "who was charged twice?", "expected": "m1"},
    {"question": "what was refunded?", "expected": [2, 99]},
    {"question": "is the parcel late?", "expected": 3, "user_id": "u2", "session_id": "s2"},
    {"question": "is the parcel late?", "expected": 3, "user_id": "u1"},
    {"question": "is the invoice wrong?", "expected": "m1", "agent_id": "other"},
)


@pytest.mark.parametrize("options", [[], ["--recall"]])
@pytest.mark.parametrize("name", ["questions.jsonl", "questions.jsonl.gz"])
def test_the_share_of_answers_among_the_first_is_measured(desk: Runner, options: Sequence[str], name: str) -> None:
    """Ids and event ids count, lines narrow their own question, and what was missed is listed."""
    write(desk, *QUESTIONS, name=name)
    figures, miss = desk.records("eval", name, "--agent", "bot", *options)
    assert figures == {"questions": 5, "hit@1": 0.8, "hit@3": 0.8, "hit@5": 0.8, "hit@10": 0.8, "mrr": 0.8}
    found = [2, 1] if options else []
    assert miss == {"line": 4, "question": "is the parcel late?", "expected": [3], "found": found}


def test_figures_and_misses_are_shown_to_a_person(desk: Runner) -> None:
    """Two lines of figures, and a line for each question that missed; other agents' answers do not count."""
    write(desk, QUESTIONS[0], {"question": "is the invoice wrong?", "expected": 4})
    shown = desk("eval", "questions.jsonl")
    assert shown.returncode == 0
    assert shown.stdout.splitlines() == [
        "2 questions to search",
        "hit@1 50.0%  hit@3 50.0%  hit@5 50.0%  hit@10 50.0%  MRR 0.500",
        "",
        "1 missed: what was expected is not among the first 10",
        "line 2  is the invoice wrong?  (expected 4)",
    ]
    assert "the largest of 2" in shown.stderr


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{", "questions.jsonl, line 2: is no JSON"),
        ("[]", "line 2: is no JSON object"),
        ('{"question": 1, "expected": 1}', "line 2: question must be text, not 1"),
        ('{"expected": 1}', "line 2: question must be text, not None"),
        ('{"question": "x"}', "line 2: expected must be the id of an episode"),
        ('{"question": "x", "expected": []}', "line 2: expected must be the id of an episode"),
        ('{"question": "x", "expected": true}', "line 2: expected must be the id of an episode"),
        ('{"question": "x", "expected": 100000000000000000000000000}', "line 2: expected must be the id of an episode"),
        ('{"question": "x", "expected": 0}', "line 2: expected must be the id of an episode"),
        (
            r'{"question": "\ud800 1234567890123456789", "expected": 1}',
            "line 2: question holds half of a surrogate pair",
        ),
        (
            r'{"question": "x 1234567890123456789", "expected": ["\ud800"]}',
            "line 2: expected holds half of a surrogate",
        ),
        ('{"question": "x", "expected": 1, "agent_id": "bto"}', "line 2: the log has no agent 'bto'"),
        ('{"question": "x", "expected": 1, "user_id": 7}', "line 2: user_id must be text"),
        ('{"question": "x", "expected": 1, "user": "u"}', "line 2: unknown key 'user'"),
    ],
)
@pytest.mark.usefixtures("desk")
def test_a_line_that_is_no_question_is_one_line(call: Call, tmp_path: Path, line: str, part: str) -> None:
    """The place and the reason are named, and nothing is measured by half of a file."""
    (tmp_path / "questions.jsonl").write_text(f'{{"question": "x", "expected": 1}}\n{line}\n', "utf-8")
    done = call("eval", "questions.jsonl", "--agent", "bot")
    assert (done.returncode, done.stdout) == (3, "")
    assert part in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("desk")
def test_a_question_file_that_never_comes_can_be_interrupted(run: Runner) -> None:
    """While a pipe is waited for, the first Ctrl-C ends the command."""
    os.mkfifo(run.folder / "pipe")
    process = run.start("eval", "pipe", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=10)
    assert (process.returncode, output, errors) == (130, b"", b"")


@pytest.mark.usefixtures("desk")
def test_no_questions_are_nothing_found(call: Call, tmp_path: Path) -> None:
    """An empty file is told apart from one that is not there."""
    (tmp_path / "questions.jsonl").write_text("\n", "utf-8")
    assert call("eval", "questions.jsonl").returncode == 1
    missing = call("eval", "missing.jsonl")
    assert (missing.returncode, "missing.jsonl cannot be read: No such file" in missing.stderr) == (3, True)


def test_measures_are_those_of_a_worked_example() -> None:
    """First, second, eleventh and not at all: the shares and the mean of 1, 1/2, 1/11 and 0."""
    assert measured([1, 2, 11, None]) == {
        "questions": 4,
        "hit@1": 0.25,
        "hit@3": 0.5,
        "hit@5": 0.5,
        "hit@10": 0.5,
        "mrr": pytest.approx((1 + 1 / 2 + 1 / 11) / 4),
    }


@given(st.lists(st.none() | st.integers(1, 20), min_size=1))
def test_measures_grow_with_the_cut(ranks: list[int | None]) -> None:
    """Whoever looks further finds as much at least, and no measure leaves 0 to 1."""
    figures = measured(ranks)
    shares = [figures[f"hit@{most}"] for most in (1, 3, 5, 10)]
    assert shares == sorted(shares)
    assert all(0 <= figure <= 1 for name, figure in figures.items() if name != "questions")
