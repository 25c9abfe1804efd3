"""What a conversation is made of: tools, issues and languages, as plain records of templates.

A template is a text with `{fact}` slots, filled from the facts of one case, so that an order number that a customer
gives is the one that the tool finds and the assistant repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

__all__ = ["Exchange", "Issue", "Kind", "Language", "Tool"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A back-office tool and what it answers.

    Attributes:
        name: what the tool is called, as in `orders.lookup`.
        found: answers when it works, each the members of a JSON object without its braces.
        failed: answers when it does not, written the same way.
    """

    name: str
    found: tuple[str, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of trouble, the same in every language.

    Attributes:
        topic: which desk takes it: billing, orders, account or product.
        intent: its name in the metadata.
        reads: the tool that looks the matter up.
        acts: the tool that settles it.
    """

    topic: str
    intent: str
    reads: Tool
    acts: Tool


@dataclass(frozen=True, slots=True)
class Issue:
    """What is said about one kind of trouble, in one language.

    Attributes:
        kind: the trouble.
        opening: how a customer begins.
        detail: what the customer adds when asked.
        finding: what the assistant reports after looking it up.
        solved: how the assistant ends when it could help.
        unsolved: how the assistant ends when it could not.
    """

    kind: Kind
    opening: tuple[str, ...]
    detail: tuple[str, ...]
    finding: tuple[str, ...]
    solved: tuple[str, ...]
    unsolved: tuple[str, ...]

    @classmethod
    def brief(  # noqa: PLR0917 - five sentences, in the order in which they are said
        cls, kind: Kind, opening: str, detail: str, finding: str, solved: str, unsolved: str
    ) -> Self:
        """Make an issue of which everything is said in one way only."""
        return cls(kind, (opening,), (detail,), (finding,), (solved,), (unsolved,))


class Exchange(NamedTuple):
    """A question on the side and its answer; with a tool, the answer is looked up first."""

    question: str
    answer: str
    tool: Tool | None = None


@dataclass(frozen=True, slots=True)
class Language:
    """All that is said in one language.

    Attributes:
        code: its ISO 639-1 code.
        joint: what stands between two sentences.
        given: given names of the customers who speak it.
        family: family names, or the first halves of them.
        endings: second halves of family names; one empty string where names are whole.
        issues: the kinds of trouble, most frequent first.
        circumstances: what customers add about their situation, most frequent first.
        requests: how customers ask for help.
        questions: how the assistant asks for the details.
        assurances: what the assistant adds to keep a customer at ease, most frequent first.
        offers: how the assistant asks leave to go on.
        exchanges: questions on the side.
        agreements: short answers of a customer who wants the assistant to go on.
        caveats: what remains open when only a part could be done.
        thanks: how a content customer leaves.
        complaints: how a discontented one does.
        goodbyes: the assistant's last words.
    """

    code: str
    joint: str
    given: tuple[str, ...]
    family: tuple[str, ...]
    endings: tuple[str, ...]
    issues: tuple[Issue, ...]
    circumstances: tuple[str, ...]
    requests: tuple[str, ...]
    questions: tuple[str, ...]
    assurances: tuple[str, ...]
    offers: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    agreements: tuple[str, ...]
    caveats: tuple[str, ...]
    thanks: tuple[str, ...]
    complaints: tuple[str, ...]
    goodbyes: tuple[str, ...]
