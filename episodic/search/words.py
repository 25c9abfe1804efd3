"""From any text to the words that are looked for. Pure.

Words are split as FTS5's unicode61 tokenizer splits them, so that each one is found; a text with joints inside
(`ORD-1234`, `a@b.co`, `my_variable`) is looked for both as a whole, its parts in order, and by each part.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["MOST_CHARACTERS", "MOST_PARTS", "MOST_WORDS", "STOPWORDS", "Words", "parts_of", "words_of"]

MOST_CHARACTERS = 10_000
MOST_WORDS = 32

# A longer chain is looked for by its parts alone: each part of a phrase is compared wherever its others stand, too.
MOST_PARTS = 8

# What joins the parts of an identifier; everything else that is no letter or digit ends a word.
JOINTS = "-_./@:#+&=\\'’~%$"
CHUNK = re.compile(rf"[\w{re.escape(JOINTS)}]+")
PART = re.compile(r"[^\W_]+")

# Words that say how a thing is asked, not what: articles, pronouns, auxiliaries, prepositions, question words.
STOPWORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can cannot could did do
    does doing don done down during each few for from further had has have having he her here hers him his how i if
    in into is it its itself just ll may me might more most must my no nor not now of off on once only or other our
    ours out over own re s same shall she should so some such t than that the their theirs them then there these they
    this those through to too under until up us ve very was we were what when where which while who whom whose why
    will with would yes you your yours
    """.split()
)


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
    found = dict.fromkeys(_candidates(query[:MOST_CHARACTERS].lower()))
    kept = [word for word in found if word not in STOPWORDS] or list(found)
    truncated = len(query) > MOST_CHARACTERS or len(kept) > MOST_WORDS
    return Words(tuple(kept[:MOST_WORDS]), truncated)


def parts_of(text: str) -> frozenset[str]:
    """Return the parts of a short text, such as a name, that are no stopwords."""
    return frozenset(PART.findall(text.lower())) - STOPWORDS


def _candidates(text: str) -> list[str]:
    found: list[str] = []
    for chunk in CHUNK.findall(text):
        whole = chunk.strip(JOINTS).removesuffix("'s").removesuffix("’s")
        parts = PART.findall(whole)
        if 1 < len(parts) <= MOST_PARTS and not _is_contraction(parts):
            found.append(whole)
        found += parts
    return found


def _is_contraction(parts: list[str]) -> bool:
    """`don't`, `we'll`: nothing but stopwords in a row."""
    return all(part in STOPWORDS for part in parts)
