"""Nobody sees another agent's or another user's episodes, on any path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from episodic import Draft, Episode, EpisodicLog, Filter, FilterError, NotFoundError, Settings, corpus
from episodic.ports import Lookup, Scope
from episodic.sqlite.connect import place
from episodic.sqlite.fts import match
from episodic.sqlite.pool import SqliteReaders

# Names that wildcards, case folding, stemming, quoting or a lost length could take for one another.
NAMES = [
    "a",
    "a_",
    "a%",
    "A",
    "",
    " ",
    "a ",
    "é",
    "e\u0301",
    'a"',
    "a'",
    "a*",
    "ab",
    "b",
    "running",
    "runs",
    "a0",
    "ü" * 200,
]
LONG = ["x" * 40_000, "x" * 40_000 + "y"]


async def all_of(source: AsyncIterator[Episode]) -> list[Episode]:
    """Exhaust a stream."""
    return [episode async for episode in source]


async def read_every_way(log: EpisodicLog, agent_id: str, where: Filter | None) -> dict[str, list[Episode]]:
    """Ask for an agent's episodes within a filter in every way that names an agent."""
    found = await log.search(agent_id, "refund", 1_000, where)
    relevant = await log.recall_context(agent_id, "refund", 1_000, where)
    recalled = await log.recall_context(agent_id, "zebra", 1_000, where)
    parts = [await all_of(log.replay(f"s{n}", agent_id=agent_id, where=where)) for n in range(2)]
    return {
        "recent": await log.recent(agent_id, 1_000, where=where),
        "search": [hit.episode for hit in found.hits],
        "relevant": [item.episode for item in relevant.items],
        "recalled": [item.episode for item in recalled.items],
        "scan": await all_of(log.scan(agent_id=agent_id, where=where)),
        "replay": [episode for part in parts for episode in part],
    }


async def test_agents_of_similar_names_are_different_agents(either: EpisodicLog) -> None:
    """`a`, `a_`, `a%`, `A`, the empty name and others have each their own episodes, sessions and counts."""
    names = [*NAMES, *LONG]
    drafts = [
        Draft(name, f"s{n}", "user", f"refund {n} {place_}") for place_, name in enumerate(names) for n in range(2)
    ]
    recorded = await either.record_many(drafts)
    for name in names:
        own = {e.id for e in recorded if e.agent_id == name}
        for way, episodes in (await read_every_way(either, name, None)).items():
            assert {e.id for e in episodes} == own, way
        assert {s.agent_id for s in await either.sessions(name)} == {name}
    assert {a.agent_id: (a.episodes, a.sessions) for a in await either.agents()} == dict.fromkeys(names, (2, 2))


async def test_users_of_similar_names_are_different_users(either: EpisodicLog) -> None:
    """A user's filter finds that user's episodes only; without a user an episode is nobody's."""
    names = [*NAMES, *LONG, None]
    drafts = [
        Draft("a", f"s{n}", "user", f"refund {n} {place_}", user_id=name)
        for place_, name in enumerate(names)
        for n in range(2)
    ]
    recorded = await either.record_many(drafts)
    for name in names[:-1]:
        own = {e.id for e in recorded if e.user_id == name}
        for way, episodes in (await read_every_way(either, "a", Filter(user_id=name))).items():
            assert {e.id for e in episodes} == own, way


async def test_sessions_of_similar_names_are_different_sessions(either: EpisodicLog) -> None:
    """A session is found by its exact name."""
    recorded = await either.record_many([Draft("a", name, "user", f"refund {n}") for n, name in enumerate(NAMES)])
    for name, episode in zip(NAMES, recorded, strict=True):
        assert await all_of(either.replay(name)) == [episode]
        assert await either.around(episode.id) == [episode]
        found = await either.search("a", "refund", 99, Filter(session_id=name))
        assert [hit.episode for hit in found.hits] == [episode]
        assert [s.session_id for s in await either.sessions("a", Filter(session_id=name))] == [name]


QUERIES = ["refund", "order ORD-1234", "secret", "u2", "s0", "zebra", "the", "...", "", "u2's refund", "a" * 9_000]


@pytest.mark.parametrize("shared", [False, True])
async def test_a_users_search_never_shows_another_users_episode(either: EpisodicLog, *, shared: bool) -> None:
    """Whatever is asked, by words, by recency or by id, and also in a session that two users share."""
    for n, user in product(range(10), ["u1", "u2", None]):
        session_id = "s0" if shared else f"s{user}"
        secret = "mine" if user == "u1" else "secret"
        await either.record("a", session_id, "user", f"refund {n} {secret} ORD-1234", user_id=user, author=user)
    where = Filter(user_id="u1")
    for query in QUERIES:
        found = await either.search("a", query, 100, where)
        context = await either.recall_context("a", query, 100, where)
        seen = [hit.episode for hit in found.hits] + [item.episode for item in context.items]
        assert {e.user_id for e in seen} <= {"u1"}
        assert len(context.items) == 10
        assert "secret" not in context.render(10_000)
    for episode in await all_of(either.scan()):
        if episode.user_id == "u1":
            assert {e.user_id for e in await either.around(episode.id, 50, 50, where=where)} == {"u1"}
        else:
            for call in (either.get, either.around):
                with pytest.raises(NotFoundError):
                    await call(episode.id, where=where)


OTHERS: dict[str, Callable[[int], Draft]] = {
    "user": lambda n: Draft("a", "theirs", "user", f"refund order late charged {n}", user_id="other"),
    "nobody": lambda n: Draft("a", "theirs", "user", f"refund order late charged {n}"),
    "agent": lambda n: Draft("b", "mine", "user", f"refund order late charged {n}", user_id="me"),
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("order", ["before", "after"])
async def test_ones_own_top_k_is_full_whoever_matches_better(either: EpisodicLog, others: str, order: str) -> None:
    """A thousand better matches of another user or agent take no place of one's own ten."""
    theirs = [OTHERS[others](n) for n in range(1_000)]
    mine = [Draft("a", "mine", "user", f"my refund {n}", user_id="me") for n in range(12)]
    await either.record_many(theirs + mine if order == "after" else mine + theirs)
    found = await either.search("a", "refund of the late order charged", 10, Filter(user_id="me"))
    assert [hit.episode.user_id for hit in found.hits] == ["me"] * 10
    context = await either.recall_context("a", "refund of the late order charged", 10, Filter(user_id="me"))
    assert [item.episode.user_id for item in context.items] == ["me"] * 10


NARROW: list[tuple[Filter, dict[str, Any]]] = [
    (Filter(session_id="mine"), {}),
    (Filter(roles=["tool"]), {"role": "tool"}),
    (Filter(outcome="success"), {"outcome": "success"}),
    (Filter(metadata={"order": "ORD-1"}), {"metadata": {"order": "ORD-1"}}),
]


@pytest.mark.parametrize(("where", "extra"), NARROW, ids=str)
async def test_a_narrow_filter_is_full_whoever_matches_better(
    either: EpisodicLog, where: Filter, extra: dict[str, Any]
) -> None:
    """The same for every other field of a filter: a thousand better matches outside it take no place inside."""
    await either.record_many(
        Draft("a", "mine", extra.get("role", "user"), f"my refund {n}",
              outcome=extra.get("outcome"), metadata=extra.get("metadata"))
        for n in range(12)
    )  # fmt: skip
    await either.record_many(Draft("a", "theirs", "user", f"refund order late charged {n}") for n in range(1_000))
    found = await either.search("a", "refund of the late order charged", 10, where)
    assert [hit.episode.session_id for hit in found.hits] == ["mine"] * 10


@pytest.mark.parametrize("field", ["agent_id", "user_id"])
async def test_names_that_the_index_cannot_tell_apart_take_no_place_either(either: EpisodicLog, field: str) -> None:
    """Of names alike for longer than the index keeps a word, each still has its own full top k."""
    for name, content in zip(LONG, ["my refund", "refund order late charged"], strict=True):
        scope = {"agent_id": "a", "user_id": None} | {field: name}
        await either.record_many(
            Draft(scope["agent_id"] or "", "s", "user", f"{content} {n}", user_id=scope["user_id"]) for n in range(12)
        )
    agent_id, where = (LONG[0], None) if field == "agent_id" else ("a", Filter(user_id=LONG[0]))
    found = await either.search(agent_id, "refund of the late order charged", 10, where)
    assert len(found.hits) == 10
    assert all(hit.episode.content.startswith("my refund") for hit in found.hits)


async def test_the_rarity_of_a_word_is_that_in_its_scope(either: EpisodicLog) -> None:
    """What other users talk about changes neither the order nor the scores of one's own results."""
    contents = ["refund late", "order late", "refund order", "late late", "order", "thanks", "hello", "bye", "ok"]
    await either.record_many([Draft("a", "s", "user", content, user_id="me") for content in contents])
    where = Filter(user_id="me")
    before = await either.search("a", "refund order late", 10, where)
    await either.record_many([Draft("a", "t", "user", "refund", user_id="other")] * 500)
    await either.record_many([Draft("b", "t", "user", "late", user_id="me")] * 500)
    assert await either.search("a", "refund order late", 10, where) == before


@pytest.mark.slow
async def test_fifty_thousand_episodes_of_other_agents_change_no_ranking(log: EpisodicLog) -> None:
    """An agent's answers keep their ids, order and scores, also while the others' come in and are merged."""
    await log.record_many([replace(draft, agent_id="a") for draft in corpus.episodes(1, 3_000)])
    queries = [draft.content for draft in corpus.episodes(2, 25)]
    before = [await log.search("a", query, 20) for query in queries]
    users = [hit.episode.user_id for found in before for hit in found.hits[:1]]
    narrowed = [await log.search("a", query, 20, Filter(user_id=users[0])) for query in queries]
    others = corpus.episodes(3, 50_000)
    while chunk := list(islice(others, 5_000)):
        await log.record_many([replace(draft, agent_id=f"b{number % 7}") for number, draft in enumerate(chunk)])
    assert [await log.search("a", query, 20) for query in queries] == before
    assert [await log.search("a", query, 20, Filter(user_id=users[0])) for query in queries] == narrowed
    assert all(found.hits for found in before)


class TestMatchString:
    """The one place that builds a MATCH string."""

    @pytest.mark.parametrize(
        "word", ['"', '""', 'a" OR "b', "a) OR (b", "scope : x", "*", "^a", "a NEAR b", "-", "{x}"]
    )
    async def test_no_word_leaves_its_quotes(self, path: Path, word: str) -> None:
        """Whatever is looked for stays one phrase in the columns of text, within the agent's scope."""
        async with EpisodicLog.open(path) as log:
            await log.record("a", "s", "user", "hello x b")
            await log.record("b", "s", "user", f"a b x {word}")
        readers = await SqliteReaders.open(place(path, read_only=True), Settings(readers=1))
        async with readers.borrow() as reader:
            for agent_id, other in (("a", 2), ("b", 1)):
                scope = Scope(agent_id, None)
                _, span, _ = await reader.survey(scope, [word], near=9, counted=9)
                [ids] = await reader.postings(scope, [Lookup(word, 9)], span, most=9, bound=9)
                assert other not in ids
        await readers.aclose()

    def test_names_are_no_part_of_the_syntax(self) -> None:
        """A user stands as one word of letters and digits, different for each name."""
        strings = {match(user, "x") for user in NAMES}
        assert len(strings) == len(NAMES)
        assert all(string.isascii() and string.count('"') == 4 for string in strings)


@pytest.mark.parametrize("agent_id", [None, 7, b"a"])
async def test_no_agent_is_not_every_agent(either: EpisodicLog, agent_id: Any) -> None:  # noqa: ANN401
    """An agent that is missing from somebody's settings must not open everybody's log."""
    await either.record("a", "s", "user", "a secret")
    calls: list[Awaitable[object]] = [
        either.search(agent_id, "secret"),
        either.recent(agent_id),
        either.recall_context(agent_id, "secret"),
        either.sessions(agent_id),
    ]
    for call in calls:
        with pytest.raises(FilterError, match="agent_id must be text"):
            await call


async def test_a_shared_session_does_not_name_the_other_user(either: EpisodicLog) -> None:
    """A user's sessions are theirs, also where somebody else spoke first."""
    await either.record("a", "s", "user", "hello", user_id="alice")
    await either.record("a", "s", "user", "hello", user_id="bob")
    [session] = await either.sessions("a", Filter(user_id="bob"))
    assert session.user_id == "bob"
