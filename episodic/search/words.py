"""From any text to the words that are looked for. Pure.

A query is folded and split as the index does it, so that each word is found; a text with joints inside (`ORD-1234`,
`a@b.co`, `my_variable`) is looked for both as a whole, its parts in order, and by each part; a run of a script without
spaces by its pairs of characters, and a character that stands alone by whatever begins with it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from episodic.folding import ANY_ENDING, PART, folded, is_unspaced, pairs
from episodic.search.stopwords import ENGLISH, stopwords_for

__all__ = ["MOST_CHARACTERS", "MOST_PARTS", "MOST_WORDS", "Words", "parts_of", "words_of"]

MOST_CHARACTERS = 10_000
MOST_WORDS = 32

# A longer chain is looked for by its parts alone: each part of a phrase is compared wherever its others stand, too.
MOST_PARTS = 8

# What joins the parts of an identifier; everything else that is no letter or digit ends a word.
JOINTS = "-_./@:#+&=\\'~%$"
CHUNK = re.compile(rf"(?:[0-9a-z{re.escape(JOINTS)}]|[^\x00-\x7f])+")


class Words(NamedTuple):
    """What to look for.

    Attributes:
        words: distinct words in the order of the query; empty when it holds no letter and no digit.
        truncated: whether the query was longer than is looked at.
    """

    words: tuple[str, ...]
    truncated: bool


def words_of(query: str) -> Words:
    """Choose the words of a query: stopwords are dropped, unless nothing else is left."""
    text = folded(query[:MOST_CHARACTERS])
    stopwords = stopwords_for(PART.findall(text))
    found = dict.fromkeys(_candidates(text, stopwords))
    kept = [word for word in found if word not in stopwords] or list(found)
    truncated = len(query) > MOST_CHARACTERS or len(kept) > MOST_WORDS
    return Words(tuple(kept[:MOST_WORDS]), truncated)


def parts_of(text: str) -> frozenset[str]:
    """Return the parts of a short text, such as a name, that are no stopwords."""
    return frozenset(PART.findall(folded(text))) - ENGLISH


def _candidates(text: str, stopwords: frozenset[str]) -> list[str]:
    found: list[str] = []
    for chunk in CHUNK.findall(text):
        whole = chunk.strip(JOINTS).removesuffix("'s")
        parts = PART.findall(whole)
        # `don't` and `we'll` are nothing but stopwords in a row.
        if 1 < len(parts) <= MOST_PARTS and not stopwords.issuperset(parts):
            found.append(whole)
        for part in parts:
            found += _pairs(part) if is_unspaced(part) else [part]
    return found


def _pairs(run: str) -> list[str]:
    """Return the pairs of a run, or its only character with whatever follows it."""
    found = pairs(run)
    return found if found != [run] else [f"{run}{ANY_ENDING}"]
