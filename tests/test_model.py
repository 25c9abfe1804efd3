"""What a Draft and a Filter refuse, and that what they hold stays as it is."""
# ruff: noqa: ANN401 - values of any wrong type are what is tested

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import pytest

from episodic import Draft, DraftError, Episode, EpisodicError, EpisodicLog, Filter, FilterError

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
GIVEN: dict[str, Any] = {"agent_id": "a", "session_id": "s", "role": "user", "content": "hello"}

TEXT_FIELDS = ("agent_id", "session_id", "content", "user_id", "author", "event_id")
FLAWED_TEXTS = ("a\0b", "\0", "half \ud83d", "\udfff half", b"bytes", 7, ["list"])


class Unplaced(tzinfo):
    """A time zone that does not know its offset, so that a datetime with it is naive all the same."""

    def utcoffset(self, _: datetime | None) -> timedelta | None:
        """Return none."""
        return None

    def dst(self, _: datetime | None) -> timedelta | None:
        """Return none."""
        return None

    def tzname(self, _: datetime | None) -> str | None:
        """Return none."""
        return None


class Level(IntEnum):
    """A number with a name."""

    LOW = 1


@pytest.mark.parametrize("name", TEXT_FIELDS)
@pytest.mark.parametrize("value", FLAWED_TEXTS)
def test_a_draft_refuses_what_is_no_text(name: str, value: Any) -> None:
    """A NUL, half of a surrogate pair, or another type in any text field raises DraftError naming the field."""
    with pytest.raises(DraftError, match=name) as caught:
        Draft(**{**GIVEN, name: value})
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, EpisodicError)


REFUSED: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(TEXT_FIELDS, FLAWED_TEXTS),
    "role": ("User", None, 1, ["user"]),
    "outcome": ("done", True),
    "metadata": ("{}", [("a", 1)], {"a": float("nan")}),
    "timestamp": (NOON.replace(tzinfo=None), "2024-05-01T12:00:00Z"),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
async def test_recording_refuses_what_a_draft_refuses(log: EpisodicLog, name: str, value: Any) -> None:
    """A value that cannot be recorded raises DraftError from `record` itself, and nothing is stored."""
    given = {**GIVEN, name: value}
    required = [given.pop(field) for field in ("agent_id", "session_id", "role", "content")]
    with pytest.raises(DraftError, match=name):
        await log.record(*required, **given)
    assert [episode async for episode in log.scan()] == []
    assert log.stats().queued_rows == 0


@pytest.mark.parametrize(("text", "place"), [("ab\0", 2), ("\ud83d", 0), ("café \ude00", 5)])
def test_a_draft_says_where_a_text_is_flawed(text: str, place: int) -> None:
    """The message holds the position of the character that cannot be kept."""
    with pytest.raises(DraftError, match=f"content .*at position {place}"):
        Draft(**{**GIVEN, "content": text})


@pytest.mark.parametrize("name", TEXT_FIELDS)
@pytest.mark.parametrize(
    "value", ["", " ", "\x01\x7f", "a%_\\'\"", "👍🏽", "ﬁ\u200b\u0301", "\ufffe\uffff", "\U0010ffff"]
)
def test_any_other_text_is_a_value(name: str, value: str) -> None:
    """The empty text and every character but NUL are taken as they are."""
    assert getattr(Draft(**{**GIVEN, name: value}), name) == value


@pytest.mark.parametrize("role", ["User", "", "bot", None, 1, ["user"], {}, b"user", "\ud83d"])
def test_a_draft_refuses_an_unknown_role(role: Any) -> None:
    """A role that is none of the four is refused; a text that is none of them gets the four in the message."""
    with pytest.raises(DraftError, match="one of assistant, system, tool, user" if role in ("User", "") else "role"):
        Draft(**{**GIVEN, "role": role})


@pytest.mark.parametrize("outcome", ["Success", "", "done", 1, True, ["success"], {}])
def test_a_draft_refuses_an_unknown_outcome(outcome: Any) -> None:
    """An outcome that is none of the three is refused, with the three in the message."""
    with pytest.raises(DraftError, match="outcome must be one of failure, partial, success"):
        Draft(**GIVEN, outcome=outcome)


@pytest.mark.parametrize(
    "timestamp",
    [
        NOON.replace(tzinfo=None),
        NOON.replace(tzinfo=Unplaced()),
        date(2024, 5, 1),
        "2024-05-01T12:00:00Z",
        1_714_564_800,
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_a_draft_refuses_a_time_that_is_no_instant(timestamp: Any) -> None:
    """A naive datetime, another type, and an instant whose date in UTC does not exist are refused."""
    with pytest.raises(DraftError, match="timestamp"):
        Draft(**GIVEN, timestamp=timestamp)


@pytest.mark.parametrize("metadata", ["{}", [("a", 1)], 1, True, {1}])
def test_a_draft_refuses_metadata_that_is_no_mapping(metadata: Any) -> None:
    """Metadata is an object of JSON, so that anything but a mapping is refused when the draft is made."""
    with pytest.raises(DraftError, match="metadata must be a mapping"):
        Draft(**GIVEN, metadata=metadata)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"x": float("nan")}, "nan"),
        ({"x": [1, {"y": float("-inf")}]}, "-inf"),
        ({"x": None, "y": [float("nan")]}, "nan"),
        ({"x": 2**64}, "64-bit"),
        ({"x": -(2**63) - 1}, "64-bit"),
        ({"x": 10**5000}, "64-bit"),
        ({"x": "a\0b"}, "NUL"),
        ({"a\0b": 1}, "NUL"),
        ({"x": "\ud83d"}, "surrogate"),
        ({"\ud83d": 1}, "surrogate"),
        ({"x": {1: 2}}, "key"),
        ({1: 2}, "key"),
        ({"x": NOON}, "datetime"),
        ({"x": NOON.date()}, "date"),
        ({"x": {1, 2}}, "set"),
        ({"x": b"bytes"}, "bytes"),
        ({"x": object()}, "object"),
        ({"x": replace(Filter())}, "Filter"),
    ],
)
async def test_metadata_that_json_cannot_hold_is_refused_with_its_reason(
    log: EpisodicLog,
    metadata: Any,
    reason: str,
) -> None:
    """What would come back as something else is refused by the call itself; nothing of it is queued."""
    with pytest.raises(DraftError, match=f"metadata .*{reason}"):
        await log.record(**GIVEN, metadata=metadata)
    with pytest.raises(DraftError, match=f"metadata .*{reason}"):
        await log.record_many([Draft(**GIVEN), Draft(**GIVEN, metadata=metadata)])
    assert (log.stats().recorded, log.stats().queued_rows, await log.newest_id()) == (0, 0, 0)


@pytest.mark.parametrize("depth", [250, 251, 253, 254, 1_000, 5_000, 100_000])
async def test_deep_metadata_is_kept_or_refused_but_never_crashes(log: EpisodicLog, depth: int) -> None:
    """Nesting far beyond what a JSON decoder takes is a DraftError, not a RecursionError."""
    deep: Any = []
    for _ in range(depth - 1):
        deep = [deep]
    try:
        recorded = await log.record(**GIVEN, metadata={"deep": deep})
    except DraftError:
        assert depth > 250
    else:
        assert depth == 250
        assert await log.get(recorded.id) == recorded


def test_drafts_are_frozen_hashable_values() -> None:
    """Two drafts of the same values are equal and have one hash, whatever their metadata."""
    first, second = (Draft(**GIVEN, metadata={"a": [1]}, timestamp=NOON) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != replace(first, metadata={"a": [2]})
    with pytest.raises(FrozenInstanceError):
        first.content = "other"  # type: ignore[misc]


async def test_an_episode_is_frozen_and_hashable(log: EpisodicLog) -> None:
    """A receipt can be kept in a set and cannot be changed."""
    episode = await log.record(**GIVEN, metadata={"a": 1})
    assert {episode, await log.get(episode.id)} == {episode}
    assert isinstance(episode, Episode)
    with pytest.raises(FrozenInstanceError):
        episode.content = "other"  # type: ignore[misc]


async def test_metadata_may_hold_any_mapping_and_sequence(log: EpisodicLog) -> None:
    """What counts as JSON to a type checker is kept: a mapping is an object and a sequence a list, at any depth."""
    episode = await log.record(**GIVEN, metadata={"a": MappingProxyType({"b": range(2)}), "c": deque(), "d": (1, ())})
    assert episode.metadata == (await log.get(episode.id)).metadata == {"a": {"b": [0, 1]}, "c": [], "d": [1, []]}
    with pytest.raises(DraftError, match="nan"):
        await log.record(**GIVEN, metadata={"a": MappingProxyType({"b": float("nan")})})


async def test_a_draft_takes_any_mapping_as_metadata(log: EpisodicLog) -> None:
    """Metadata may be any mapping; what comes back is a dict of one's own."""

    class Reversed(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return key[::-1]

        def __iter__(self) -> Iterator[str]:
            return iter(("ab", "cd"))

        def __len__(self) -> int:
            return 2

    for metadata in (Reversed(), MappingProxyType({"ab": "ba", "cd": "dc"})):
        episode = await log.record(**GIVEN, metadata=metadata)
        assert episode.metadata == {"ab": "ba", "cd": "dc"}
        episode.metadata["ab"] = "changed"
        assert (await log.get(episode.id)).metadata["ab"] == "ba"


@pytest.mark.parametrize("name", ["user_id", "session_id"])
@pytest.mark.parametrize("value", FLAWED_TEXTS)
def test_a_filter_refuses_what_is_no_text(name: str, value: Any) -> None:
    """What cannot be compared with a text in the log raises FilterError naming the field."""
    with pytest.raises(FilterError, match=name) as caught:
        Filter(**{name: value})
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, EpisodicError)


@pytest.mark.parametrize("roles", ["user", b"user", 1, ["bot"], [None], [["user"]], iter(["user"])])
def test_a_filter_refuses_roles_that_are_none(roles: Any) -> None:
    """A text in place of a collection, an iterator that empties, or an unknown role is refused."""
    with pytest.raises(FilterError, match="roles must be"):
        Filter(roles=roles)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outcome", "done"),
        ("outcome", ["success"]),
        ("since", NOON.replace(tzinfo=None)),
        ("since", "2024-05-01"),
        ("until", NOON.replace(tzinfo=Unplaced())),
        ("until", NOON.date()),
        ("archived", 1),
        ("archived", "yes"),
        ("metadata", [("a", 1)]),
        ("metadata", "a=1"),
        ("metadata", {1: 2}),
        ("metadata", {"a\0b": 2}),
        ("metadata", {"\ud83d": 2}),
    ],
)
def test_a_filter_refuses_what_cannot_be_compared(name: str, value: Any) -> None:
    """A value that could only be compared loosely raises FilterError naming the field."""
    with pytest.raises(FilterError, match=name):
        Filter(**{name: value})


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), 0.1 + 0.2, 1 / 3, 1234567890.1234567),
        *(2**63, -(2**63) - 1, 10**400, 10**5000, [1], {"a": 1}, (1,), {1}, b"x", NOON, object(), "a\0b", "\ud83d"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_metadata_value_that_cannot_be_compared_exactly_is_refused(value: Any) -> None:
    """A float of over 15 digits, an integer of over 64 bits, or no scalar: the filter would lie, so that it refuses."""
    with pytest.raises(FilterError, match=r"'key'.*cannot be compared exactly"):
        Filter(metadata={"key": value})


@pytest.mark.parametrize(
    "value",
    [None, True, False, "", "1", 0, -1, 2**63 - 1, -(2**63), 0.0, -0.5, 0.1, 1e300, 123456789012345.0, Level.LOW],
)
def test_a_metadata_value_that_can_be_compared_exactly_is_taken(value: Any) -> None:
    """Text, booleans, None, integers of 64 bits and floats of up to 15 digits are taken."""
    assert Filter(metadata={"key": value}).metadata == {"key": value}


def test_an_unknown_field_is_refused() -> None:
    """A misspelt filter fails; it does not find everything."""
    with pytest.raises(TypeError, match="user"):
        Filter(user="u42")  # type: ignore[call-arg]


def test_filters_are_frozen_values() -> None:
    """Two filters of the same values are equal, and none can be changed while it is in use."""
    assert Filter(user_id="u", metadata={"a": 1}) == Filter(user_id="u", metadata={"a": 1})
    with pytest.raises(FrozenInstanceError):
        Filter().user_id = "u"  # type: ignore[misc]
