"""What is imported and exported is what was there: every line, in order, or an error that names it."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import stat
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from episodic import Draft, Episode, EpisodicLog, Filter, FilterError, TransferError
from episodic.model import OUTCOMES, ROLES
from episodic.transfer import Progress, export_file, import_file
from episodic.transfer.values import clock_time

SGD = Path(os.environ.get("EPISODIC_DATA", Path(__file__).parents[2] / "shared/data")) / "support/sgd.jsonl.gz"

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
LINE = {"agent_id": "bot", "session_id": "s", "role": "user", "content": "hello", "timestamp": "2026-01-05T12:00:00Z"}

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
names = st.sampled_from(["a", "a_", "A", "", "é", "\n", " "]) | texts
instants = st.datetimes(timezones=st.sampled_from([UTC])) | st.just(datetime.min.replace(tzinfo=UTC))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
drafts = st.builds(
    Draft,
    names,
    names,
    st.sampled_from(sorted(ROLES)),
    texts,
    user_id=st.none() | names,
    author=st.none() | texts,
    outcome=st.none() | st.sampled_from(sorted(OUTCOMES)),
    metadata=st.dictionaries(texts, values, max_size=3),
    timestamp=instants,
)


def lines(*objects: object) -> bytes:
    """Write objects as JSON lines."""
    return b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in objects)


def stream(*objects: object) -> io.BytesIO:
    """Hold objects as JSON lines in memory."""
    return io.BytesIO(lines(*objects))


async def everything(log: EpisodicLog) -> list[Episode]:
    """Return all episodes by id."""
    return [episode async for episode in log.scan()]


async def one(log: EpisodicLog) -> Episode:
    """Return the only episode."""
    [episode] = await everything(log)
    return episode


async def outcomes(log: EpisodicLog) -> dict[tuple[str, str], str | None]:
    """Return how the sessions ended that are resolved."""
    return {(session.agent_id, session.session_id): session.outcome async for session in log.resolved()}


async def refusal(log: EpisodicLog, *objects: object, **options: Any) -> str:  # noqa: ANN401 - of import_file
    """Import lines that cannot be, and return what is said of them."""
    with pytest.raises(TransferError) as caught:
        await import_file(log, stream(*objects), **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@given(st.lists(drafts, min_size=1, max_size=8), st.sampled_from(["log.jsonl", "log.jsonl.gz"]), st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_export_imports_as_what_it_was(written: list[Draft], name: str, data: st.DataObject) -> None:
    """Any episode and any session's outcome come back equal, ids aside, through a file, packed or not."""
    keys = sorted({(draft.agent_id, draft.session_id) for draft in written})
    ended = data.draw(st.dictionaries(st.sampled_from(keys), st.sampled_from(sorted(OUTCOMES))))

    async def round_trip(folder: Path) -> None:
        async with EpisodicLog.open(folder / "a.db") as first:
            await first.record_many(written)
            for (agent_id, session_id), outcome in ended.items():
                await first.resolve(agent_id, session_id, outcome)
            exported = await export_file(first, folder / name)
            before = await everything(first)
        async with EpisodicLog.open(folder / "b.db") as second:
            imported = await import_file(second, folder / name)
            after = await everything(second)
            assert await outcomes(second) == ended
        assert [replace(episode, id=0) for episode in after] == [replace(episode, id=0) for episode in before]
        assert (exported.episodes, exported.outcomes) == (len(written), len(ended))
        assert imported[:3] == exported[:3]

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(round_trip(Path(folder)))


async def test_every_field_of_a_line_is_kept(log: EpisodicLog) -> None:
    """A line names all fields of an episode; the id and the archive are the log's own to give."""
    line = LINE | {"user_id": "u", "author": "Ann", "outcome": "success", "metadata": {"n": 1}, "event_id": "e1"}
    done = await import_file(log, stream(line | {"id": 77, "archived": True}))
    assert await one(log) == Episode(
        1, "bot", "s", "u", "Ann", NOON, "user", "hello", "success", {"n": 1}, "e1", archived=False
    )
    assert done[:3] == (1, 1, 0)


async def test_lines_keep_their_order_over_many_chunks(log: EpisodicLog) -> None:
    """Thousands of lines are read ahead and committed in chunks, and come out as they went in."""
    await import_file(log, stream(*(LINE | {"content": str(number)} for number in range(7_001))))
    assert [episode.content for episode in await everything(log)] == [str(number) for number in range(7_001)]


@pytest.mark.parametrize("packed", [False, True])
async def test_gzip_is_known_by_its_content(log: EpisodicLog, tmp_path: Path, packed: bool) -> None:
    """The name of a file says nothing about whether it is packed."""
    file = tmp_path / ("plain.jsonl.gz" if not packed else "packed.jsonl")
    file.write_bytes(gzip.compress(lines(LINE)) if packed else lines(LINE))
    assert (await import_file(log, file)).episodes == 1


async def test_a_windows_file_with_blank_lines_is_read(log: EpisodicLog) -> None:
    """A byte order mark, carriage returns and empty lines belong to no episode; empty lines count as lines."""
    done = await import_file(log, io.BytesIO(b"\xef\xbb\xbf" + lines(LINE).replace(b"\n", b"\r\n") + b"\r\n \n"))
    assert (done.lines, done.episodes) == (1, 1)
    assert "line 3: has no role" in await refusal(log, LINE, LINE, {**LINE, "role": None})


async def test_an_empty_file_imports_as_nothing(log: EpisodicLog) -> None:
    """No lines are no error."""
    assert await import_file(log, io.BytesIO()) == Progress(0, 0, 0, 0, None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "is no JSON: "),
        (b"\xff\xfe", "is no JSON: "),
        (b"[1]", "is no JSON object, but an array"),
        (b"7", "is no JSON object, but a number"),
        (lines(LINE | {"colour": "red"}), "unknown key 'colour'"),
        (lines({**LINE, "agent_id": None}), "has no agent_id; name one with --agent"),
        (lines({**LINE, "content": None}), "has no content"),
        (lines(LINE | {"role": "human"}), "role must be one of assistant, system, tool, user, not 'human'"),
        (lines(LINE | {"content": "a\0b"}), "content holds a NUL character at position 1"),
        (lines(LINE | {"timestamp": "2026-01-05T12:00:00"}), "has no time zone"),
        (lines(LINE | {"timestamp": "noon"}), "timestamp must be an ISO 8601 time"),
        (lines(LINE | {"timestamp": 1767603600}), "timestamp must be an ISO 8601 time"),
        (lines(LINE | {"timestamp": "0001-01-01T00:00:00+01:00"}), "timestamp must lie within the years 1 to 9999"),
        (lines(LINE | {"outcome": "great"}), "outcome must be one of"),
        (lines(LINE | {"metadata": [1]}), "metadata must be a mapping"),
        (lines(LINE | {"metadata": {"a": "\0"}}), "metadata holds a NUL character"),
        (lines(LINE)[:-2] + b',"metadata":{"n":18446744073709551616}}', "metadata is not JSON: Integer exceeds 64-bit"),
        (lines(LINE)[:-2] + b',"metadata":{"n":12345678901234567890,"x":NaN}}', "it holds NaN"),
        (lines(LINE)[:-2] + b',"metadata":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}", "metadata is not JSON"),
        (lines({"session": {"agent_id": "bot", "session_id": "s", "outcome": "great"}}), "outcome must be success"),
        (
            lines({"session": {"agent_id": "bot", "outcome": "success"}}),
            "session must have an agent_id and a session_id",
        ),
        (lines({"session": {"agent_id": "bot", "session_id": "s", "end": 1}}), "unknown key 'end'"),
        (lines({"session": "s"}), "session must be an object"),
        (lines({"session": {"agent_id": "bot", "session_id": "t", "outcome": "success"}}), "has no session 't'"),
    ],
)
async def test_a_bad_line_is_named_and_what_came_before_it_stays(
    log: EpisodicLog, tmp_path: Path, line: bytes, reason: str
) -> None:
    """The error says which line, why, what is imported and how to go on: there, or behind the line."""
    file = tmp_path / "chats.jsonl"
    file.write_bytes(lines(LINE, LINE | {"content": "two"}) + line.removesuffix(b"\n") + b"\n" + lines(LINE))
    with pytest.raises(TransferError) as caught:
        await import_file(log, file)
    said = str(caught.value)
    assert said.startswith("chats.jsonl, line 3: ")
    assert reason in said
    assert said.endswith(
        "; 2 episodes of the lines before are imported: to go on there, skip 2 lines (--skip 2); "
        "to leave line 3 out, skip 3 (--skip 3)"
    )
    assert [episode.content for episode in await everything(log)] == ["hello", "two"]
    with pytest.raises(TransferError, match="line 3"):
        await import_file(log, file, skip=2)
    done = await import_file(log, file, skip=3)
    assert (done.lines, done.episodes) == (4, 1)


async def test_a_number_of_any_length_is_kept_exactly(log: EpisodicLog) -> None:
    """The largest integers that JSON can hold here come back as they are, and are not taken for decimals."""
    metadata = {"most": 2**64 - 1, "least": -(2**63), "digits": "12345678901234567890123"}
    await import_file(log, io.BytesIO(json.dumps(LINE | {"metadata": metadata}).encode()))
    assert (await one(log)).metadata == metadata


async def test_a_gzip_file_that_ends_early_keeps_what_could_be_read(log: EpisodicLog, tmp_path: Path) -> None:
    """A download that broke off is an error that names the line where it broke."""
    whole = [LINE | {"content": os.urandom(200).hex()} for _ in range(3_000)]
    file = tmp_path / "half.jsonl.gz"
    file.write_bytes(gzip.compress(lines(*whole))[:300_000])
    with pytest.raises(TransferError, match=r"half.jsonl.gz, line \d+: cannot be read"):
        await import_file(log, file)
    kept = [episode.content for episode in await everything(log)]
    assert kept
    assert kept == [line["content"] for line in whole[: len(kept)]]


async def test_a_taken_event_id_names_its_line(log: EpisodicLog) -> None:
    """The chunk is left out as a whole, and the message names the line whose event id is taken."""
    await log.record("bot", "s", "user", "another body", event_id="e1")
    said = await refusal(log, LINE, LINE | {"event_id": "e1"}, LINE)
    assert "line 2: event id 'e1' of agent 'bot' is taken" in said
    assert said.endswith(
        "0 episodes of the lines before are imported: to go on there, take line 2 out and skip 0 lines (--skip 0)"
    )
    assert (await one(log)).content == "another body"


async def test_leaving_out_a_bad_line_costs_no_other(log: EpisodicLog) -> None:
    """What the message says to skip is the bad line itself, behind empty ones, too, and where its chunk begins."""
    said = await refusal(log, LINE, LINE, form="openai")
    assert "to leave line 1 out, skip 1 (--skip 1)" in said
    with pytest.raises(TransferError, match=r"\(--skip 1\); to leave line 4 out, skip 4 \(--skip 4\)$"):
        await import_file(log, io.BytesIO(lines(LINE) + b"\n\n" + b"{\n" + lines(LINE)))
    await log.record("bot", "s", "user", "another body", event_id="e1")
    said = await refusal(log, LINE, LINE | {"event_id": "e1"}, LINE, skip=1)
    assert said.endswith("to go on there, skip 1 line (--skip 1); to leave line 2 out, skip 2 (--skip 2)")
    assert [episode.content for episode in await everything(log)] == ["hello", "another body"]


async def test_where_no_line_is_to_blame_none_is_left_out(log: EpisodicLog, tmp_path: Path) -> None:
    """A file that breaks off is not mended by skipping, and the message does not say so."""
    file = tmp_path / "half.jsonl.gz"
    file.write_bytes(gzip.compress(lines(LINE))[:-4])
    with pytest.raises(TransferError, match=r"to go on there, skip \d+ lines? \(--skip \d+\)$"):
        await import_file(log, file)


async def test_importing_twice_with_event_ids_changes_nothing(log: EpisodicLog) -> None:
    """An import that was broken off can be begun again when its lines have event ids."""
    for _ in range(2):
        await import_file(log, stream(LINE | {"event_id": "e1"}, LINE | {"event_id": "e2"}))
    assert len(await everything(log)) == 2


async def test_outcomes_between_episodes_are_applied_in_order(log: EpisodicLog) -> None:
    """Exports that were written one behind the other are imported as one file."""
    ending = {"session": {"agent_id": "bot", "session_id": "s", "outcome": "failure"}}
    other = {"session": {"agent_id": "bot", "session_id": "t", "outcome": "success"}}
    done = await import_file(log, stream(LINE, ending, LINE | {"session_id": "t"}, other, LINE))
    assert (done.episodes, done.outcomes) == (3, 2)
    assert await outcomes(log) == {("bot", "s"): "failure", ("bot", "t"): "success"}


async def test_the_agent_given_is_for_lines_that_name_none(log: EpisodicLog) -> None:
    """--agent never changes what a line says itself."""
    await import_file(log, stream({**LINE, "agent_id": None}, LINE), agent_id="given")
    assert [episode.agent_id for episode in await everything(log)] == ["given", "bot"]


async def chat(log: EpisodicLog, *messages: object, **line: object) -> list[Episode]:
    """Import one line of OpenAI chat, and return its episodes."""
    await import_file(log, stream({"messages": messages, **line}))
    return await everything(log)


async def test_a_chat_becomes_a_session(log: EpisodicLog, tmp_path: Path) -> None:
    """Each line is one session of the agent that the file's name gives, its messages in order, roles in our words."""
    file = tmp_path / "desk.v2.jsonl"
    messages = [{"role": role, "content": role} for role in ("developer", "user", "assistant", "function", "tool")]
    file.write_bytes(lines({"messages": messages}, {"messages": messages[1:2]}))
    await import_file(log, file)
    found = await everything(log)
    assert [(e.agent_id, e.session_id) for e in found] == [("desk.v2", "desk.v2-1")] * 5 + [("desk.v2", "desk.v2-2")]
    assert [e.role for e in found] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [e.metadata for e in found[:4]] == [{"role": "developer"}, {}, {}, {"role": "function"}]


async def test_nothing_of_a_message_is_lost(log: EpisodicLog) -> None:
    """Tool calls, refusals, names and keys of any other name are kept, and a missing content is empty text."""
    call = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
    asked, called, answered = await chat(
        log,
        {"role": "user", "content": "refund me", "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "weight": 0},
        {"role": "tool", "content": "done", "tool_call_id": "c1", "messages": 1, "conversation": "mine"},
    )
    assert (asked.author, asked.metadata) == ("ann", {"name": "ann"})
    assert (called.content, called.metadata) == ("", {"tool_calls": [call], "refusal": None, "weight": 0})
    assert answered.metadata == {"tool_call_id": "c1", "messages": 1, "conversation": "mine"}


async def test_parts_of_a_message_are_joined_or_kept_whole(log: EpisodicLog) -> None:
    """Texts become the content; an image, or a text with more to it, stays whole in the metadata."""
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    noted = {"type": "text", "text": "three", "annotations": [1]}
    parts = [{"type": "text", "text": "one"}, image, {"type": "input_text", "text": "two"}, noted, "odd"]
    [episode] = await chat(log, {"role": "user", "content": parts})
    assert episode.content == "one\ntwo\nthree"
    assert episode.metadata == {"content": [image, noted, "odd"]}


async def test_what_a_line_says_of_its_chat_is_used_or_kept(log: EpisodicLog) -> None:
    """Agent, session, user and time are used; all else is kept once, with the first message."""
    first, second = await chat(
        log,
        {"role": "user", "content": "1", "conversation": "taken"},
        {"role": "assistant", "content": "2", "created_at": 1767614400.5},
        agent_id="desk",
        session_id="s9",
        id=7,
        user="u1",
        created=1767614400,
        tools=[{"type": "function"}],
        metadata={"ticket": "T-1"},
    )
    assert (first.agent_id, first.session_id, first.user_id, first.timestamp) == ("desk", "s9", "u1", NOON)
    assert second.timestamp == NOON + timedelta(seconds=0.5)
    rest = {"id": 7, "tools": [{"type": "function"}], "metadata": {"ticket": "T-1"}}
    assert first.metadata == {"conversation": "taken", "conversation_": rest}
    assert second.metadata == {}


async def test_a_time_that_cannot_be_read_is_kept(log: EpisodicLog) -> None:
    """A chat without a readable time happened now, and what it said of its time is not lost."""
    [episode] = await chat(log, {"role": "user", "content": "1"}, created="yesterday", user={"name": "ann"})
    assert episode.metadata == {"conversation": {"created": "yesterday", "user": {"name": "ann"}}}
    assert episode.user_id is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"messages": []}, "line 2: has no messages"),
        ({"chat": []}, "line 2: has no messages"),
        ({"messages": ["hi"]}, "line 2: message 1: is no object"),
        ({"messages": [{"role": "narrator", "content": ""}]}, "line 2: message 1: role must be one of"),
        ({"messages": [{"content": ""}]}, "not None"),
        ({"messages": [{"role": "user", "content": 5}]}, "content must be text, null or a list of parts"),
        ({"messages": [{"role": "user", "content": "a\0"}]}, "message 1: content holds a NUL"),
    ],
)
async def test_a_bad_chat_is_named(log: EpisodicLog, line: object, reason: str) -> None:
    """A line that is no chat, or holds a message that is none, stops the import there."""
    good = {"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]}
    said = await refusal(log, good, line)
    assert reason in said
    assert "2 episodes of the lines before are imported: to go on there, skip 1 line (--skip 1)" in said


async def test_a_file_that_is_none_of_these_says_what_it_holds(log: EpisodicLog, tmp_path: Path) -> None:
    """Each kind of wrong file gets its own sentence."""
    assert "its keys are: a, b" in await refusal(log, {"a": 1, "b": 2})
    assert "holds one JSON object a line" in await refusal(log, [1])
    with pytest.raises(TransferError, match="only be read from a file"):
        await import_file(log, io.BytesIO(b"SQLite format 3\0" + bytes(100)))
    with pytest.raises(TransferError, match="nowhere cannot be read: No such file"):
        await import_file(log, tmp_path / "nowhere")
    with pytest.raises(TransferError, match="cannot be read: Is a directory"):
        await import_file(log, tmp_path)
    with pytest.raises(TransferError, match="there is no format 'csv'"):
        await import_file(log, io.BytesIO(), form="csv")  # type: ignore[arg-type]


async def test_the_format_can_be_named(log: EpisodicLog) -> None:
    """A file that begins unlike the rest of it is read as what the caller says it is."""
    said = await refusal(log, {"messages": []}, form="episodic")
    assert "unknown key 'messages'" in said


async def test_progress_counts_up_to_the_end(log: EpisodicLog, tmp_path: Path) -> None:
    """Each commit is told with the part of the file behind it, and the last one is what is returned."""
    file = tmp_path / "log.jsonl"
    file.write_bytes(lines(*[LINE] * 5_000))
    told: list[Progress] = []
    done = await import_file(log, file, on_progress=told.append)
    assert told[-1] == done == Progress(5_000, 5_000, 0, file.stat().st_size, file.stat().st_size)
    assert sorted(told) == told
    exported: list[Progress] = []
    assert await export_file(log, io.BytesIO(), on_progress=exported.append) == exported[-1]
    assert exported[-1] == Progress(5_000, 5_000, 0, 5_000, 5_000)


async def test_a_cancelled_import_has_imported_what_was_told(log: EpisodicLog, tmp_path: Path) -> None:
    """Whoever stops an import knows exactly how many lines to skip when going on."""
    file = tmp_path / "log.jsonl"
    file.write_bytes(lines(*(LINE | {"content": str(number)} for number in range(20_000))))
    told: list[Progress] = []

    def stop(progress: Progress) -> None:
        told.append(progress)
        task.cancel()

    task = asyncio.create_task(import_file(log, file, on_progress=stop))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 < told[-1].lines < 20_000
    assert len(await everything(log)) == told[-1].episodes
    await import_file(log, file, skip=told[-1].lines)
    assert [episode.content for episode in await everything(log)] == [str(number) for number in range(20_000)]


async def test_an_import_that_waits_for_a_pipe_can_be_cancelled(log: EpisodicLog) -> None:
    """Nobody writes to the pipe, and the import ends all the same."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb") as sink:
        sink.write(lines(LINE))
        sink.flush()
        seen = asyncio.Event()
        task = asyncio.create_task(import_file(log, source))
        threading.Timer(0.2, asyncio.get_running_loop().call_soon_threadsafe, [seen.set]).start()
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        sink.close()


async def filled(log: EpisodicLog) -> None:
    """Record two sessions of one agent and one of another; the second one is resolved."""
    for agent_id, session_id, user_id in (("a", "s1", "u1"), ("a", "s2", "u2"), ("b", "s2", "u1")):
        await log.record(agent_id, session_id, "user", f"{agent_id} {session_id}", user_id=user_id)
        await log.record(agent_id, session_id, "assistant", "answer", user_id=user_id)
    await log.resolve("a", "s2", "partial")
    await log.resolve("b", "s2", "failure")


@pytest.mark.parametrize(
    ("agent_id", "where", "contents", "ended"),
    [
        (None, None, ["a s1", "answer", "a s2", "answer", "b s2", "answer"], [("a", "s2"), ("b", "s2")]),
        ("a", None, ["a s1", "answer", "a s2", "answer"], [("a", "s2")]),
        (None, Filter(user_id="u1", roles=["user"]), ["a s1", "b s2"], [("b", "s2")]),
        ("a", Filter(outcome="failure"), [], []),
    ],
)
async def test_an_export_holds_what_the_filter_leaves(
    log: EpisodicLog, agent_id: str | None, where: Filter | None, contents: list[str], ended: Sequence[tuple[str, str]]
) -> None:
    """The outcomes that go along are those of sessions with an episode in the export, so that it can be imported."""
    await filled(log)
    target = io.BytesIO()
    await export_file(log, target, agent_id=agent_id, where=where)
    read: list[Mapping[str, Any]] = [orjson.loads(line) for line in target.getvalue().splitlines()]
    assert [line["content"] for line in read if "session" not in line] == contents
    sessions = [line["session"] for line in read if "session" in line]
    assert [(session["agent_id"], session["session_id"]) for session in sessions] == list(ended)


async def test_an_export_leaves_nothing_but_a_complete_file(log: EpisodicLog, tmp_path: Path) -> None:
    """The file appears at once and only for its owner; when it fails, what was there before is untouched."""
    await filled(log)
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "log.jsonl.gz"
    await export_file(log, target)
    assert [file.name for file in folder.iterdir()] == ["log.jsonl.gz"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    before = target.read_bytes()
    assert before.startswith(b"\x1f\x8b")
    with pytest.raises(FilterError):
        await export_file(log, target, agent_id="\0")

    def fail(_progress: Progress) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await export_file(log, target, on_progress=fail)
    assert target.read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["log.jsonl.gz"]
    with pytest.raises(TransferError, match="cannot be written: No such file"):
        await export_file(log, folder / "missing" / "log.jsonl")


async def test_an_export_never_replaces_its_log(log: EpisodicLog, path: Path, tmp_path: Path) -> None:
    """Not even through a link: whoever mistypes a name keeps what was recorded."""
    await filled(log)
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "link-wal").symlink_to(f"{path}-wal")
    for target in (path, tmp_path / "link", str(path), f"{path}-wal", f"{path}-shm", tmp_path / "link-wal"):
        with pytest.raises(TransferError, match="is a file of the log itself"):
            await export_file(log, target)
    assert len(await everything(log)) == 6


async def test_an_export_goes_through_a_link_and_into_a_device(log: EpisodicLog, tmp_path: Path) -> None:
    """A link stays a link, and a device is written to instead of being replaced."""
    await filled(log)
    (tmp_path / "link").symlink_to(tmp_path / "real.jsonl")
    await export_file(log, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real.jsonl").read_bytes().count(b"\n") == 8
    await export_file(log, "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


async def test_resolved_sessions_come_in_pages_without_gaps(log: EpisodicLog) -> None:
    """More sessions than a page holds come once each, by agent and session, names of any kind among them."""
    names = ["", " ", "%", *map(str, range(1_100))]
    await log.record_many([Draft(agent, name, "user", "x") for name in names for agent in ("", "b")])
    await asyncio.gather(*(log.resolve("", name, "success") for name in names))
    await log.resolve("b", "7", "failure")
    found = [(session.agent_id, session.session_id) async for session in log.resolved()]
    assert found == [("", name) for name in sorted(names)] + [("b", "7")]
    newest = await log.newest_id()
    assert newest == 2 * len(names)
    early = [session.session_id async for session in log.resolved(agent_id="", upto=3)]
    assert early == ["", " "]


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        (1767614400, NOON),
        (1767614400.25, NOON + timedelta(milliseconds=250)),
        (1767614400123, NOON + timedelta(milliseconds=123)),
        (1767614400123456, NOON + timedelta(microseconds=123456)),
        (1767614400123456789, NOON + timedelta(microseconds=123456)),
        ("1767614400", NOON),
        (" 2026-01-05 12:00:00 ", NOON),
        ("2026-01-05T13:00:00+01:00", NOON),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00+01:00", None),
        ("", None),
        ("soon", None),
        (None, None),
        (True, None),
        (float("nan"), None),
        (float("-inf"), None),
        (10**30, None),
        ([1], None),
    ],
)
def test_a_time_is_read_in_whatever_unit_it_was_written(value: object, instant: datetime | None) -> None:
    """Seconds, milliseconds, microseconds and nanoseconds are told apart by the year they give; the rest is no time."""
    assert clock_time(value) == instant


@pytest.mark.skipif(not SGD.exists(), reason="the dialogues are not there: set EPISODIC_DATA to their folder")
async def test_real_dialogues_are_imported_line_by_line(log: EpisodicLog, tmp_path: Path) -> None:
    """The first thousands of a public corpus come back word for word, session by session."""
    with gzip.open(SGD) as packed:
        head = [packed.readline() for _ in range(6_000)]
    file = tmp_path / "sgd.jsonl"
    file.write_bytes(b"".join(head))
    assert (await import_file(log, file)).episodes == 6_000
    read = [orjson.loads(line) for line in head]
    assert [e.content for e in await everything(log)] == [line["content"] for line in read]
    session = read[0]["session_id"]
    wanted = [line["content"] for line in read if line["session_id"] == session]
    assert [episode.content async for episode in log.replay(session)] == wanted


async def test_a_line_of_any_depth_is_a_line_that_cannot_be_read(log: EpisodicLog, tmp_path: Path) -> None:
    """A value nested a thousand levels deep where a time or a role belongs is refused like any other wrong one."""
    deep = b"[" * 1_010 + b"]" * 1_010
    for name, line in {
        "time.jsonl": b'{"agent_id":"a","session_id":"s","role":"user","content":"x","timestamp":' + deep + b"}",
        "role.jsonl": b'{"messages":[{"content":"x","role":' + deep + b"}]}",
    }.items():
        (tmp_path / name).write_bytes(line + b"\n")
        with pytest.raises(TransferError, match="line 1"):
            await import_file(log, tmp_path / name)


async def test_the_empty_agent_is_an_agent(log: EpisodicLog, tmp_path: Path) -> None:
    """Chats that name none become the agent's that was given, the empty one's, too."""
    (tmp_path / "chat.jsonl").write_bytes(b'{"messages":[{"role":"user","content":"x"}]}\n')
    await import_file(log, tmp_path / "chat.jsonl", agent_id="")
    assert [episode.agent_id async for episode in log.scan()] == [""]
