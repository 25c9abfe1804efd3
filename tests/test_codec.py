"""Whatever goes in comes back exactly, through a real file, or is refused with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import count
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodic import Draft, DraftError, Episode, EpisodicLog
from episodic.codec import ROW_FIELDS, decode_episode, draft_metadata, encode_row, episode_of, from_micros, to_micros
from episodic.model import OUTCOMES, ROLES

unhurried = settings(max_examples=50, deadline=None)
numbers = count()

RoundTrip = Callable[[Draft], tuple[Episode, Episode]]


class Colour(Enum):
    """A name that JSON does not have."""

    RED = "red"


class Level(IntEnum):
    """A number that JSON has."""

    LOW = 1


# Any character that is one; a lone surrogate and NUL are refused, which test_model.py shows.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
flawed_texts = st.text(st.sampled_from("a\0\ud83d\udc00é"))

exact_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
exact = st.recursive(exact_scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=10)

foreign_scalars = st.sampled_from(
    [
        *(float("nan"), float("inf"), 2**64, -(2**63) - 1, UUID(int=1), Colour.RED, Level.LOW, Decimal("1.0"), b"b"),
        *({1}, 1j, datetime(2024, 1, 1, tzinfo=UTC), Draft("a", "s", "user", "x"), object, orjson.Fragment(b"{")),
        *(orjson.Fragment(b"1"), orjson.Fragment(b'"a"')),
    ]
)
anything = st.recursive(
    exact_scalars | foreign_scalars | flawed_texts,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(texts | flawed_texts | st.integers() | st.none(), inner)
    ),
    max_leaves=10,
)

instants = st.datetimes(timezones=st.just(UTC)) | st.datetimes(
    timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
)


@pytest.fixture(scope="module")
def round_trip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoundTrip]:
    """Record a draft in a real file and read it back."""

    async def run(draft: Draft) -> tuple[Episode, Episode]:
        [receipt] = await log.record_many([draft])
        return receipt, await log.get(receipt.id)

    with asyncio.Runner() as runner:
        log = EpisodicLog.open(tmp_path_factory.mktemp("codec") / "log.db")
        runner.run(log.__aenter__())
        yield lambda draft: runner.run(run(draft))
        runner.run(log.aclose())


def shape(value: object) -> object:
    """Make True differ from 1, 1 from 1.0 and 0.0 from -0.0, and a tuple be the list that JSON makes of it."""
    match value:
        case None | bool():
            return value
        case int() | float():
            return (
                "float" if isinstance(value, float) else "int",
                repr(value + 0 if isinstance(value, int) else value),
            )
        case str():
            return str(value)
        case list() | tuple():
            return [shape(item) for item in value]
        case dict():
            return {key: shape(item) for key, item in value.items()}
        case _:
            return value


@unhurried
@given(metadata=st.dictionaries(texts, exact))
def test_any_json_metadata_comes_back_exactly(round_trip: RoundTrip, metadata: dict[str, Any]) -> None:
    """Every object of JSON is kept: each number with its type and every digit, each text, each level."""
    receipt, stored = round_trip(Draft("a", "s", "user", "hello", metadata=metadata))
    assert receipt == stored
    assert shape(receipt.metadata) == shape(stored.metadata) == shape(metadata)


@unhurried
@given(metadata=st.dictionaries(texts | flawed_texts, anything))
def test_any_metadata_at_all_comes_back_exactly_or_is_refused(round_trip: RoundTrip, metadata: dict[str, Any]) -> None:
    """What JSON cannot hold is a DraftError; it is never stored as something else, and never poisons the file."""
    try:
        receipt, stored = round_trip(Draft("a", "s", "user", "hello", metadata=metadata))
    except DraftError:
        return
    assert shape(receipt.metadata) == shape(stored.metadata) == shape(metadata)


@pytest.mark.parametrize(
    "value",
    [UUID(int=1), Colour.RED, Decimal(1), orjson.Fragment(b"1"), orjson.Fragment(b"{"), 1j, {1: 2}, {1}, float("nan")],
    ids=lambda value: type(value).__name__,
)
def test_what_json_does_not_have_is_refused_wherever_it_stands(value: object) -> None:
    """A type that would come back as another one is refused by itself, in a list, in an object and in a tuple."""
    given_metadata: Any
    for given_metadata in ({"k": value}, {"k": [1, value]}, {"k": {"l": value}}, {"k": ({"l": (value,)},)}):
        with pytest.raises(DraftError, match="metadata"):
            draft_metadata(Draft("a", "s", "user", "hello", metadata=given_metadata))


@unhurried
@given(
    names=st.tuples(texts, texts, texts),
    optional=st.tuples(*[st.none() | texts] * 3),
    known=st.tuples(st.sampled_from(sorted(ROLES)), st.none() | st.sampled_from(sorted(OUTCOMES))),
    timestamp=st.none() | instants,
)
def test_any_text_comes_back_exactly_in_every_field(
    round_trip: RoundTrip,
    names: tuple[str, str, str],
    optional: tuple[str | None, str | None, str | None],
    known: tuple[str, str | None],
    timestamp: datetime | None,
) -> None:
    """Names, contents, authors and times are never trimmed, folded, normalised or rounded; absent is not empty."""
    agent_id, session_id, content = names
    role, outcome = known
    user_id, author, event_id = optional
    try:
        draft = Draft(
            agent_id,
            session_id,
            role,
            content,
            user_id=user_id,
            author=author,
            outcome=outcome,
            timestamp=timestamp,
        )
    except DraftError:
        assert timestamp is not None
        assert timestamp.utcoffset()
        return
    if event_id is not None:
        draft = replace(draft, event_id=f"{event_id}/{next(numbers)}")
    receipt, stored = round_trip(draft)
    assert receipt == stored
    for name in ("agent_id", "session_id", "user_id", "author", "role", "content", "outcome", "event_id"):
        assert getattr(stored, name) == getattr(draft, name), name
    assert timestamp in {None, stored.timestamp}
    assert stored.timestamp.tzinfo is UTC


@unhurried
@given(content=texts, author=st.none() | texts, metadata=st.dictionaries(texts, exact, max_size=3))
def test_a_retry_of_any_body_is_known_as_the_same(
    round_trip: RoundTrip, content: str, author: str | None, metadata: dict[str, Any]
) -> None:
    """The engine's own comparison of a retry with what it holds never takes equal bodies for different ones."""
    draft = Draft("a", "s", "user", content, author=author, metadata=metadata, event_id=f"event {next(numbers)}")
    turned = dict(reversed(list(metadata.items())))
    assert round_trip(draft) == round_trip(replace(draft, metadata=turned))


@unhurried
@given(instant=instants)
def test_a_time_survives_as_microseconds(instant: datetime) -> None:
    """An instant is kept to the microsecond, whatever its offset, before 1970 and at both ends of the calendar."""
    micros = to_micros(instant)
    try:
        in_utc = instant.astimezone(UTC)
    except OverflowError:
        return
    assert from_micros(micros) == in_utc
    assert to_micros(from_micros(micros)) == micros


@unhurried
@given(first=instants, second=instants)
def test_microseconds_are_in_the_order_of_instants(first: datetime, second: datetime) -> None:
    """Times compare as instants, not as they are written."""
    assert (to_micros(first) < to_micros(second)) == (first < second)


def test_equal_metadata_is_one_text() -> None:
    """Keys are sorted at every level, None and {} are one, so that a retry is told from a conflict by its text."""
    first = Draft("a", "s", "user", "hello", metadata={"b": {"d": 1, "c": (1, 2)}, "a": None})
    second = Draft("a", "s", "user", "hello", metadata={"a": None, "b": {"c": [1, 2], "d": 1}})
    assert draft_metadata(first)[0] == draft_metadata(second)[0] == '{"a":null,"b":{"c":[1,2],"d":1}}'
    assert draft_metadata(replace(first, metadata=None)) == draft_metadata(replace(first, metadata={})) == ("{}", {})


def test_a_row_has_the_fields_in_their_order() -> None:
    """What goes to the engine is one JSON array, in the order that ROW_FIELDS documents."""
    draft = Draft(
        "agent",
        "session",
        "tool",
        "content",
        user_id="user",
        author="author",
        outcome="partial",
        metadata={"k": 1},
        timestamp=from_micros(5),
        event_id="e",
    )
    row = dict(zip(ROW_FIELDS, orjson.loads(encode_row(draft, 5, draft_metadata(draft)[0])), strict=True))
    assert row.pop("timestamp") == 5
    assert row.pop("metadata") == '{"k":1}'
    assert row.pop("timestamp_was_given") is True
    assert row.pop("folded") is None
    assert row == {name: getattr(draft, name) for name in row}


def test_a_receipt_is_what_a_reader_returns() -> None:
    """The receipt, built without a read, and the episode that an engine answers with are equal."""
    draft = Draft("agent", "session", "tool", "content", user_id="user", metadata={"k": [1]}, timestamp=from_micros(5))
    answer = [7, "agent", "session", "user", None, 5, "tool", "content", None, {"k": [1]}, None, 0]
    assert episode_of(draft, 7, from_micros(5), draft_metadata(draft)[1]) == decode_episode(answer)
