"""One form for what is the same word, for the index and for queries alike. Pure.

Case, accents, width, ligatures and invisible characters do not count; `ß` is `ss`, `ø` is `o`. Scripts that put no
spaces between words (Chinese, Japanese, Thai; Korean, which glues particles to them) are cut into overlapping pairs of
characters, as Lucene's CJK analysis does. A symbol such as an emoji is a word. So the index needs to know nothing of
Unicode but which characters are letters, digits and marks.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase

__all__ = ["ANY_ENDING", "PART", "folded", "indexed_text", "is_unspaced", "pairs", "spelled"]

# A word of folded text.
PART = re.compile(r"(?:[0-9A-Za-z]|[^\x00-\x7f])+")

# At the end of a word that may go on in any way; no folded word has it otherwise.
ANY_ENDING = "*"

NON_ASCII = re.compile(r"[^\x00-\x7f]+")
# What separates words, for the index too, so that a text with nothing else beside ASCII needs no folding: it is what a
# word processor and a model make of plain quotes and dashes.
PLAIN = re.compile(
    "[\x00-\x7f\u00a0\u00a1\u00a7\u00a9\u00ab\u00ae\u00b0\u00b6\u00b7\u00bb\u00bf\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u20ac\u2122]*"
)

# Marks that a writer may leave out: accents, and the vowel signs of Hebrew and Arabic. Those of other scripts are part
# of a word's spelling.
OPTIONAL = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06ed]+")
# More marks on one letter than any language has: putting them in order takes time that grows with their square.
_MARK = r"[^\w\x00-\x7f\u2000-\u20cf\u2100-\u2bff\u3000-\u3029\u3030-\u303f\U0001f000-\U0001faff]"
EXCESS = re.compile(rf"({_MARK}{{30}}){_MARK}+")
# Letters that Unicode does not take apart, as they are written where a keyboard lacks them.
LETTERS = str.maketrans({
    "æ": "ae", "œ": "oe", "ø": "o", "ð": "d", "đ": "d", "þ": "th", "ł": "l", "ħ": "h", "\u0131": "i", "ŧ": "t",
})  # fmt: skip
CAPITALS = str.maketrans(ascii_uppercase, ascii_lowercase)
PUNCTUATION = str.maketrans({
    **dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032", "'"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    # Unicode would make letters of them, glued to the word before.
    **dict.fromkeys("\u2122\u2120", " "),
})  # fmt: skip

# Han, kana, bopomofo, Hangul, Thai, Lao, Burmese, Khmer.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua9e0-\ua9fe\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")

# Later than the tables of an old SQLite, or no letters to it.
FOREIGN = re.compile("[\U00010000-\U0010ffff\u2190-\u2bff\u3000-\u303f\u3200-\u33ff]")
# Every emoji but a few of the plane below; those that Python does not know yet, too.
EMOJI_FIRST, EMOJI_LAST = 0x1F000, 0x1FAFF
SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
LATIN_1_LAST = 0xFF

# In a language written in Latin letters most runs are a single letter with an accent, and the same ones over and over.
SHORT = 4


def folded(text: str) -> str:
    """Bring a text to the form in which words are compared.

    Args:
        text: any text.

    Returns:
        Text in which each run of `PART` is a word or, in a script without spaces, several.
    """
    # Lower case of the rest is folded case, which is capitals in Cherokee.
    return text.lower() if text.isascii() else NON_ASCII.sub(lambda run: _folded_run(run[0]), text.translate(CAPITALS))


def indexed_text(author: str | None, content: str) -> str | None:
    """Return what the index is to see of an episode; None where that is the author and the content as they are."""
    text = content if author is None else f"{author}\n{content}"
    if text.isascii() or PLAIN.fullmatch(text):
        return None
    return NON_ASCII.sub(_indexed_match, text)


def is_unspaced(word: str) -> bool:
    """Tell whether a word is of a script without spaces."""
    return UNSPACED_RUN.fullmatch(word) is not None


def pairs(run: str) -> list[str]:
    """Cut a run of a script without spaces into overlapping pairs of characters; a single one stays as it is."""
    letters = _letters(run)
    return [one + next_one for one, next_one in pairwise(letters)] or letters


def spelled(word: str) -> str:
    """Spell what an old SQLite may not take for part of a word in letters and digits, the last of which is a digit.

    The stemmer leaves a word alone that ends in a digit.
    """
    return word if word.isascii() else FOREIGN.sub(lambda one: f"x{ord(one[0]):x}0", word)


def _folded_run(run: str) -> str:
    decomposed = unicodedata.normalize("NFKD", EXCESS.sub(r"\1", run).translate(PUNCTUATION))
    lower = unicodedata.normalize("NFC", OPTIONAL.sub("", decomposed).casefold()).translate(LETTERS)
    known = lower if lower.isalnum() else "".join(map(_folded_character, lower))
    return UNSPACED_RUN.sub(r" \g<0> ", known)


def _indexed_match(found: re.Match[str]) -> str:
    run = found[0]
    return _indexed_short_run(run) if len(run) <= SHORT else _indexed_run(run)


@lru_cache(maxsize=4096)
def _indexed_short_run(run: str) -> str:
    return _indexed_run(run)


def _indexed_run(run: str) -> str:
    return spelled(UNSPACED_RUN.sub(lambda found: f" {' '.join(_indexed_pairs(found[0]))} ", _folded_run(run)))


@lru_cache(maxsize=4096)
def _folded_character(character: str) -> str:
    """Keep letters, digits and marks, make a symbol a word, drop what cannot be seen, separate at everything else."""
    if character.isascii() or character.isalnum():
        return character
    if character in SKIN_TONES:
        return ""
    category = unicodedata.category(character)
    if EMOJI_FIRST <= ord(character) <= EMOJI_LAST or (category == "So" and ord(character) > LATIN_1_LAST):
        return f" {character} "
    match category:
        case "Cf":
            return ""
        case "Mn" | "Mc" | "Me":
            return "" if unicodedata.name(character, "").startswith("VARIATION SELECTOR") else character
        case _:
            return " "


def _letters(run: str) -> list[str]:
    """Take a run apart into characters, each with the marks that stand on it."""
    if run.isalnum():
        return list(run)
    letters: list[str] = []
    for character in run:
        if letters and unicodedata.category(character).startswith("M"):
            letters[-1] += character
        else:
            letters.append(character)
    return letters


def _indexed_pairs(run: str) -> list[str]:
    """Return the pairs and the last character, so that each character begins something that is indexed."""
    letters = _letters(run)
    return [*pairs(run), letters[-1]] if len(letters) > 1 else letters
