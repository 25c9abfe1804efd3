"""JSON and times as others write them, read so that nothing changes on the way without a word. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import NoReturn, cast

import orjson

from episodic.errors import shown
from episodic.model import JSON
from episodic.transfer.item import Flaw

__all__ = ["check_keys", "clock_time", "free_key", "iso_time", "json_object", "loads"]

# orjson reads an integer over 64 bits as a float; only a text with as many digits needs the slow and exact parser.
DIGITS_TO_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
LONG_NUMBER = b"0" * 19

NUMBER = re.compile(r"[-+]?\d{9,}(\.\d*)?")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A number this large is no longer seconds (the year 5138), milliseconds or microseconds, but the next smaller unit.
UNITS = ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000), (math.inf, 1_000_000_000))


def loads(text: bytes) -> object:
    """Read JSON exactly.

    Raises:
        Flaw: it is no JSON, or holds a number that JSON does not have.
    """
    try:
        if LONG_NUMBER in text.translate(DIGITS_TO_ZEROS):
            return json.loads(text, parse_constant=_refuse)
        return orjson.loads(text)
    except (orjson.JSONDecodeError, json.JSONDecodeError) as exc:
        msg = f"is no JSON: {exc.msg} at column {exc.colno}"
        raise Flaw(msg) from exc
    except (ValueError, RecursionError) as exc:  # no UTF-8, an integer of thousands of digits, too deep
        msg = f"is no JSON that can be read: {exc}"
        raise Flaw(msg) from exc


def json_object(text: bytes) -> dict[str, JSON]:
    """Read a JSON object exactly.

    Raises:
        Flaw: it is no JSON object.
    """
    value = loads(text)
    if not isinstance(value, dict):
        msg = f"is no JSON object, but {_kind(value)}"
        raise Flaw(msg)
    return cast("dict[str, JSON]", value)


def check_keys(fields: Mapping[str, JSON], known: AbstractSet[str], otherwise: str) -> None:
    """Refuse a key that would be lost.

    Args:
        fields: the object.
        known: the keys that it may have.
        otherwise: what to do with another one.

    Raises:
        Flaw: there is another one.
    """
    for key in fields.keys() - known:
        msg = f"unknown key {key!r}; {otherwise}"
        raise Flaw(msg)


def iso_time(text: object) -> datetime:
    """Read an ISO 8601 time that has a zone, to the microsecond.

    Raises:
        Flaw: it is none, or has no zone.
    """
    try:
        instant = datetime.fromisoformat(cast("str", text))
    except (TypeError, ValueError) as exc:
        msg = f"timestamp must be an ISO 8601 time such as 2026-01-05T09:00:00Z, not {shown(text)}"
        raise Flaw(msg) from exc
    if instant.utcoffset() is None:
        msg = f"timestamp {shown(text)} has no time zone; add Z or an offset"
        raise Flaw(msg)
    return instant


def clock_time(value: object) -> datetime | None:
    """Read a time as programs write it; None when it is none.

    Args:
        value: seconds, milliseconds, microseconds or nanoseconds since 1970, as a number or its digits, whichever
            gives a sensible year; or an ISO 8601 time, in UTC if it has no zone, which is how SQLite writes one.
    """
    if isinstance(value, str):
        # Digits first: Python would read those of many a time in milliseconds as a date of 1710.
        if NUMBER.fullmatch(value.strip()):
            return _since_1970(value)
        try:
            instant = datetime.fromisoformat(value.strip())
        except ValueError:
            return _since_1970(value)
        instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return instant if _is_in_calendar(instant) else None
    return None if isinstance(value, bool) else _since_1970(value)


def free_key(wanted: str, taken: Iterable[str]) -> str:
    """Return a key, with underscores behind it where it is taken already."""
    used = frozenset(taken)
    while wanted in used:
        wanted += "_"
    return wanted


def _since_1970(value: object) -> datetime | None:
    try:
        number = float(cast("str", value)) if not isinstance(value, int) else value
        unit = next(unit for limit, unit in UNITS if abs(number) < limit)
        # Whole numbers stay whole: a float has too few digits for microseconds of today.
        micros = number * 1_000_000 // unit if isinstance(number, int) else round(number * (1_000_000 / unit))
        return EPOCH + timedelta(microseconds=micros)
    except (TypeError, ValueError, OverflowError, StopIteration):
        return None


def _is_in_calendar(instant: datetime) -> bool:
    try:
        instant.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _refuse(constant: str) -> NoReturn:
    msg = f"is no JSON: it holds {constant}"
    raise Flaw(msg)


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
