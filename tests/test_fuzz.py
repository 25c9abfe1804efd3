"""Every public entry point, with arguments that fit and arguments that do not: an answer, or an error of ours."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from episodic import Draft, EpisodicError, EpisodicLog, Filter, SearchResult, Settings

pytestmark = pytest.mark.slow

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
# What only the vault's agent may show, and no error may.
SECRET = "xylophone"
MOST_SHOWN = 20

Values = st.SearchStrategy[Any]

IDS = ["a", "b", "s", "u", "A", "a ", "á", "a%", "a' OR 1=1 --", 'a" OR "1"="1', "a\0", "_", "*", "NEAR(a b)"]
HOSTILE: Values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, -(2**63) - 1]),
    st.floats(),
    st.binary(max_size=8),
    st.text(max_size=20),
    st.text(st.characters(codec=None), max_size=8),
    st.sampled_from(
        ["", "\ud800", "\0", "' OR 1=1 --", '"', "a OR *", "{user} : u", "(" * 50, "\u202e\u200b", "💥" * 40]
    ),
    st.sampled_from(
        [NOON, NOON.replace(tzinfo=None), datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
    ),
    st.sampled_from([timedelta(), timedelta.max, timedelta.min, timedelta(days=-1)]),
    st.lists(st.text(max_size=4), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=3),
    st.builds(object),
)
TEXT: Values = st.one_of(st.text(max_size=60), st.sampled_from(["refund", "order *", "AND", "what was it about?"]))
ID: Values = st.sampled_from(IDS)
WHOLE: Values = st.integers(0, 50)
INSTANT: Values = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
METADATA: Values = st.dictionaries(
    st.text(max_size=6), st.one_of(st.none(), st.integers(), st.text(max_size=6), st.lists(st.integers(), max_size=2))
)
SCALARS: Values = st.dictionaries(st.text(max_size=6), st.one_of(st.integers(-5, 5), st.text(max_size=6)), max_size=2)
OUTCOME: Values = st.sampled_from(["success", "failure", "partial", None])


def maybe(values: Values) -> Values:
    """Draw what fits, mostly, or anything else."""
    return st.one_of(values, values, values, HOSTILE)


def built(kind: Callable[..., Any], **fields: Values) -> Values:
    """Draw the arguments of a record, and make it where it is used: that may be refused, too."""
    drawn = st.fixed_dictionaries({}, optional={name: maybe(values) for name, values in fields.items()})
    return drawn.map(lambda arguments: lambda: kind(**arguments))


FILTER = built(
    Filter,
    user_id=ID,
    session_id=ID,
    roles=st.lists(st.sampled_from(["user", "assistant", "tool", "system"]), max_size=2),
    outcome=OUTCOME,
    since=INSTANT,
    until=INSTANT,
    metadata=SCALARS,
    archived=st.booleans(),
)
ROLE: Values = st.sampled_from(["user", "assistant", "tool", "system"])
EPISODE = {
    "user_id": ID,
    "author": TEXT,
    "outcome": OUTCOME,
    "metadata": METADATA,
    "timestamp": INSTANT,
    "event_id": ID,
}
REQUIRED = {"agent_id": ID, "session_id": ID, "role": ROLE, "content": TEXT}
DRAFT = st.fixed_dictionaries(
    {name: maybe(values) for name, values in REQUIRED.items()},
    optional={name: maybe(values) for name, values in EPISODE.items()},
).map(lambda arguments: lambda: Draft(**arguments))


async def first(answers: AsyncIterator[object]) -> list[object]:
    """Take the first few of an endless answer."""
    taken: list[object] = []
    async for answer in answers:
        taken.append(answer)
        if len(taken) == MOST_SHOWN:
            break
    return taken


async def explained(answer: Awaitable[SearchResult]) -> str:
    """Search, and have it explained."""
    return (await answer).explain()


async def rendered(log: EpisodicLog, agent_id: Any, message: Any, tokens: Any, **others: Any) -> str:  # noqa: ANN401
    """Recall, and write it for a prompt."""
    return (await log.recall_context(agent_id, message, **others)).render(tokens)


# Of each entry point: its call, its positional arguments, and those by name.
Entry = tuple[Callable[..., Awaitable[object]], Mapping[str, Values], Mapping[str, Values]]
ENTRIES: Mapping[str, Entry] = {
    "record": (EpisodicLog.record, REQUIRED, EPISODE),
    "record_many": (EpisodicLog.record_many, {"drafts": st.lists(DRAFT, max_size=3)}, {}),
    "resolve": (EpisodicLog.resolve, {"agent_id": ID, "session_id": ID, "outcome": OUTCOME}, {}),
    "replay": (
        lambda log, *a, **k: first(log.replay(*a, **k)),
        {"session_id": ID},
        {"agent_id": ID, "where": FILTER, "after": st.none()},
    ),
    "scan": (lambda log, **k: first(log.scan(**k)), {}, {"agent_id": ID, "where": FILTER, "after": WHOLE}),
    "recent": (EpisodicLog.recent, {"agent_id": ID}, {"limit": WHOLE, "where": FILTER}),
    "search": (
        lambda log, *a, **k: explained(log.search(*a, **k)),
        {"agent_id": ID, "query": TEXT},
        {"limit": WHOLE, "where": FILTER},
    ),
    "recall_context": (
        rendered,
        {"agent_id": ID, "message": TEXT, "tokens": WHOLE},
        {"where": FILTER, "prefer": OUTCOME},
    ),
    "sessions": (EpisodicLog.sessions, {"agent_id": ID}, {"where": FILTER, "limit": WHOLE}),
    "resolved": (lambda log, **k: first(log.resolved(**k)), {}, {"agent_id": ID}),
    "agents": (EpisodicLog.agents, {}, {}),
    "get": (EpisodicLog.get, {"episode_id": WHOLE}, {"where": FILTER}),
    "around": (EpisodicLog.around, {"episode_id": WHOLE}, {"before": WHOLE, "after": WHOLE, "where": FILTER}),
    "retain": (
        EpisodicLog.retain,
        {},
        {"older_than": st.one_of(INSTANT, st.timedeltas(timedelta(), timedelta(days=9_999))), "where": FILTER}
        | {"dry_run": st.booleans()},
    ),
    "erase": (
        EpisodicLog.erase,
        {},
        {"user_id": ID, "session_id": ID, "agent_id": ID, "where": FILTER, "dry_run": st.booleans()},
    ),
}
RECORDING = {"record", "record_many"}
OF_ONE_AGENT = {"recent", "search", "recall_context", "sessions"}
NEEDED = {"older_than"}


def made(value: Any) -> Any:  # noqa: ANN401
    """Make the records whose arguments were drawn."""
    if isinstance(value, list):
        return [made(each) for each in value]
    return value() if callable(value) else value


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Any], dict[str, Any]]:
    """Draw a call."""
    name = draw(st.sampled_from(sorted(ENTRIES)))
    _, positional, named = ENTRIES[name]
    given_names = [key for key in named if key in NEEDED or draw(st.booleans())]
    return name, [draw(maybe(v)) for v in positional.values()], {key: draw(maybe(named[key])) for key in given_names}


def rows(path: Path) -> int:
    """Count what is stored."""
    with closing(sqlite3.connect(path)) as db:
        [(count,)] = db.execute("SELECT count(*) FROM episodes")
        return int(count)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(calls(), min_size=1, max_size=8))
async def test_any_call_is_answered_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, list[Any], dict[str, Any]]]
) -> None:
    """No other error leaves the log, none shows what another user said, a refused call stores nothing, all goes on."""
    path = tmp_path_factory.mktemp("fuzz") / "log.db"
    async with EpisodicLog.open(path) as log:
        await log.record("vault", "s", "user", f"the word is {SECRET}", user_id="u", author=SECRET)
        for number in range(3):
            await log.record("a", "s", "user", f"refund {number}", user_id="u", event_id=f"{number}")
        for name, positional, named in drawn:
            before = rows(path)
            try:
                arguments, others = made(positional), {key: made(value) for key, value in named.items()}
                answer = await ENTRIES[name][0](log, *arguments, **others)
            except EpisodicError as exc:
                message = str(exc)
                assert message == message.replace("\n", " ")
                assert SECRET not in message
                assert name not in RECORDING or rows(path) == before
            else:
                assert name not in OF_ONE_AGENT or SECRET not in repr(answer)
        episode = await log.record("a", "last", "user", "still here")
        assert [kept async for kept in log.replay("last")] == [episode]
        assert (await log.search("a", "still here")).hits[0].episode == episode
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)")


@settings(deadline=None)
@given(
    arguments=st.fixed_dictionaries(
        {},
        optional={
            "durability": maybe(st.sampled_from(["normal", "full"])),
            "readers": maybe(st.integers(1, 4)),
            "queue_rows": maybe(st.integers(1, 100)),
            "queue_bytes": maybe(st.integers(1, 10**6)),
            "submit_timeout": maybe(st.floats(0, 10)),
            "batch_rows": maybe(st.integers(1, 100)),
            "linger": maybe(st.floats(0, 1)),
            "busy_timeout": maybe(st.floats(0, 10)),
            "hot_cap": maybe(st.integers(1, 100)),
            "indexed_metadata": maybe(st.just(("intent",))),
        },
    )
)
def test_settings_are_as_they_were_given_or_refused(arguments: dict[str, Any]) -> None:
    """What cannot work is refused at once, by an error that names a setting."""
    taken = message = None
    try:
        taken = Settings(**arguments)
    except EpisodicError as exc:
        message = str(exc)
    if message is not None:
        assert any(name in message for name in arguments)
        assert "\n" not in message
    if taken is not None:
        assert all(getattr(taken, name) == value for name, value in arguments.items())
        assert math.isfinite(taken.submit_timeout)
