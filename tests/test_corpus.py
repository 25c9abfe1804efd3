"""The synthetic support desk: the same for a seed, in order of time, and alike to a real log."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodic.corpus import Conversation, conversations, episodes
from episodic.model import OUTCOMES, ROLES, Draft

MAKE_CORPUS = Path(__file__).parents[1] / "scripts" / "make_corpus"

seeds = st.integers(min_value=0, max_value=2**63)
# How long an example takes says nothing here.
unhurried = settings(deadline=None, max_examples=25)


@pytest.fixture(scope="module")
def corpus() -> list[Draft]:
    """Give 20,000 episodes of one seed."""
    return list(episodes(7, 20_000))


@pytest.fixture(scope="module")
def talks() -> list[Conversation]:
    """Give 3,000 conversations of one seed."""
    return list(islice(conversations(7), 3000))


def make_corpus(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the script with the Python that runs the tests."""
    return subprocess.run([sys.executable, MAKE_CORPUS, *arguments], capture_output=True, check=False)


def words(text: str) -> set[str]:
    """Give the distinct words of a text."""
    return set(re.findall(r"\w+", text.lower()))


def time_of(draft: Draft) -> datetime:
    """Give the time of an episode, which every one in a corpus has."""
    assert draft.timestamp is not None
    return draft.timestamp


@unhurried
@given(seed=seeds, count=st.integers(0, 400), concurrent=st.integers(1, 40))
def test_there_are_exactly_as_many_as_asked_for(seed: int, count: int, concurrent: int) -> None:
    """Any count is met exactly, and with any concurrency."""
    assert sum(1 for _ in episodes(seed, count, concurrent=concurrent)) == count


@unhurried
@given(seed=seeds)
def test_the_same_seed_gives_the_same_episodes(seed: int) -> None:
    """Two runs of one seed agree in every field of every episode and conversation."""
    assert list(episodes(seed, 300, concurrent=9)) == list(episodes(seed, 300, concurrent=9))
    assert list(islice(conversations(seed), 20)) == list(islice(conversations(seed), 20))


def test_two_runs_do_not_disturb_one_another() -> None:
    """Runs that are consumed by turns give what each gives alone, for they share no state."""
    alone = list(episodes(3, 200))
    assert [(one, two) for one, two in zip(episodes(3, 200), episodes(3, 200), strict=True)] == [(d, d) for d in alone]


def test_another_seed_gives_another_corpus() -> None:
    """Two seeds share no session, so that both fit in one log."""
    one, two = ({draft.session_id for draft in episodes(seed, 2000)} for seed in (1, 2))
    assert not one & two


@unhurried
@given(seed=seeds, longer=st.integers(0, 300), shorter=st.integers(0, 300))
def test_a_longer_corpus_begins_with_the_shorter_one(seed: int, longer: int, shorter: int) -> None:
    """How many are asked for does not change which ones come first."""
    common = min(longer, shorter)
    both = (list(islice(episodes(seed, count, concurrent=7), common)) for count in (longer, shorter))
    assert next(both) == next(both)


@unhurried
@given(seed=seeds, concurrent=st.integers(1, 300))
def test_time_never_runs_backwards(seed: int, concurrent: int) -> None:
    """The timestamps are aware, begin at the start, and never decrease."""
    start = datetime(2030, 2, 28, 23, 59, tzinfo=UTC)
    times = [time_of(draft) for draft in episodes(seed, 500, concurrent=concurrent, start=start)]
    assert times[0] == start
    assert all(one <= two for one, two in pairwise(times))
    assert all(time.tzinfo is not None for time in times)


def test_conversations_begin_in_order_of_time(talks: list[Conversation]) -> None:
    """A conversation begins after the one before it began, and its own turns follow each other."""
    assert all(time_of(one.turns[0]) < time_of(two.turns[0]) for one, two in pairwise(talks))
    assert all(time_of(one) < time_of(two) for talk in talks for one, two in pairwise(talk.turns))


def test_conversations_interleave(corpus: list[Draft]) -> None:
    """Neighbours in the log mostly belong to different conversations, and two hundred of them are open at once."""
    strangers = sum(one.session_id != two.session_id for one, two in pairwise(corpus))
    assert strangers > 0.7 * len(corpus)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for position, draft in enumerate(corpus):
        first.setdefault(draft.session_id, position)
        last[draft.session_id] = position
    middle = len(corpus) // 2
    across = sum(first[session] < middle <= last[session] for session in first)
    assert 100 < across <= 200


def test_one_conversation_at_a_time_does_not_interleave() -> None:
    """With a concurrency of one, each conversation ends before the next begins."""
    sessions = [draft.session_id for draft in episodes(5, 2000, concurrent=1)]
    changes = sum(one != two for one, two in pairwise(sessions))
    assert changes == len(set(sessions)) - 1


def test_a_conversation_has_4_to_24_turns(talks: list[Conversation]) -> None:
    """Short and long conversations both occur, and none is out of bounds."""
    lengths = Counter(len(talk.turns) for talk in talks)
    assert min(lengths) == 4
    assert 20 <= max(lengths) <= 24


def test_a_conversation_is_one_customer_with_one_agent(talks: list[Conversation]) -> None:
    """Every turn bears the ids of its conversation, and no session id occurs twice."""
    for talk in talks:
        assert {(d.agent_id, d.session_id, d.user_id) for d in talk.turns} == {
            (talk.agent_id, talk.session_id, talk.user_id)
        }
    assert len({talk.session_id for talk in talks}) == len(talks)


def test_only_some_last_turns_say_how_it_ended(talks: list[Conversation]) -> None:
    """An outcome stands on a last turn or nowhere, agrees with the conversation's, and is left open by some."""
    for talk in talks:
        assert talk.outcome in OUTCOMES
        assert talk.turns[-1].outcome in {talk.outcome, None}
        assert all(draft.outcome is None for draft in talk.turns[:-1])
    assert {talk.outcome for talk in talks} == OUTCOMES
    stated = sum(talk.turns[-1].outcome is not None for talk in talks)
    assert 0.6 * len(talks) < stated < 0.8 * len(talks)


def test_all_roles_speak_and_the_user_is_named(corpus: list[Draft]) -> None:
    """Each role occurs; a customer has a name, a tool has none, and a person takes over now and then."""
    assert {draft.role for draft in corpus} == ROLES
    assert all(draft.author for draft in corpus if draft.role == "user")
    assert not any(draft.author for draft in corpus if draft.role in {"tool", "system"})
    assert any(draft.author for draft in corpus if draft.role == "assistant")
    assert not any(draft.event_id for draft in corpus)


def test_a_tool_answers_with_json_and_says_its_name(corpus: list[Draft]) -> None:
    """The content of a tool's turn is a JSON object, and its metadata name the tool and how long it took."""
    for draft in corpus:
        assert draft.metadata is not None
        assert {"intent", "ticket_id"} <= draft.metadata.keys()
        if draft.role == "tool":
            assert isinstance(json.loads(draft.content), dict)
            assert {"tool", "ms"} <= draft.metadata.keys()


def test_no_slot_is_left_open(corpus: list[Draft]) -> None:
    """Every template is filled in: no braces remain in what people say."""
    assert not any(set("{}") & set(draft.content) for draft in corpus if draft.role != "tool")


def test_a_conversation_keeps_to_its_facts(talks: list[Conversation]) -> None:
    """However often they come up, a conversation has one order besides the customer's other one, and one ticket."""
    for talk in talks:
        # A customer's slip of the hand spares digits, so an order number is always whole.
        orders = {order for draft in talk.turns for order in re.findall(r"\bORD-\d+\b", draft.content)}
        assert len(orders) <= 2
        assert len({draft.metadata["ticket_id"] for draft in talk.turns if draft.metadata}) == 1


def test_a_customer_who_returns_is_the_same_person(talks: list[Conversation]) -> None:
    """Customers come back, and bear the same name and speak the same language each time."""
    seen = defaultdict[str, set[object]](set)
    for talk in talks:
        seen[talk.user_id].update((d.author, d.metadata["lang"]) for d in talk.turns if d.role == "user" and d.metadata)
    assert len(seen) < len(talks) / 2
    assert all(len(persons) == 1 for persons in seen.values())


def test_new_customers_never_stop_coming() -> None:
    """Of ten times as many conversations, the customers are several times as many."""
    users = [talk.user_id for talk in islice(conversations(2), 4000)]
    assert len(set(users)) > 3 * len(set(users[:400]))


def test_few_agents_and_customers_have_most_of_it(corpus: list[Draft]) -> None:
    """One agent has between a fifth and a third of everything, a dozen share it, and some customers write a lot."""
    agents = Counter(draft.agent_id for draft in corpus)
    assert agents.most_common(1)[0][0] == "support-bot"
    assert 0.2 < agents["support-bot"] / len(corpus) < 0.34
    assert len(agents) == 12
    users = sorted(Counter(draft.user_id for draft in corpus).values(), reverse=True)
    assert users[0] > 10 * users[len(users) // 2]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_text_has_about_200_characters(seed: int) -> None:
    """The mean length is 180 to 220 characters, with short answers and long ones among them."""
    lengths = [len(draft.content) for draft in episodes(seed, 20_000)]
    assert 180 <= sum(lengths) / len(lengths) <= 220
    assert 0.08 < sum(length < 40 for length in lengths) / len(lengths) < 0.2
    assert sum(150 <= length <= 320 for length in lengths) / len(lengths) > 0.5


def test_the_vocabulary_is_large_and_skewed(corpus: list[Draft]) -> None:
    """Words are used by Zipf's law: a few everywhere, some thousands now and then, and a long tail of identifiers."""
    frequency = Counter(word for draft in corpus for word in words(draft.content))
    ranked = [many for _, many in frequency.most_common()]
    assert len(ranked) > 15_000
    assert sum(word.isalpha() for word in frequency) > 4000
    assert ranked[0] > 0.3 * len(corpus)
    assert all(ranked[rank] > 3 * ranked[10 * rank] for rank in (30, 100, 300))
    assert sum(many == 1 for many in ranked) > 0.2 * len(ranked)


def test_texts_hold_what_people_search_for(corpus: list[Draft]) -> None:
    """Order numbers, mail addresses, codes, versions and amounts occur in the texts."""
    everything = "\n".join(draft.content for draft in corpus)
    for pattern in (
        r"\bORD-\d{5,6}\b",
        r"\b[\w.]+@[\w.]+\.(com|org|net|example)\b",
        r"\bE\d{4}\b",
        r"\bHTTP 50\d\b",
        r"\bPAY-3DS-FAIL\b",
        r"\bv\d+\.\d+\.\d+\b",
        r"\b\d+\.\d\d EUR\b",
        r"\b20\d\d-\d\d-\d\d\b",
        r"\bINV-\d{4}-\d{5}\b",
    ):
        assert len(re.findall(pattern, everything)) > 50, pattern


def test_several_languages_and_scripts_are_spoken(corpus: list[Draft]) -> None:
    """Most of it is English, and seven other languages are there in their own letters, and emoji."""
    languages = Counter(draft.metadata["lang"] for draft in corpus if draft.metadata and draft.role == "user")
    assert set(languages) == {"en", "de", "fr", "es", "pt", "ja", "zh", "th"}
    assert languages["en"] > 0.6 * languages.total()
    everything = "".join(draft.content for draft in corpus)
    for letters in ("[äöüß]", "[éèêç]", "[ñ¿¡]", "[ãõ]", "[ぁ-んァ-ン]", "[一-龥]", "[ก-๙]", "[😀-🙏]"):
        assert len(re.findall(letters, everything)) > 20, letters


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"count": -1}, "count must not be negative"),
        ({"count": 1, "concurrent": 0}, "concurrent must be at least 1"),
        ({"count": 1, "start": datetime(2026, 1, 1)}, "start must have a time zone"),  # noqa: DTZ001
    ],
)
def test_what_cannot_work_is_refused_by_the_call_itself(arguments: dict[str, object], reason: str) -> None:
    """A wrong argument raises from the call, not from the first episode."""
    with pytest.raises(ValueError, match=reason):
        episodes(1, **arguments)  # type: ignore[arg-type]


def test_conversations_refuse_a_start_without_a_time_zone() -> None:
    """A naive start raises from the call, not from the first conversation."""
    with pytest.raises(ValueError, match="start must have a time zone"):
        conversations(1, start=datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_script_writes_one_json_object_a_line(tmp_path: Path) -> None:
    """Each line has the keys of an import, times in UTC with a Z, and no key without a value."""
    assert make_corpus("--count", "300", "--seed", "4", "--out", str(tmp_path / "c.jsonl")).returncode == 0
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text("utf-8").splitlines()]
    drafts = list(episodes(4, 300))
    assert [row["content"] for row in rows] == [draft.content for draft in drafts]
    assert [datetime.fromisoformat(row["timestamp"]) for row in rows] == [draft.timestamp for draft in drafts]
    for row in rows:
        assert row["timestamp"].endswith("Z")
        assert None not in row.values()
        assert row.keys() >= {"agent_id", "session_id", "user_id", "timestamp", "role", "content", "metadata"}
        assert row.keys() <= {*Draft.__dataclass_fields__}


def test_the_script_writes_the_same_bytes_each_time(tmp_path: Path) -> None:
    """Two runs agree to the byte, compressed or not, and nothing but the data is on stdout."""
    plain = make_corpus("--count", "200")
    packed = [tmp_path / name for name in ("one.jsonl.gz", "two.jsonl.gz")]
    assert all(make_corpus("--count", "200", "--out", str(path)).returncode == 0 for path in packed)
    assert packed[0].read_bytes() == packed[1].read_bytes()
    assert gzip.decompress(packed[0].read_bytes()) == plain.stdout
    assert plain.stderr == b""


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--count", "-3"), 2, b"must be a whole number from 0 on, not '-3'"),
        (("--seed", "x"), 2, b"must be a whole number from 0 on, not 'x'"),
        (("--count", "1", "--out", "/dev/null/corpus.jsonl"), 1, b"cannot write /dev/null/corpus.jsonl: "),
    ],
)
def test_the_script_says_in_one_line_what_is_wrong(arguments: tuple[str, ...], code: int, reason: bytes) -> None:
    """A failure has an exit code of its own and a reason, and never a traceback."""
    done = make_corpus(*arguments)
    assert done.returncode == code
    assert reason in done.stderr.splitlines()[-1]
    assert b"Traceback" not in done.stderr
