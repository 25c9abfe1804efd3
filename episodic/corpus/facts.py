"""Chance, and the facts that it settles: who the customer is, what was bought, what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from episodic.corpus import vocabulary as words
from episodic.corpus.asian import CHINESE, JAPANESE, THAI
from episodic.corpus.english import ENGLISH
from episodic.corpus.german import GERMAN
from episodic.corpus.romance import FRENCH, PORTUGUESE, SPANISH
from episodic.corpus.speech import Language

__all__ = ["Dice", "customer", "errand", "purchase"]

# One is drawn, so repeating a language is what makes it frequent.
_LANGUAGES: Final = (*(ENGLISH,) * 31, GERMAN, GERMAN, FRENCH, FRENCH, SPANISH, PORTUGUESE, JAPANESE, CHINESE, THAI)
# Square roots of primes: the multiples of each are spread evenly over 0 to 1 when only their fractions are kept, and
# those of two have nothing to do with one another. One for each thing that is drawn about a customer.
_ROOTS: Final = tuple(prime**0.5 for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61))

# What is said of a customer, of what they bought and of what went wrong in a single word.
_OF_CUSTOMER: Final = {
    "city": words.CITIES,
    "country": words.COUNTRIES,
    "device": words.DEVICES,
    "plan": words.PLANS,
    "job": words.JOBS,
}
_OF_PURCHASE: Final = {
    "brand": words.BRANDS,
    "thing": words.THINGS,
    "thing2": words.THINGS,
    "colour": words.COLOURS,
    "carrier": words.CARRIERS,
}
_OF_ERRAND: Final = {
    "error": words.CODES,
    "module": words.MODULES,
    "fault": words.FAULTS,
    "place": words.PLACES,
    "occasion": words.OCCASIONS,
    "relative": words.RELATIVES,
    "colleague": words.COLLEAGUES,
    "city2": words.CITIES,
}

_T = TypeVar("_T")


class Dice:
    """Chance in the few shapes that the desk needs, made of numbers from 0 up to but not including 1."""

    __slots__ = ("random",)

    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random

    def chance(self, likelihood: float) -> bool:
        """Say yes as often as the likelihood, from 0 to 1, has it."""
        return self.random() < likelihood

    def whole(self, low: int, high: int) -> int:
        """Draw a whole number from `low` up to but not including `high`."""
        return low + int(self.random() * (high - low))

    def pick(self, options: Sequence[_T]) -> _T:
        """Pick any of the options."""
        return options[int(self.random() * len(options))]

    def often_first(self, options: Sequence[_T]) -> _T:
        """Pick one by Zipf's law: the option at rank r about 1/r as often as the first."""
        return options[int((len(options) + 1) ** self.random()) - 1]

    def words(self, vocabularies: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Pick a word for each name, by Zipf's law."""
        random = self.random
        return {name: options[int((len(options) + 1) ** random()) - 1] for name, options in vocabularies.items()}

    def round(self, options: Sequence[_T]) -> Iterator[_T]:
        """Go round the options without end, beginning near the front and mostly in small steps.

        None returns before all were there, as long as their number is prime.
        """
        many = len(options)
        at = int((many + 1) ** self.random()) - 1
        step = int(many ** self.random())
        while True:
            yield options[at % many]
            at += step

    def pause(self, seconds: float) -> timedelta:
        """Draw a pause of at least so many seconds, half of them under twice that, a few 500 times as long."""
        return timedelta(0, seconds / (1.002 - self.random()))


def customer(number: int) -> tuple[Language, dict[str, str]]:
    """Work a customer out from their number alone, so that who comes back is the same and no table is kept."""
    dice = Dice(((number + 1) * root % 1.0 for root in _ROOTS).__next__)
    language = dice.pick(_LANGUAGES)
    given = dice.often_first(language.given)
    family = dice.often_first(language.family) + dice.often_first(language.endings)
    # Without a space between words, the family name comes first and people are addressed by both.
    name = f"{given} {family}" if language.joint else family + given
    mailbox = f"{given}.{family}{number % 100}" if name.isascii() else f"{dice.pick(words.STREETS)}{number}"
    return language, {
        **dice.words(_OF_CUSTOMER),
        "name": name,
        "first": given if language.joint else name,
        "email": f"{mailbox.lower()}@{dice.often_first(words.MAIL_HOSTS)}",
        "street": f"{dice.whole(1, 180)} {dice.pick(words.STREETS)} {dice.often_first(words.STREET_KINDS)}",
        "postcode": f"{dice.whole(10_000, 99_999)}",
        "card": f"{dice.whole(0, 10_000):04}",
        "year": f"{dice.whole(2009, 2026)}",
    }


def purchase(dice: Dice) -> dict[str, str]:
    """Draw what was bought, what it cost, and how it is sent."""
    facts = dice.words(_OF_PURCHASE)
    brand = facts["brand"]
    model = f"{brand} {dice.often_first(words.SERIES)} {dice.whole(1, 10)}"
    price = 5 + int(20 / (1.02 - dice.random()))
    currency = dice.often_first(words.CURRENCIES)
    return {
        **facts,
        "model": model,
        "product": f"{model} {facts['thing']}",
        "sku": f"{brand[:2].upper()}-{dice.whole(100, 10_000)}",
        "serial": f"SN{dice.whole(0, 16**8):08X}",
        "order": f"ORD-{dice.whole(10_000, 999_999)}",
        "order2": f"ORD-{dice.whole(10_000, 999_999)}",
        "amount": f"{price}.{dice.pick(('90', '99', '00', '49'))} {currency}",
        "part": f"{1 + price // 3}.{dice.whole(10, 100)} {currency}",
        "invoice": f"INV-2026-{dice.whole(0, 100_000):05}",
        "vat": f"{dice.often_first(words.COUNTRIES)}{dice.whole(100_000_000, 999_999_999)}",
        "coupon": f"{dice.often_first(words.COUPONS)}-{dice.whole(0, 16**4):04X}",
        "tracking": f"{facts['carrier'][:2].upper()}{dice.whole(10**9, 10**10)}",
        "warehouse": f"{dice.often_first(words.CITIES)}-{dice.whole(1, 10)}",
    }


def errand(dice: Dice, begins: datetime) -> dict[str, str]:
    """Draw what went wrong, and the circumstances."""
    facts = dice.words(_OF_ERRAND)
    if dice.chance(0.5):
        # Half of the codes come from the short list that everybody quotes, half from a long one.
        facts["error"] = f"E{999 + int(9000 ** dice.random())}"
    days = 2 + int(2 / (1.05 - dice.random()))
    past, coming = begins - timedelta(days + 3), begins + timedelta(dice.whole(2, 12))
    return {
        **facts,
        "date": past.isoformat()[:10],
        "day": f"{past.day} {words.MONTHS[past.month - 1]}",
        "weekday": dice.pick(words.WEEKDAYS),
        "eta": coming.isoformat()[:10],
        "days": f"{days}",
        "minutes": f"{dice.whole(3, 60)}",
        "request": f"{dice.whole(0, 16**8):08x}",
        "bug": f"{200 + int(5000 ** dice.random())}",
        "version": f"v{dice.whole(1, 4)}.{int(40 ** dice.random())}.{dice.whole(0, 8)}",
    }
