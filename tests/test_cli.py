"""The command line as a person meets it: real processes, real files, real terminals."""

from __future__ import annotations

import gzip
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from episodic import Draft, EpisodicLog
from episodic.faces.cli.text import ascii_json, excerpt, lasting, one_line, printable, sized, spans
from tests.conftest import Call, Runner, read_all

COMMANDS = (
    *("backup", "demo", "doctor", "erase", "eval", "export", "import", "recall", "recent", "replay", "restore"),
    *("retain", "search", "sessions", "stats", "tail", "vacuum"),
)
READERS = (["recall", "x"], ["recent"], ["replay", "s"], ["search", "x"], ["sessions"], ["stats"], ["tail"], ["export"])

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)

# Clears the screen, colours, retitles the window, rings, reorders, and looks like rich's markup.
HOSTILE = (
    "\x1b[2J\x1b[31mred\x1b]0;title\x07 \x9b31m \u202eevil\u2066 "
    "[bold red]markup[/] [link=x]:smile: \r\nover\rwritten\x08\x7f"
)
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


async def fill(path: Path, *drafts: Draft) -> None:
    """Record episodes."""
    async with EpisodicLog.open(path) as log:
        await log.record_many(drafts)


def turn(
    content: str,
    seconds: float = 0,
    role: str = "user",
    session: str = "s1",
    agent: str = "bot",
    **more: Any,  # noqa: ANN401 - of Draft
) -> Draft:
    """Make a draft."""
    return Draft(agent, session, role, content, timestamp=NOON + timedelta(seconds=seconds), **more)


@pytest.fixture
async def desk(run: Runner) -> Runner:
    """The command line on a log with two agents, three sessions, and outcomes."""
    await fill(
        run.db,
        turn(
            "I was charged twice for order ORD-1234", user_id="u1", author="Ann", metadata={"intent": "billing", "n": 1}
        ),
        turn("Let me look", 20, "assistant", user_id="u1"),
        turn('{"charges": 2}', 25, "tool", user_id="u1", metadata={"intent": "billing", "n": "1"}),
        turn("Refunded", 3_625, "assistant", user_id="u1", outcome="success"),
        turn("The parcel is late", 5_000, session="s2", user_id="u2"),
        turn("Hello", 90_000, session="s1", agent="billing", user_id="u1"),
        turn("Other agents are quiet", 90_001, session="s3", agent="billing"),
    )
    async with EpisodicLog.open(run.db) as log:
        await log.resolve("bot", "s1", "success")
        await log.resolve("bot", "s2", "failure")
    return run


def failed(done: subprocess.CompletedProcess[str], code: int, *parts: str) -> str:
    """Check that a command failed with exactly one line on standard error, and nothing else."""
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("episodic: ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("\n")
    assert done.stdout == ""
    for part in parts:
        assert part in done.stderr
    return done.stderr


def test_every_command_has_help_and_names_its_exit_codes(run: Runner, call: Call) -> None:
    """The group lists all commands, and the help of each says what its exit codes mean."""
    done = run("--help")
    assert done.returncode == 0
    listed = re.findall(r"^  (\w+)  +(\S.*)$", done.stdout.partition("Commands:")[2], re.MULTILINE)
    assert tuple(name for name, _ in listed) == COMMANDS
    assert not any(text.endswith("...") for _, text in listed)
    assert run().stdout == done.stdout
    for name in COMMANDS:
        text = " ".join(call(name, "--help").stdout.split())
        assert text.startswith(f"Usage: episodic {name} ")
        assert "Exit codes: 0 ok, 1 nothing found, 2 wrong usage, 3 the log or a file cannot be used, 130 int" in text


def test_the_version_is_that_of_the_installed_distribution(run: Runner) -> None:
    """`--version` prints one line, and never looks at a log."""
    (run.folder / "episodic_log-7.8.9.dist-info").mkdir()
    (run.folder / "episodic_log-7.8.9.dist-info" / "METADATA").write_text("Name: episodic-log\nVersion: 7.8.9\n")
    path = os.pathsep.join([str(run.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run("--version", env={"PYTHONPATH": path})
    assert (done.returncode, done.stdout, done.stderr) == (0, "episodic 7.8.9\n", "")
    assert not run.db.exists()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["serch"], "No such command 'serch'"),
        (["search"], "Missing argument 'QUERY'"),
        (["recent", "--colour"], "No such option"),
        (["recent", "--limit", "0"], "Invalid value for '--limit'"),
        (["recent", "--role", "human"], "Invalid value for '--role'"),
        (["recent", "--since", "noon\nor later"], "is no time: use 2026-01-05"),
        (["recent", "--meta", "intent"], "write KEY=VALUE"),
        (["recent", "--meta", "a=1", "--meta", "a=2"], "names a key for the second time"),
        (["recent", "--meta", "n=18446744073709551616"], "cannot be compared exactly"),
        (["recent", "--min-age", "nan"], "nan is no number that can be used"),
        (["replay", "s1", "--speed", "inf"], "inf is no number that can be used"),
        (["demo", "--seconds", "nan"], "nan is no number that can be used"),
        (["import"], "Missing argument 'FILE...'"),
        (["import", "a", "b", "--skip", "2"], "--skip goes with one FILE only"),
    ],
)
def test_wrong_usage_is_one_line(call: Call, tmp_path: Path, arguments: Sequence[str], part: str) -> None:
    """A slip on the command line is told in one line with exit code 2, and never makes a file."""
    failed(call(*arguments), 2, part)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", READERS)
def test_a_command_that_reads_never_makes_a_file(call: Call, tmp_path: Path, arguments: Sequence[str]) -> None:
    """A mistyped path is an error in one line, not an empty log."""
    failed(call(*arguments, "--db", "nowhere.db"), 3, "there is no log at", "nowhere.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_log_is_one_line(run: Runner) -> None:
    """Another program's database, a text, a folder: each says what it is, with exit code 3."""
    with closing(sqlite3.connect(run.folder / "other.db")) as db:
        db.execute("CREATE TABLE t (x)")
    (run.folder / "text.db").write_text("no database\n" * 1_000)
    failed(run("stats", "--db", "other.db"), 3, "another program's database")
    failed(run("stats", "--db", "text.db"), 3, "no SQLite database")
    failed(run("stats", "--db", run.folder), 3, "is a folder")


def test_without_the_libraries_it_says_what_to_install(run: Runner) -> None:
    """A plain installation has no click and no rich; the command says how to get them, with exit code 3."""
    program = "import sys; sys.modules['{}'] = None; from episodic.faces.cli import main; sys.exit(main(['stats']))"
    for name in ("click", "rich"):
        command = [sys.executable, "-c", program.format(name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        failed(done, 3, f"{name} is missing: pip install 'episodic-log[cli]'")


def test_the_path_comes_from_the_environment_too(desk: Runner) -> None:
    """EPISODIC_DB names the log where --db does not."""
    other = {"EPISODIC_DB": "nowhere.db"}
    failed(desk("stats", env=other), 3, "nowhere.db")
    assert desk("stats", "--db", desk.db, env=other).returncode == 0


def test_stats_count_what_is_there(desk: Runner) -> None:
    """Agents, episodes, sessions and sizes, for people and for programs."""
    [record] = desk.records("stats")
    assert (record["episodes"], record["sessions"], record["mode"]) == (7, 4, "fts")
    assert record["file_bytes"] == desk.db.stat().st_size
    assert [agent["agent_id"] for agent in record["agents"]] == ["bot", "billing"]
    assert record["agents"][0]["first"] == "2026-01-05T12:00:00Z"
    shown = desk("stats").stdout
    assert re.search(r"^bot +5 +2 +2026-01-05 12:00:00 +2026-01-05 13:23:20$", shown, re.MULTILINE)


def test_sessions_are_listed_newest_first(desk: Runner) -> None:
    """Each with its time, turns, outcome and user."""
    found = desk.records("sessions")
    assert [(one["session_id"], one["outcome"], one["episodes"]) for one in found] == [
        ("s2", "failure", 1),
        ("s1", "success", 4),
    ]
    shown = desk("sessions").stdout.splitlines()
    assert shown[0].split() == ["last", "episode", "turns", "within", "outcome", "session", "user"]
    assert re.fullmatch(r"2026-01-05 13:00:25 +4 +1 h +success +s1 +u1", shown[2])


def test_without_an_agent_the_largest_is_taken_and_said(desk: Runner) -> None:
    """The choice is told on standard error, where it disturbs nobody; with one agent there is nothing to tell."""
    done = desk("recent", "--limit", "1")
    assert done.stderr == "episodic: agent 'bot', the largest of 2; choose another with --agent\n"
    assert "The parcel is late" in done.stdout
    done = desk("recent", "--agent", "billing")
    assert done.stderr == ""
    assert "Other agents are quiet" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        (["--user", "u2"], ["The parcel is late"]),
        (["--session", "s1", "--role", "assistant"], ["Refunded", "Let me look"]),
        (["--role", "tool", "--role", "user", "--session", "s1"], ['{"charges": 2}', "I was charged"]),
        (["--outcome", "failure"], ["The parcel is late"]),
        (["--since", "2026-01-05T13:00"], ["The parcel is late", "Refunded"]),
        (["--until", "2026-01-05T14:00:20+02:00"], ["I was charged"]),
        (["--meta", "n=1"], ["I was charged"]),
        (["--meta", 'n="1"'], ['{"charges": 2}']),
        (["--meta", "intent=billing", "--meta", "n=1"], ["I was charged"]),
        (["--min-age", "1"], ["The parcel is late", "Refunded", '{"charges": 2}', "Let me look", "I was charged"]),
        (["--limit", "2"], ["The parcel is late", "Refunded"]),
    ],
)
@pytest.mark.usefixtures("desk")
def test_filters_leave_what_they_say(call: Call, options: Sequence[str], contents: Sequence[str]) -> None:
    """Every filter holds exactly, metadata by type as well as by value; times without a zone are UTC."""
    found = list(map(orjson.loads, call("recent", "--agent", "bot", "--json", *options).stdout.splitlines()))
    assert [one["content"].startswith(text) for one, text in zip(found, contents, strict=True)] == [True] * len(
        contents
    )


def test_an_age_is_a_time(desk: Runner) -> None:
    """`--since 2h` is two hours ago, in seconds, minutes, hours, days or weeks."""
    with closing(sqlite3.connect(desk.db)) as db, db:
        now = int(time.time() * 1_000_000)
        db.execute("UPDATE episodes SET timestamp = ? WHERE session_id = 's2'", (now - 90 * 60_000_000,))
    assert len(desk.records("recent", "--agent", "bot", "--session", "s2", "--since", "2h")) == 1
    failed(desk("recent", "--agent", "bot", "--session", "s2", "--since", "1.4h"), 1, "has no episodes that the filter")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["replay", "s9"], "there is no session 's9'; `episodic sessions` lists those that exist"),
        (["replay", "s2", "--agent", "billing"], "agent 'billing' has no session 's2'"),
        (["recent", "--agent", "nobody"], "agent 'nobody' has no episodes; run `episodic stats` to see all agents"),
        (["sessions", "--agent", "bot", "--user", "u9"], "agent 'bot' has no sessions that the filter leaves"),
        (["search", "zebra", "--agent", "bot"], "agent 'bot' has no episodes with any of zebra"),
        (["search", "?!", "--agent", "bot"], "there is nothing to look for"),
        (["recall", "zebra", "--agent", "bot", "--user", "u9"], "agent 'bot' has no episodes that the filter leaves"),
        (["recall", "order", "--agent", "bot", "--render", "--max-tokens", "3"], "3 tokens are too few"),
        (["export", "--user", "u9"], "there was nothing to export"),
    ],
)
@pytest.mark.usefixtures("desk")
def test_nothing_found_is_one_line_and_exit_code_1(call: Call, arguments: Sequence[str], part: str) -> None:
    """A script can tell nothing found from found and from failed, and a person learns what to try."""
    failed(call(*arguments), 1, part)


async def test_an_empty_log_says_that_it_is_empty(run: Runner) -> None:
    """An empty log has no largest agent."""
    await fill(run.db)
    failed(run("recent"), 1, "the log is empty")
    assert run("stats").returncode == 0


def test_a_replay_reads_as_a_transcript(desk: Runner) -> None:
    """Head, days, times, roles, authors, outcomes, long pauses, every agent that took part, and the end of each."""
    assert desk("replay", "s1").stdout.splitlines() == [
        "session s1  agent bot  user u1",
        "2026-01-05",
        "12:00:00  user       Ann: I was charged twice for order ORD-1234",
        "12:00:20  assistant  Let me look",
        '12:00:25  tool       {"charges": 2}',
        "(1 h later)",
        "13:00:25  assistant  Refunded  [success]",
        "2026-01-06",
        "now agent billing",
        "13:00:00  user       Hello",
        "ended with bot: success, 4 turns in 1 h",
        "ended with billing: not resolved, 1 turn in 0 s",
    ]
    assert [one["content"] for one in desk.records("replay", "s1", "--limit", "2", "--role", "assistant")] == [
        "Let me look",
        "Refunded",
    ]


async def test_a_replay_can_be_played(run: Runner) -> None:
    """At a speed, all turns come in order, and a pause of days is cut short."""
    await fill(run.db, turn("first"), turn("second", 0.2), turn("third", 500_000))
    assert [one["content"] for one in run.records("replay", "s1", "--speed", "1000000")] == ["first", "second", "third"]


def test_search_marks_the_words_it_found(desk: Runner) -> None:
    """On a terminal the matched words stand out, in whatever form; every hit has its time, session and score."""
    shown, code = desk.on_terminal("search", "double charges on ord-1234?", "--agent", "bot")
    assert code == 0
    assert "\x1b[1;7mcharged\x1b[0m" in shown
    assert "\x1b[1;7mORD\x1b[0m-\x1b[1;7m1234\x1b[0m" in shown
    plain = desk("search", "double charges on ord-1234?", "--agent", "bot").stdout.splitlines()
    assert re.fullmatch(r" 1  2026-01-05 12:00:00  s1  user       score \d+\.\d\d", plain[0])
    assert plain[1] == "    Ann: I was charged twice for order ORD-1234"
    [hit, *_] = desk.records("search", "charges", "--agent", "bot")
    assert hit.keys() == {"episode", "score", "matched", "reasons"}


def test_search_says_of_a_turn_that_it_only_stands_beside_a_hit(desk: Runner) -> None:
    """A turn that holds none of the words is told apart from those that do."""
    hits = desk.records("search", "charges", "--agent", "bot")
    shown = desk("search", "charges", "--agent", "bot").stdout.splitlines()
    heads = [line for line in shown if " score " in line]
    assert [line.endswith(", stands beside what was looked for") for line in heads] == [
        not hit["matched"] for hit in hits
    ]
    assert {bool(hit["matched"]) for hit in hits} == {True, False}


def test_recall_says_why(desk: Runner) -> None:
    """Each episode comes with its ranks and words; --render writes the prompt's text within its budget."""
    shown = desk("recall", "charged again", "--agent", "bot", "--user", "u1").stdout.splitlines()
    assert re.search(r"score 1\.\d\d, relevance 1, recency \d, holds charged$", shown[0])
    text = desk("recall", "charged again", "--agent", "bot", "--render", "--max-tokens", "80").stdout
    assert "[2026-01-05 12:00 UTC] user (Ann): I was charged twice" in text
    assert len(text) <= 80 * 4 + 1
    [item] = desk.records("recall", "order again", "--agent", "bot", "--limit", "1")
    assert (item["episode"]["id"], item["matched"], item["relevance_rank"]) == (1, ["order"], 1)
    [rendered] = desk.records("recall", "charged again", "--agent", "bot", "--render", "--max-tokens", "80")
    assert rendered == {"text": text.removesuffix("\n")}


async def test_recall_tells_the_message_itself_from_nothing(run: Runner) -> None:
    """Where there is only what was just asked, that is said, and not that there are no episodes."""
    async with EpisodicLog.open(run.db) as log:
        await log.record("bot", "s", "user", "where is my parcel?")
    failed(run("recall", "where is my parcel?"), 1, "has nothing but this message itself")


def test_recall_puts_what_is_preferred_first(desk: Runner) -> None:
    """--prefer brings what ended well before what did not, and says so."""
    shown = desk("recall", "late parcel order charged", "--agent", "bot", "--prefer", "failure").stdout.splitlines()
    assert "  s2  " in shown[0]
    assert ", preferred, holds parcel, late" in shown[0] or ", preferred, holds late, parcel" in shown[0]
    [first, *_] = desk.records("recall", "late parcel order charged", "--agent", "bot", "--prefer", "success")
    assert (first["episode"]["session_id"], first["preferred"]) == ("s1", True)


def test_search_explains(desk: Runner) -> None:
    """--explain tells how common each word is and what each score consists of, also when nothing is found."""
    shown = desk("search", "charged for order zebra", "--agent", "bot", "--explain")
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("5 episodes in scope, found by the full-text index")
    counts = dict(line.split()[:2] for line in lines[3:6])
    assert counts == {"charged": "2", "order": "1", "zebra": "0"}
    assert "score" in lines[8]
    [whole] = desk.records("search", "charged", "--agent", "bot", "--explain")
    assert [term["word"] for term in whole["terms"]] == ["charged"]
    nothing = desk("search", "zebra", "--agent", "bot", "--explain")
    assert "zebra" in nothing.stdout
    assert nothing.returncode == 1


async def test_tail_follows_what_another_program_writes(desk: Runner) -> None:
    """The newest come first, then whatever is committed, until Ctrl-C ends it without a word."""
    with desk.start("tail", "-n", "2", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert [orjson.loads(process.stdout.readline())["id"] for _ in range(2)] == [6, 7]
        # Written with an old time, and by a process of its own: this one.
        await fill(desk.db, turn("late news", session="s9"), turn("more", agent="third"))
        assert [orjson.loads(process.stdout.readline())["content"] for _ in range(2)] == ["late news", "more"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() == b""


def test_tail_shows_only_what_the_filter_leaves(desk: Runner) -> None:
    """The same filters hold for what was there and for what comes; without -n there is only what comes."""
    with desk.start("tail", "--user", "u1", "--role", "assistant", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().decode() for _ in range(2)]
        process.send_signal(signal.SIGINT)
    assert [line.split()[-1] for line in lines] == ["look", "[success]"]
    assert lines[0].startswith("2026-01-05 12:00:20  bot  s1  assistant")


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        (["--agent", "third"], "agent 'third'"),
        (["--session", "s9", "-n", "0"], "session 's9'"),
        (["--agent", "bot", "--session", "s3"], "session 's3' of agent 'bot'"),
        (["--agent", "third", "--session", "s1"], "agent 'third'"),
    ],
)
async def test_tail_says_once_that_it_waits_for_what_the_log_does_not_hold(
    desk: Runner, options: Sequence[str], missing: str
) -> None:
    """A mistyped agent or session is told on standard error, and one that is about to begin is followed."""
    with desk.start("tail", "--json", *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = f"episodic: the log holds no episode of {missing} yet; waiting for the first\n"
        assert process.stderr.readline().decode() == said
        await fill(desk.db, *(turn("hi", agent=a, session=s) for a in ("bot", "third") for s in ("s1", "s3", "s9")))
        assert orjson.loads(process.stdout.readline())["content"] == "hi"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() == b""


def test_tail_ends_when_nobody_reads_it(desk: Runner) -> None:
    """`tail | head` comes to its end although the log has no news."""
    with desk.start("tail", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == b""


async def test_a_broken_pipe_is_no_error(run: Runner) -> None:
    """`export | head` and `replay | head` end quietly once the reader has seen enough."""
    await fill(run.db, *(turn("x" * 200, number) for number in range(5_000)))
    for arguments in (["export"], ["replay", "s1"], ["recent", "--limit", "5000", "--json"]):
        with run.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.wait(timeout=20) == 0
            assert process.stderr.read() == b""


def test_a_full_disk_is_one_line(desk: Runner) -> None:
    """Output that cannot be written is an error, not a loss."""
    with Path("/dev/full").open("wb") as full, desk.start("export", stdout=full, stderr=subprocess.PIPE) as process:
        _, errors = process.communicate()
    assert process.returncode == 3
    assert re.fullmatch(rb"episodic: .*No space left on device\n", errors)


@pytest.fixture
async def hostile(run: Runner) -> Runner:
    """A log in which every text is an attack on the terminal."""
    draft = Draft(
        f"bot {HOSTILE}", f"s {HOSTILE}", "user", f"refund {HOSTILE}", user_id=HOSTILE, author=HOSTILE,
        metadata={HOSTILE: HOSTILE}, outcome="failure", timestamp=NOON,
    )  # fmt: skip
    await fill(run.db, draft)
    return run


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", f"s {HOSTILE}"],
        ["recent"],
        ["sessions"],
        ["search", f"refund {HOSTILE}"],
        ["recall", "refund"],
        ["recall", "refund", "--render"],
        ["stats"],
        ["replay", f"no {HOSTILE}"],
        ["import", f"no {HOSTILE}"],
    ],
)
def test_hostile_text_cannot_control_the_terminal(hostile: Runner, call: Call, arguments: Sequence[str]) -> None:
    """Controls are spelled out and markup is text, in output, in errors, on a terminal, in a pipe and in JSON."""
    done = call(*arguments)
    for text in (done.stdout, done.stderr):
        assert not CONTROL.search(text)
    # The spelled out controls and the markup are there, in one or the other.
    assert "\\x1b[2J" in done.stdout + done.stderr
    assert "[bold red]markup[/]" in done.stdout + done.stderr
    assert ":smile:" in done.stdout + done.stderr
    shown, _ = hostile.on_terminal(*arguments, env={"COLUMNS": "300"})
    ours = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r\n", "\n")
    assert not CONTROL.search(ours)
    if done.returncode == 0 and "--render" not in arguments:
        lines = call(*arguments, "--json").stdout
        assert not CONTROL.search(lines)
        assert any(HOSTILE in text for text in values(orjson.loads(lines)))


def test_an_export_cannot_control_the_terminal(hostile: Runner) -> None:
    """On a terminal controls are escaped within the JSON, which says the same; in a pipe the bytes stay."""
    plain = hostile("export").stdout
    assert "\u202e" in plain
    parent, child = pty.openpty()
    with hostile.start("export", stdin=subprocess.DEVNULL, stdout=child, stderr=subprocess.PIPE) as process:
        os.close(child)
        shown = b"".join(read_all(parent)).decode().replace("\r\n", "\n")
    assert process.returncode == 0
    assert not CONTROL.search(shown)
    assert list(map(orjson.loads, shown.splitlines())) == list(map(orjson.loads, plain.splitlines()))


def values(record: object) -> Iterator[str]:
    """Go through all texts in a record."""
    match record:
        case str():
            yield record
        case dict():
            for key, value in record.items():
                yield key
                yield from values(value)
        case list():
            for value in record:
                yield from values(value)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
async def test_any_encoding_of_the_terminal_will_do(run: Runner, encoding: str) -> None:
    """What the terminal cannot show is spelled out; JSON is UTF-8 all the same."""
    await fill(run.db, turn("Grüße 👍 你好, hello", author="Łucja"))
    env = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for arguments in (["replay", "s1"], ["search", "hello"]):
        with run.start(*arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            output, errors = process.communicate()
        assert process.returncode == 0, errors
        assert errors == b""
        assert "Łucja: Grüße 👍 你好, hello".encode(encoding, "backslashreplace") in output
    # Here an argument that is no ASCII is no text.
    for arguments, code in ((["recent", "--user", "Grüße"], 2), (["import", "Grüße"], 3)):
        with run.start(*arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            _, errors = process.communicate()
        assert process.returncode == code
        assert errors.startswith(b"episodic: ")
        assert errors.count(b"\n") == 1
    with run.start("replay", "s1", "--json", env=env, stdout=subprocess.PIPE) as process:
        output, _ = process.communicate()
    assert orjson.loads(output)["content"] == "Grüße 👍 你好, hello"


def test_a_terminal_gets_colours_and_a_pipe_does_not(desk: Runner) -> None:
    """Roles and outcomes are coloured where somebody sees it, unless NO_COLOR says no."""
    shown, _ = desk.on_terminal("replay", "s1", "--agent", "bot")
    assert "\x1b[36muser     \x1b[0m" in shown
    assert "\x1b[32msuccess\x1b[0m" in shown
    assert "\x1b[36m" not in desk.on_terminal("replay", "s1", env={"NO_COLOR": "1"})[0]
    assert "\x1b" not in desk("replay", "s1").stdout


async def test_long_text_hangs_under_its_beginning(run: Runner) -> None:
    """A terminal wraps between words; a pipe gets the lines of the text, and no more."""
    await fill(run.db, turn("one two three\nfour " + "word " * 30))
    shown, _ = run.on_terminal("replay", "s1", env={"COLUMNS": "60", "NO_COLOR": "1"})
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert lines[2] == "12:00:00  user       one two three"
    assert lines[3].startswith(" " * 21 + "four word")
    assert all(len(line) <= 60 for line in lines)
    narrow, _ = run.on_terminal("replay", "s1", env={"COLUMNS": "30", "NO_COLOR": "1"})
    assert all(len(line) <= 30 for line in re.sub(r"\x1b\[[0-9;]*m", "", narrow).splitlines()[:-1])
    assert run("replay", "s1").stdout.splitlines()[3].startswith(" " * 21 + "four word word")


def dialogue(count: int) -> bytes:
    """Write an import file."""
    line = {"agent_id": "bot", "session_id": "s", "role": "user", "timestamp": "2026-01-05T12:00:00Z"}
    return b"".join(orjson.dumps(line | {"content": f"{n}"}, option=orjson.OPT_APPEND_NEWLINE) for n in range(count))


def wait_for_log(run: Runner) -> None:
    """Wait until a command that was started has made the log."""
    while run("stats").returncode:
        time.sleep(0.05)


def test_import_takes_files_and_standard_input(run: Runner) -> None:
    """Several files in turn, packed or not, and a stream; each says what it brought."""
    (run.folder / "a.jsonl").write_bytes(dialogue(2))
    (run.folder / "b.jsonl.gz").write_bytes(gzip.compress(dialogue(3)))
    chat = orjson.dumps({"messages": [{"role": "user", "content": "hi"}]})
    done = run("import", "a.jsonl", "b.jsonl.gz", "-", "--agent", "chatty", stdin=chat)
    assert done.returncode == 0
    assert done.stderr == ""
    assert re.fullmatch(
        r"imported 2 episodes from a\.jsonl in [\d.]+ s \([\d,]+/s\)\n"
        r"imported 3 episodes from b\.jsonl\.gz in [\d.]+ s \([\d,]+/s\)\n"
        r"imported 1 episode from - in [\d.]+ s \([\d,]+/s\)\n",
        done.stdout,
    )
    assert [one["content"] for one in run.records("recent", "--agent", "chatty")] == ["hi"]
    [record] = run.records("import", "a.jsonl", "--skip", "1")
    assert record.pop("seconds") >= 0
    assert record == {"file": "a.jsonl", "lines": 2, "episodes": 1, "outcomes": 0}


def test_a_bad_line_is_one_line_that_says_how_to_go_on(run: Runner) -> None:
    """What came before is in the log, and --skip goes on behind it."""
    (run.folder / "a.jsonl").write_bytes(dialogue(2) + b"{\n" + dialogue(1))
    failed(
        run("import", "a.jsonl"), 3, "a.jsonl, line 3: is no JSON", "(--skip 2); to leave line 3 out, skip 3 (--skip 3)"
    )
    assert run("import", "a.jsonl", "--skip", "3").returncode == 0
    assert len(run.records("recent")) == 3
    failed(run("import", "a.jsonl", "--format", "recipe"), 3, "no SQLite database")


def test_a_missing_file_makes_no_log(run: Runner) -> None:
    """All files are looked for before anything is written; and a log is never imported into itself."""
    (run.folder / "a.jsonl").write_bytes(dialogue(1))
    failed(run("import", "a.jsonl", "b.jsonl"), 3, "b.jsonl does not exist")
    assert not run.db.exists()
    run("import", "a.jsonl")
    failed(run("import", run.db), 3, "is the log itself")


@pytest.mark.parametrize("line", [b"{\n", b'{"session_id": "s", "role": "human"}\n'])
async def test_a_failed_import_leaves_no_empty_log(run: Runner, line: bytes) -> None:
    """A log that was made for nothing goes away again; one that was there, or that holds episodes, stays."""
    (run.folder / "bad.jsonl").write_bytes(line)
    (run.folder / "link.db").symlink_to("target.db")
    for name in ("episodic.db", "link.db"):
        failed(run("import", "bad.jsonl", "--db", name), 3, "line 1")
    assert sorted(one.name for one in run.folder.iterdir()) == ["bad.jsonl", "link.db"]
    (run.folder / "good.jsonl").write_bytes(dialogue(2))
    assert run("import", "good.jsonl", "bad.jsonl").returncode == 3
    assert len(run.records("recent")) == 2
    await fill(run.folder / "empty.db")
    failed(run("import", "bad.jsonl", "--db", "empty.db"), 3, "line 1")
    assert run("stats", "--db", "empty.db").returncode == 0


async def test_a_failed_import_leaves_a_log_that_another_program_has_opened(run: Runner) -> None:
    """Whoever opened the new log meanwhile may be about to write to it, and loses nothing."""
    pipe = subprocess.PIPE
    with run.start("import", "-", stdin=pipe, stdout=pipe, stderr=pipe) as process:
        wait_for_log(run)
        async with EpisodicLog.open(run.db) as log:
            _, errors = process.communicate(b"{\n")
            assert process.returncode == 3, errors
            await log.record("bot", "s", "user", "kept")
    assert [one["content"] for one in run.records("recent")] == ["kept"]


def test_an_interrupted_import_that_recorded_nothing_leaves_no_log(run: Runner) -> None:
    """Ctrl-C before the first episode is as if the command had not been given."""
    pipe = subprocess.PIPE
    with run.start("import", "-", stdin=pipe, stdout=pipe, stderr=pipe) as process:
        wait_for_log(run)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    assert list(run.folder.iterdir()) == []


def test_an_interrupted_import_says_how_to_go_on(run: Runner) -> None:
    """Ctrl-C while it waits for more: what was read is in the log, and the exit code is 130."""
    pipe = subprocess.PIPE
    with run.start("import", "-", stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(dialogue(5_000))
        process.stdin.flush()
        while not run.db.exists() or len(run("recent", "--limit", "5000", "--json").stdout.splitlines()) < 4_000:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert (
            process.stderr.read() == b"episodic: interrupted: 4,000 episodes of - are imported; to go on, --skip 4000\n"
        )


def test_an_export_is_imported_as_it_was(desk: Runner) -> None:
    """Into a file, a packed file, and through a pipe; outcomes go along."""
    assert (
        desk("export", "all.jsonl.gz").stdout == "exported 7 episodes and the outcomes of 2 sessions to all.jsonl.gz\n"
    )
    assert gzip.decompress((desk.folder / "all.jsonl.gz").read_bytes()).decode() == desk("export").stdout
    other = Runner(desk.folder / "other")
    other.folder.mkdir()
    assert other("import", "-", stdin=desk("export").stdout.encode()).returncode == 0
    assert other("export").stdout == desk("export").stdout
    assert other.records("sessions") == desk.records("sessions")


def test_progress_is_for_terminals(desk: Runner) -> None:
    """Long work shows rows and rate on a terminal; in a pipe there is none of it."""
    (desk.folder / "a.jsonl").write_bytes(dialogue(3_000))
    shown, code = desk.on_terminal("import", "a.jsonl")
    assert code == 0
    assert "3,000 episodes" in shown
    assert "/s" in shown
    assert desk("import", "a.jsonl").stderr == ""


def test_the_demo_shows_figures_a_recall_and_a_replay(run: Runner) -> None:
    """A short desk of few conversations, in a temporary file or one that is kept."""
    done = run("demo", "--seconds", "0.5", "--conversations", "20", "--keep", "demo.db")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(r"^[\d,]+ episodes/s acknowledged: ", done.stdout, re.MULTILINE)
    assert re.search(r"^record +[\d,]+ +[\d.]+ ms +[\d.]+ ms +[\d.]+ ms$", done.stdout, re.MULTILINE)
    assert re.search(r"^recall_context +[\d,]+", done.stdout, re.MULTILINE)
    assert "Earlier episodes from the log" in done.stdout
    assert run("stats", "--db", "demo.db").returncode == 0
    failed(run("demo", "--keep", "demo.db"), 3, "exists already")
    [record] = run.records("demo", "--seconds", "0.3", "--conversations", "5")
    assert record["episodes"] > 0
    assert record["record_ms"].keys() == {"p50", "p95", "p99"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ntext", "plain\ntext"),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("a\tb", "a   b"),
        ("\x1b[2J\x9b\x7f\u202e", "\\x1b[2J\\x9b\\x7f\\u202e"),
        ("👩\u200d💻 é", "👩\u200d💻 é"),
    ],
)
def test_controls_are_spelled_out(text: str, shown: str) -> None:
    """What a terminal obeys is written in letters; line ends and joined emoji stay."""
    assert printable(text) == shown
    assert one_line(text) == shown.replace("\n", "\\n")


def test_json_on_a_terminal_stays_the_same_json() -> None:
    """Controls beyond ASCII are escaped as JSON escapes them."""
    line = orjson.dumps({"a": "\x9b\u2028é\x7f"})
    assert not CONTROL.search(ascii_json(line).decode())
    assert orjson.loads(ascii_json(line)) == orjson.loads(line)


@pytest.mark.parametrize(
    ("text", "word", "found"),
    [
        ("Refunds, refunded; REFUND!", "refund", ["Refunds", "refunded", "REFUND"]),
        ("it shipped", "shipping", ["shipped"]),
        ("the café", "cafe", ["café"]),
        ("ORD-1234 and 1234", "ord-1234", ["ORD", "1234", "1234"]),
        ("context content", "content", ["content"]),
        ("a an as", "a", ["a"]),
    ],
)
def test_marks_stand_on_the_forms_of_a_word(text: str, word: str, found: Sequence[str]) -> None:
    """As the index's stemmer and folding see them."""
    assert [text[start:end] for start, end in spans(text, [word])] == found


@pytest.mark.parametrize("length", [50, 200, 2_000])
def test_an_excerpt_holds_the_words_and_fits(length: int) -> None:
    """A long text is cut between words, around the place with most of the words."""
    text = "filler " * length + "the refund was late " + "more " * length
    cut = excerpt(text, ["refund", "late"], 120)
    assert len(cut.text) <= 120 + 8
    assert [cut.text[start:end] for start, end in cut.marks] == ["refund", "late"]
    assert cut.text.removeprefix("... ").removesuffix(" ...") in text
    assert len(excerpt("x" * 5_000, ["x"], 120).text) <= 128


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (0.4, "0 s"), (59, "59 s"), (60, "1 min"), (125, "2 min 5 s"), (7_200, "2 h"), (93_784, "1 d 2 h")],
)
def test_durations_have_two_units_at_most(seconds: float, shown: str) -> None:
    """Whoever reads at night needs no seconds of a day."""
    assert lasting(timedelta(seconds=seconds)) == shown


def test_sizes_have_the_unit_that_suits_them() -> None:
    """Bytes are whole, the rest has one decimal."""
    assert [sized(count) for count in (0, 999, 1_000, 102_215_680, 5 * 10**15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "102.2 MB",
        "5000.0 TB",
    ]
