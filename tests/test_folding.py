"""Spellings that mean the same word are the same word to the index and to a query, in every script."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from episodic import EpisodicLog
from episodic.folding import PART, PLAIN, folded, indexed_text, pairs
from episodic.model import text_flaw
from episodic.search.words import words_of
from episodic.sqlite.connect import read_sql, statements
from episodic.sqlite.fts import match
from tests.test_search import contents_of, record_all

OTHERS = ["my parcel is late", "我的包裹迟到了", "注文はまだですか", "สวัสดีครับ", "спасибо", "danke 🙏"]

# What was written, and what is asked for.
SAME = [
    # Accents, composed and decomposed, and letters that a keyboard lacks.
    ("un café noir", "cafe\u0301"),
    ("un cafe\u0301 noir", "café"),
    ("un cafe\u0301 noir", "cafe"),
    ("Øystein rang an", "oystein"),
    ("oystein rang an", "Øystein"),
    ("Hauptstraße 5", "hauptstrasse"),
    ("Hauptstrasse 5", "HAUPTSTRAẞE"),
    ("das Łódź-Paket", "lodz"),
    ("the encyclopædia", "encyclopaedia"),
    ("ĮSPĖJIMAS", "ispejimas"),
    # Capitals of any alphabet, Turkish ones too.
    ("ВОЗВРАТ денег", "возврат"),
    ("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "ᏣᎳᎩ"),
    ("ꮳꮃꭹ Ꭶꮼꮒꭿꮝꮧ", "ᏣᎳᎩ"),
    ("ᲛᲐᲓᲚᲝᲑᲐ", "მადლობა"),
    ("Ελληνικός καφές", "ΕΛΛΗΝΙΚΟΣ"),
    ("İstanbul şubesi", "istanbul"),
    ("istanbul şubesi", "İSTANBUL"),
    ("ışık yanmıyor", "IŞIK"),
    # Width, ligatures, numbers in other forms.
    ("the ﬁnal oﬀer", "final offer"),
    ("order １２３４", "1234"),
    ("order 1234", "１２３４"),
    ("ＡＢＣ-12", "abc-12"),
    ("20 m² of it", "m2"),
    # What cannot be seen.
    ("a pass\u200bword", "password"),
    ("a password", "pass\u200bword"),
    ("re\u00adfund it", "refund"),
    ("\ufefffirst", "first"),
    ("\u202ehidden", "hidden"),
    # Curly quotes, dashes that are none, signs behind a name.
    ("it doesn’t say ‘escalated’", "escalated"),
    ("order ORD‑1234", "ORD-1234"),
    ("order ORD–1234", "ord-1234"),
    ("Acme™ lamp", "acme"),
    ("Acme® lamp", "acme"),
    ("it has 25°C", "25"),
    # Scripts without spaces: a word of two characters inside a sentence, one of one, and Latin glued to them.
    ("我想申请退款可以吗", "退款"),
    ("我想申请退款可以吗", "退款申请"),
    ("我家有猫", "猫"),
    ("猫很好", "猫"),
    ("修改youer服务端", "youer"),
    ("修改youer服务端", "服务端"),
    ("my order 订单ORD-77的状态", "ORD-77"),
    ("my order 订单ORD-77的状态", "订单 status"),
    ("パスワードを忘れました", "パスワード"),
    ("ﾊﾟｽﾜｰﾄﾞを忘れました", "パスワード"),
    ("返金をお願いします", "返金"),
    ("환불을 요청합니다", "환불"),
    ("ฉันต้องการคืนเงินค่ะ", "คืนเงิน"),
    ("ខ្ញុំចង់បានប្រាក់វិញ", "ប្រាក់"),
    ("𠀀𠀁𠀂", "𠀀𠀁"),
    # Marks that belong to the spelling, and marks that may be left out.
    ("मुझे रिफंड चाहिए", "रिफंड"),
    ("السَّلَامُ عليكم", "السلام"),
    ("أريد إرجاع الطلب", "ارجاع"),
    ("שָׁלוֹם לכם", "שלום"),
    # Symbols are words; the colour of a skin and the presentation are no difference.
    ("thanks 👍", "👍"),
    ("thanks 👍🏽", "👍"),
    ("thanks 👍", "thanks👍🏿"),
    ("great🙂job", "great"),
    ("great🙂job", "job"),
    ("great🙂job", "🙂"),
    ("I ❤️ it", "❤"),
    ("done ✓", "✓"),
    ("new 🫠 face", "🫠"),
]


@pytest.mark.parametrize(("content", "query"), SAME)
async def test_what_is_written_otherwise_is_found(either: EpisodicLog, content: str, query: str) -> None:
    """The episode that holds the word in another spelling comes first."""
    await record_all(either, content, *OTHERS)
    assert contents_of(await either.search("a", query))[:1] == [content]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        # A vowel sign makes another word.
        ("रिफंड", "रफड"),
        ("我想退货", "退款"),
        ("返品です", "返金"),
        ("👍", "👎"),
        ("猫", "犬"),
    ],
)
async def test_another_word_is_not_found(either: EpisodicLog, content: str, query: str) -> None:
    """What differs in more than its spelling is another word."""
    await record_all(either, content)
    assert contents_of(await either.search("a", query)) == []


async def test_an_author_is_found_in_any_spelling(either: EpisodicLog) -> None:
    """Names are folded like contents, beside a content of ASCII, too."""
    await either.record("a", "1", "user", "hello", author="Øystein Strauß")
    await either.record("a", "2", "user", "hello", author="田中太郎")
    await record_all(either, *OTHERS)
    assert contents_of(await either.search("a", "what did oystein say")) == ["hello"]
    assert [hit.episode.author for hit in (await either.search("a", "田中")).hits] == ["田中太郎"]


async def test_what_was_said_comes_back_as_it_was_said(log: EpisodicLog) -> None:
    """Folding is for looking up alone: the content keeps every character."""
    contents = [content for content, _ in SAME]
    await record_all(log, *contents)
    assert [e.content async for e in log.scan()] == contents


def test_ascii_and_plain_punctuation_need_no_copy() -> None:
    """What the index splits by itself is not stored a second time; curly quotes and dashes alone are no reason to."""
    assert indexed_text("Ann", "It's order ORD-1234, my_variable = 5") is None
    assert indexed_text(None, "It’s “late” – again… €5 ¿no?") is None
    assert indexed_text("Zoë", "hello") == "Zoe\nhello"


def test_plain_punctuation_separates_for_the_index_as_it_does_for_a_query(index: sqlite3.Connection) -> None:
    """What is left unfolded is split alike on both sides."""
    plain = [chr(code) for code in range(0x80, 0x3000) if PLAIN.fullmatch(chr(code))]
    assert "’" in plain
    for sign in plain:
        content = f"lamp{sign}refund"
        words = ("lamp", "refund", f"lamp{folded(sign)}refund", "lamprefund")
        assert indexed_text(None, content) is None
        assert count(index, content, words) == [1, 1, 1, 0]


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    """An index of words as a log has it, over one table in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE episodes (id INTEGER PRIMARY KEY, agent_id, user_id, author, content, folded)")
        db.execute("CREATE TABLE agents (number INTEGER PRIMARY KEY, agent_id)")
        db.execute("INSERT INTO agents VALUES (1, 'a')")
        for statement in statements(read_sql("index")):
            db.execute(statement)
        yield db


def count(index: sqlite3.Connection, content: str, words: tuple[str, ...]) -> list[int]:
    """Index one content alone, and count what each word finds."""
    index.execute("INSERT INTO episodes VALUES (1, 'a', NULL, NULL, ?, ?)", (content, indexed_text(None, content)))
    index.execute(
        """INSERT INTO episodes_fts (rowid, user, author, content)
        SELECT place, user, author, content FROM episodes_indexed"""
    )
    found = [
        index.execute("SELECT count(*) FROM episodes_fts WHERE episodes_fts MATCH ?", (match(None, word),))
        for word in words
    ]
    counts = [one.fetchone()[0] for one in found]
    index.execute("DELETE FROM episodes")
    index.execute("INSERT INTO episodes_fts (episodes_fts) VALUES ('rebuild')")
    return counts


CONTENT = st.text(max_size=40).filter(lambda text: text_flaw(text) is None)


@given(CONTENT)
@example("修改youer服务端🙂ok")
@example("꯰ᨐ\u1a60")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_text_is_found_by_each_of_its_own_words(index: sqlite3.Connection, content: str) -> None:
    """Whatever the script, the index splits a text as a query is split: no word of it is looked for in vain."""
    words, _ = words_of(content)
    assert dict(zip(words, count(index, content, words), strict=True)) == dict.fromkeys(words, 1)


@pytest.mark.parametrize("mark", ["\u0300\u0323", "\u0e31", "\u20d0", "\u3099", "\U0001e8d0\U0001e8d1", "\u0f71\u0f72"])
def test_a_letter_under_a_heap_of_marks_is_folded_like_one_with_a_few(mark: str) -> None:
    """Nobody reads what a hundred thousand marks say, and putting them in order would take minutes."""
    assert len(folded("a" + mark * 100_000)) < 100
    assert indexed_text(None, "refund a" + mark * 100_000 + " lamp") == indexed_text(
        None, "refund a" + mark * 100 + " lamp"
    )


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    """The words of a folded text are its words."""
    assert PART.findall(folded(folded(text))) == PART.findall(folded(text))


@given(st.text(st.characters(codec="ascii")))
def test_of_ascii_only_the_case_is_folded(text: str) -> None:
    """The index does that by itself, so that ASCII needs no copy."""
    assert folded(text) == text.lower()
    assert PLAIN.fullmatch(text)


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1))
def test_pairs_hold_each_character_in_order(run: str) -> None:
    """Overlapping pairs put together again are the run."""
    assert pairs(run)[0] + "".join(pair[1] for pair in pairs(run)[1:]) == run
