"""Text for a terminal that must not obey it, and the marks in it. Pure."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from episodic.folding import PART, folded, is_unspaced

__all__ = ["Span", "ascii_json", "excerpt", "lasting", "one_line", "printable", "printable_path", "sized", "spans"]

Span: TypeAlias = tuple[int, int]

# What moves the cursor, colours, rings, retitles or reorders: the controls of ASCII and Latin-1, the separators of
# lines, and the marks of writing direction, which can make a line read as another one.
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
TAB = 4

WORD = re.compile(r"[^\W_]+")
# Endings that the index's stemmer takes off, as far as a mark in an excerpt needs to know.
ENDINGS = frozenset(
    ["", "s", "e", "es", "d", "ed", "r", "er", "ers", "y", "ies", "ied", "ing", "ings", "ly", "al", "ion", "ions"]
)
LEAST_STEM = 3

UNITS = ("B", "kB", "MB", "GB", "TB")
UNIT = 1000


def printable(text: str) -> str:
    """Spell out whatever a terminal would obey; line ends stay, tabs become spaces."""
    return CONTROL.sub(_spelled, text.replace("\r\n", "\n").expandtabs(TAB))


def one_line(text: str) -> str:
    """Spell out whatever a terminal would obey, line ends too."""
    return printable(text).replace("\n", "\\n")


def printable_path(path: str | os.PathLike[str]) -> str:
    """Write a path as text that JSON can hold; what is no UTF-8 in it is replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def ascii_json(line: bytes) -> bytes:
    """Escape in JSON what a terminal would obey; it stays the same JSON."""
    if line.isascii() and b"\x7f" not in line:
        return line
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", line.decode()).encode()


def _spelled(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - what fits two digits


def spans(text: str, words: Sequence[str]) -> list[Span]:
    """Find where the words of a query stand in a text, in any of their forms."""
    wanted = {part for word in words for part in PART.findall(word)}
    pieces = [re.escape(part) for part in wanted if not part.isalnum() or is_unspaced(part)]
    within = re.finditer("|".join(pieces), text) if pieces else ()
    whole = (found for found in WORD.finditer(text) if _is_form_of(folded(found[0]), wanted))
    return _merged(sorted(found.span() for found in (*whole, *within)))


class Excerpt(NamedTuple):
    """A piece of a text, and where the words stand in it."""

    text: str
    marks: list[Span]


def excerpt(text: str, words: Sequence[str], width: int) -> Excerpt:
    """Cut a text to the part that holds most of the words, at the ends of words.

    Args:
        text: the whole text; all of it if it is short enough.
        words: the words of the query that it holds.
        width: characters at most, without the dots that stand for the rest.
    """
    text = " ".join(text.split())
    found = spans(text, words)
    if len(text) <= width:
        return Excerpt(text, found)
    starts = [start for start, _ in found] or [0]
    # The first of the windows that hold most words, with a third of its room before its first word.
    held = [bisect_left(starts, start + width * 2 // 3) - place for place, start in enumerate(starts)]
    anchor = starts[held.index(max(held))]
    begin = max(0, min(anchor - width // 3, len(text) - width))
    end = begin + width
    begin = text.find(" ", begin, anchor) + 1 or begin if begin else 0
    end = max(text.rfind(" ", anchor, end), anchor) if end < len(text) else end
    end = end if end > anchor else min(anchor + width, len(text))
    cut = f"{'... ' if begin else ''}{text[begin:end]}{' ...' if end < len(text) else ''}"
    return Excerpt(cut, spans(cut, words))


def lasting(duration: timedelta) -> str:
    """Write a duration with its two largest units: "45 s", "2 min 5 s", "3 h 20 min", "2 d 4 h"."""
    seconds = round(duration.total_seconds())
    parts: list[str] = []
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append(f"{count} {name}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 ")) or "0 s"


def sized(count: int) -> str:
    """Write a number of bytes in the unit that suits it."""
    size = float(count)
    for unit in UNITS[:-1]:
        if size < UNIT:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= UNIT
    return f"{size:.1f} {UNITS[-1]}"


def _merged(found: Sequence[Span]) -> list[Span]:
    """Join spans, sorted by their start, that overlap or touch."""
    merged: list[Span] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _is_form_of(word: str, wanted: set[str]) -> bool:
    return word in wanted or any(_are_forms(word, other) for other in wanted)


def _are_forms(one: str, other: str) -> bool:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    stem = one[: len(list(same))]
    return len(stem) >= LEAST_STEM and all(_is_ending(word[len(stem) :], stem) for word in (one, other))


def _is_ending(rest: str, stem: str) -> bool:
    """`shipped` is `ship`, its last letter doubled, and an ending."""
    return rest in ENDINGS or (rest[:1] == stem[-1] and rest[1:] in ENDINGS)
