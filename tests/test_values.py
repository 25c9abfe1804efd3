"""Times as others write them, and excerpts of texts of any length."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodic.faces.cli.text import excerpt
from episodic.transfer.values import clock_time


@given(st.integers(1_000_000_000_000, 1_999_999_999_999))
def test_digits_are_a_time_and_never_a_date(millis: int) -> None:
    """Text of milliseconds is read as milliseconds, also where its digits would make a date of another century."""
    expected = datetime.fromtimestamp(millis // 1000, UTC).replace(microsecond=millis % 1000 * 1000)
    assert clock_time(str(millis)) == clock_time(millis) == expected


@pytest.mark.parametrize("text", ["2026-01-05", "20260105", "2026-01-05T09:00:00Z", "2026-01-05 09:00:00"])
def test_a_date_is_still_a_date(text: str) -> None:
    """What ISO 8601 writes is read as such, in UTC where it names no zone."""
    found = clock_time(text)
    assert found is not None
    assert found.date().isoformat() == "2026-01-05"


def test_an_excerpt_of_a_text_that_is_nothing_but_the_word_is_its_beginning() -> None:
    """A pasted log of a hundred thousand hits is cut like any other text."""
    cut = excerpt("charge order " * 100_000, ["charge"], 200)
    assert cut.text.startswith("charge order")
    assert len(cut.text) <= 204
