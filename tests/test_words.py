"""From any text to the words that are looked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodic.folding import PART, folded, is_unspaced
from episodic.search.stopwords import ENGLISH, LANGUAGES
from episodic.search.words import JOINTS, MOST_CHARACTERS, MOST_PARTS, MOST_WORDS, words_of

# With NUL and halves of surrogate pairs: what a web form may send.
ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("ORD-1234", ("ord-1234", "ord", "1234")),
        ("#4432", ("4432",)),
        ("v1.2.3", ("v1.2.3", "v1", "2", "3")),
        ("a@b.co", ("a@b.co", "b", "co")),
        ("my_variable", ("my_variable", "variable")),
        ("a/b", ("a/b", "b")),
        ("c++", ("c",)),
        ('foo"bar', ("foo", "bar")),
        ("https://example.com/help", ("https://example.com/help", "https", "example", "com", "help")),
    ],
)
def test_an_identifier_is_looked_for_as_a_whole_and_by_its_parts(query: str, words: tuple[str, ...]) -> None:
    """What joins the parts of an identifier keeps them one word, beside each part that says something."""
    assert words_of(query).words == words


@pytest.mark.parametrize("around", ["{}", "({})", "{}.", '"{}"', "¿{}?", "*{}*", "-{}", "^{}", "{}:", "…{}!"])
def test_punctuation_around_an_identifier_does_not_matter(around: str) -> None:
    """The same words come out of an identifier in brackets, in quotes or at the end of a sentence."""
    assert words_of(around.format("ORD-1234")) == words_of("ORD-1234")


@pytest.mark.parametrize("query", ["refund OR", "NEAR(refund", "refund AND NOT", "{refund}", "refund*", '"refund'])
def test_the_syntax_of_the_index_means_nothing(query: str) -> None:
    """Operators of FTS5 are words or punctuation like any other."""
    assert "refund" in words_of(query).words
    assert not any(set(word) & set('"*(){}^') for word in words_of(query).words)


def test_a_column_name_with_a_colon_is_an_identifier() -> None:
    """`col:val` is looked for as it stands and by its parts, never as a column of the index."""
    assert words_of("content:val").words == ("content:val", "content", "val")


@pytest.mark.parametrize(("straight", "curly"), [("don't", "don’t"), ("we'll", "we’ll"), ("customer's", "customer’s")])
def test_the_kind_of_apostrophe_does_not_matter(straight: str, curly: str) -> None:
    """A contraction and a genitive give the same words with a straight and with a curly apostrophe."""
    assert words_of(straight) == words_of(curly)
    assert words_of(f"{straight} refund") == words_of(f"{curly} refund")


def test_a_genitive_gives_the_word_itself() -> None:
    """The apostrophe and the s fall off."""
    assert words_of("the customer's order").words == ("customer", "order")


def test_stopwords_are_left_out() -> None:
    """Of a question only what it is about is kept, in its order, in lower case."""
    assert words_of("Why was I billed TWO times for the Order?").words == ("billed", "two", "times", "order")


@pytest.mark.parametrize(
    ("query", "words"), [("Who are you?", ("who", "are", "you")), ("don't", ("don", "t")), ("and/or", ("and", "or"))]
)
def test_stopwords_are_kept_when_there_is_nothing_else(query: str, words: tuple[str, ...]) -> None:
    """A query of nothing but stopwords is still looked for."""
    assert words_of(query).words == words


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Wo ist denn meine Bestellung und warum dauert das so lange?", ("denn", "bestellung", "dauert", "lange")),
        ("Où est ma commande, et pourquoi n'est-elle pas arrivée ?", ("commande", "arrivee")),
        ("¿Dónde está mi pedido y por qué no ha llegado?", ("pedido", "llegado")),
        ("Onde está o meu pedido e por que não chegou?", ("pedido", "chegou")),
        ("Dov'è il mio ordine e perché non è ancora arrivato?", ("ordine", "arrivato")),
        ("Waar is mijn bestelling en waarom duurt het zo lang?", ("bestelling", "duurt", "lang")),
        ("Gdzie jest moje zamówienie?", ("zamowienie",)),
        ("Siparişim neden daha gelmedi ve nerede?", ("siparisim", "gelmedi")),
        ("Где мой заказ и почему его нет?", ("заказ",)),
    ],
)
def test_each_large_language_has_its_stopwords(query: str, words: tuple[str, ...]) -> None:
    """Of a question in another language, too, only what it is about is kept."""
    assert words_of(query).words == words


@pytest.mark.parametrize("word", ["die", "hat", "war", "son", "non", "plus", "man"])
def test_a_word_of_english_is_no_stopword_for_being_one_elsewhere(word: str) -> None:
    """The language of a query is told by more than one word."""
    assert word in words_of(f"when did the {word} order").words
    assert word in words_of(f"{word} order").words


@pytest.mark.parametrize("query", ["", " ", "\0", "...", '"', '""', "()", "(" * 100, "*", "\ud83d", "_", "--"])
def test_without_a_letter_or_digit_there_is_nothing_to_look_for(query: str) -> None:
    """Punctuation, emptiness, a NUL and half of a surrogate pair give no word, and nothing was cut off."""
    assert words_of(query) == ((), False)


def test_a_word_is_looked_for_once() -> None:
    """Repetition adds no word."""
    assert words_of("refund REFUND Refund order refund").words == ("refund", "order")


def test_a_query_of_too_many_words_is_cut_and_says_so() -> None:
    """The first words are looked for; the result cannot be exhaustive."""
    exactly = [f"w{n}" for n in range(MOST_WORDS)]
    assert words_of(" ".join(exactly)) == (tuple(exactly), False)
    assert words_of(" ".join([*exactly, "refund"])) == (tuple(exactly), True)


def test_stopwords_do_not_use_up_the_words() -> None:
    """What is left out is not counted."""
    assert words_of("the " * 1000 + "refund") == (("refund",), False)


def test_a_query_of_too_many_characters_is_cut_and_says_so() -> None:
    """What stands behind is not looked at, whatever stands before."""
    assert words_of(" " * (MOST_CHARACTERS - 6) + "refund") == (("refund",), False)
    assert words_of(" " * (MOST_CHARACTERS - 6) + "refund late") == (("refund",), True)
    assert words_of("." * MOST_CHARACTERS + "refund") == ((), True)


def test_a_chain_of_too_many_parts_is_looked_for_by_its_parts() -> None:
    """A phrase of thousands of parts would take the index seconds."""
    longest = "-".join(f"p{n}" for n in range(MOST_PARTS))
    assert words_of(longest).words == (longest, *longest.split("-"))
    assert words_of(f"{longest}-refund").words == (*longest.split("-"), "refund")
    assert words_of("1-" * 4000).words == ("1",)


@given(ANY_TEXT)
def test_any_text_gives_words_that_can_be_looked_for(query: str) -> None:
    """Words are distinct, few, of what the index takes for words, and hold neither a quote nor half of a surrogate."""
    words, _ = words_of(query)
    assert len(words) == len(set(words)) <= MOST_WORDS
    for word in words:
        assert PART.search(word)
        assert not set(word) & set('\0"')
        assert word == word.strip(JOINTS)
        assert word.encode()


@given(ANY_TEXT)
def test_each_run_of_letters_and_digits_is_looked_for(query: str) -> None:
    """Nothing of a query that says something is dropped without a word, short of stopwords."""
    words, truncated = words_of(query)
    stopwords = ENGLISH.union(*LANGUAGES.values())
    letters = {char for char in folded(query) if PART.match(char)}
    dropped = {char for word in stopwords for char in word}
    assert truncated or letters - dropped <= {char for word in words for char in word}
    runs = {run for run in PART.findall(folded(query)) if not is_unspaced(run)}
    assert truncated or runs - stopwords <= set(words)


@given(st.text(st.characters(codec="ascii")))
def test_case_does_not_matter(query: str) -> None:
    """The same words come out of a shout."""
    assert words_of(query.upper()) == words_of(query.lower())
