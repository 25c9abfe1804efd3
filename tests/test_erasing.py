"""An erasure leaves no byte of what it erased in any file of the log, and says so only when it has looked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from episodic import Draft, EpisodicLog, Filter, FilterError
from episodic.maintenance import back_up, diagnose, vacuum
from tests.conftest import Runner, Sql, until
from tests.test_healing import intact
from tests.test_removing import withdraw

# Words that stand nowhere else; the stem of a word is in the search index in lower case.
SECRETS = [
    "zyxwvutmarmalade",
    "xylophonequartz",
    "querelaquondam",
    "kumquatvertigo",
    "jacarandaoboe",
    "user-4711-bibliophile",
]


def secret(n: int) -> Draft:
    """Make an episode of the user to be erased, with a secret in each field that can hold a text."""
    content, author, key, value, event, user = SECRETS
    return Draft(
        "a", f"s{n % 3}", "user", f"{content} {n} " + "and more " * (n % 40) * 20, user_id=user, author=author,
        metadata={key: value, "n": n}, event_id=f"{event}-{n}",
    )  # fmt: skip


async def fill(log: EpisodicLog) -> None:
    """Record the user's episodes among others of the same sessions."""
    for n in range(120):
        await log.record_many([secret(n), Draft("a", f"s{n % 3}", "assistant", f"refund {n}", user_id="another")])


def found_in(folder: Path) -> dict[str, list[str]]:
    """Look for the secrets in the bytes of every file of a folder."""
    seen = {
        file.name: [word for word in SECRETS if word.encode() in file.read_bytes().lower()] for file in folder.iterdir()
    }
    return {name: words for name, words in seen.items() if words}


async def test_nothing_of_an_erased_user_is_left_in_any_file(path: Path) -> None:
    """Not in rows, index, free pages or the write-ahead log, while the log is open and after; others are untouched."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
        assert found_in(path.parent)
        others = await log.search("a", "refund 7", 300, Filter(user_id="another"))
        receipt = await log.erase(user_id=SECRETS[-1])
        assert found_in(path.parent) == {}
        assert (receipt.state, receipt.episodes, receipt.sessions, receipt.reason) == ("done", 120, 3, None)
        assert receipt.looked_at >= path.stat().st_size > 0
        assert 60 < receipt.looked_for <= 64
        assert await log.search("a", "refund 7", 300, Filter(user_id="another")) == others
        assert (await log.erase(user_id=SECRETS[-1])).episodes == 0
        await log.record("a", "s", "user", "and on")
    assert found_in(path.parent) == {}
    assert intact(path)


async def test_a_dry_run_counts_and_changes_nothing(path: Path) -> None:
    """It says what would be erased; the file stays byte for byte."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
    before = path.read_bytes()
    async with EpisodicLog.open(path, read_only=True) as log:
        receipt = await log.erase(user_id=SECRETS[-1], dry_run=True)
    assert (receipt.state, receipt.episodes, receipt.sessions) == ("counted", 120, 3)
    assert str(receipt) == "120 episodes of 3 sessions would be erased; nothing was changed."
    assert path.read_bytes() == before


async def test_a_receipt_names_what_it_cannot_reach(path: Path, tmp_path: Path) -> None:
    """A backup made before still holds everything, and the receipt's text says that such copies are not reached."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
        (tmp_path / "backups").mkdir()
        await back_up(path, tmp_path / "backups" / "copy.db")
        receipt = await log.erase(session_id="s1")
        assert receipt.state == "done"
        for word in ("backups", "exports", "replicas"):
            assert word in str(receipt)
        assert f"{receipt.looked_at:,} bytes" in str(receipt)
    assert found_in(tmp_path / "backups")


async def test_a_reader_that_keeps_to_an_earlier_state_makes_it_pending(path: Path) -> None:
    """The episodes are gone from every answer at once; once the reader has ended, erasing again is done."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM episodes").fetchone() == (240,)
            receipt = await log.erase(user_id=SECRETS[-1])
            assert receipt.state == "pending"
            assert receipt.episodes == 120
            assert receipt.reason is not None
            assert "a reader or another writer keeps to an earlier state of the log" in receipt.reason
            assert "Erase once more" in str(receipt)
            assert (await log.search("a", SECRETS[0], 99)).hits == ()
            assert reader.execute("SELECT count(*) FROM episodes").fetchone() == (240,)
        assert [one.text for one in await diagnose(path) if one.name == "removed"] == [
            "bytes of removed episodes may still be in the file; an erasure or `episodic vacuum` takes them out"
        ]
        again = await log.erase(user_id=SECRETS[-1])
        assert (again.state, again.episodes, again.looked_for) == ("done", 0, 1)
        assert again.looked_at > 0
        assert found_in(path.parent) == {}


async def test_a_text_that_others_hold_too_is_told(path: Path) -> None:
    """What an erased episode said and another one says as well stays there, and the receipt says so."""
    async with EpisodicLog.open(path) as log:
        await log.record("a", "s1", "user", "the very same words", user_id="u-to-erase")
        await log.record("a", "s2", "user", "the very same words", user_id="another")
        receipt = await log.erase(user_id="u-to-erase")
        assert (receipt.state, receipt.held) == ("done", 1)
        assert "Of 2 erased texts 1 stand among all" in str(receipt)
        assert "where what was not erased holds them, too" in str(receipt)


async def test_a_removal_that_ends_after_the_rewriting_keeps_the_log_unclean(path: Path, sql: Sql) -> None:
    """Whoever has rewritten the file notes it as clean only if no removal has ended since."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
        await log.retain(older_than=timedelta(), where=Filter(session_id="s1"))
        store = log._removing().store  # noqa: SLF001 - no public call can be stopped between the two
        ended = await store.purge()
        await log.retain(older_than=timedelta(), where=Filter(session_id="s2"))
        await store.note_clean(ended)
        assert sql("SELECT unclean FROM removal_state") == [(1,)]
        await store.note_clean(await store.purge())
        assert sql("SELECT unclean FROM removal_state") == [(0,)]


async def test_what_the_schema_or_the_index_says_does_not_keep_an_erasure_pending(path: Path) -> None:
    """A word that others write with a capital stands in the index in lower case, and SQL in the schema."""
    async with EpisodicLog.open(path) as log:
        await log.record("a", "s1", "user", "refunds", user_id="u-to-erase")
        await log.record("a", "s1", "user", "CREATE TABLE episodes", user_id="u-to-erase")
        await log.record("a", "s2", "user", "REFUNDS", user_id="another")
        receipt = await log.erase(user_id="u-to-erase")
        assert receipt.state == "done"
        assert receipt.looked_for == 3
        assert receipt.held >= 1


async def test_an_erasure_that_was_killed_in_the_middle_is_made_good_by_the_next(path: Path) -> None:
    """Bytes that an earlier erasure or retention has left go with the next one, whatever its own scope."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
    await withdraw(path, range(1, 240, 2))
    async with EpisodicLog.open(path) as log:
        receipt = await log.erase(user_id="nobody")
        assert (receipt.state, receipt.episodes) == ("done", 0)
        assert found_in(path.parent) == {}


async def test_a_vacuum_takes_out_what_a_retention_has_left(path: Path, sql: Sql) -> None:
    """After it the log is clean, and an erasure of nothing has nothing to do."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
    await withdraw(path, range(1, 240, 2))
    async with EpisodicLog.open(path):
        await until(lambda: sql("SELECT count(*) FROM leaving") == [(0,)])
    assert (await vacuum(path)).is_folded
    assert sql("SELECT unclean FROM removal_state") == [(0,)]
    assert found_in(path.parent) == {}


async def test_an_index_that_this_build_cannot_change_makes_it_pending(
    path: Path, request: pytest.FixtureRequest
) -> None:
    """Without FTS5 the words of an erased episode stay in the index, and an open with FTS5 takes them out."""
    async with EpisodicLog.open(path) as log:
        await fill(log)
    with_fts5 = request.getfixturevalue("without_fts5")
    async with EpisodicLog.open(path) as log:
        receipt = await log.erase(user_id=SECRETS[-1])
        assert (receipt.state, receipt.episodes) == ("pending", 120)
        assert receipt.reason is not None
        assert "it has no FTS5" in receipt.reason
        assert (await log.search("a", SECRETS[0], 99)).hits == ()
    with_fts5()
    async with EpisodicLog.open(path) as log:
        assert (await log.erase(user_id=SECRETS[-1])).state == "done"
    assert found_in(path.parent) == {}
    assert intact(path)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "an erasure of everything was asked for"),
    ({"where": Filter()}, "an erasure of everything was asked for"),
    ({"user_id": "u", "where": Filter(user_id="v")}, "the filter's user_id 'v' is not 'u'"),
    ({"session_id": "s", "where": Filter(session_id="t")}, "the filter's session_id 't' is not 's'"),
    ({"user_id": 7}, "user_id"),
    ({"session_id": b"s"}, "session_id"),
    ({"agent_id": "\ud800"}, "agent_id"),
    ({"where": {"user_id": "u"}}, "where"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
async def test_an_erasure_that_is_not_clear_erases_nothing(
    log: EpisodicLog, arguments: dict[str, Any], message: str
) -> None:
    """What cannot be compared, contradicts itself or is narrowed by nothing is refused, also as a dry run."""
    await log.record("a", "s", "user", "x", user_id="u")
    for dry_run in (False, True):
        with pytest.raises(FilterError, match=message):
            await log.erase(**arguments, dry_run=dry_run)
    assert len(await log.recent("a")) == 1


async def test_the_command_line_erases_and_prints_the_receipt(run: Runner) -> None:
    """A dry run counts and changes nothing; the receipt says what was checked; a pending one is exit code 3."""
    async with EpisodicLog.open(run.db) as log:
        await fill(log)
    before = run.db.read_bytes()
    dry = run("erase", "--user", SECRETS[-1], "--dry-run")
    assert dry.stdout == "120 episodes of 3 sessions would be erased; nothing was changed.\n"
    assert run.db.read_bytes() == before
    with closing(sqlite3.connect(run.db)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM episodes").fetchone()
        pending = run("erase", "--user", SECRETS[-1], "--json")
    assert pending.returncode == 3
    assert orjson.loads(pending.stdout)["state"] == "pending"
    done = run("erase", "--user", SECRETS[-1])
    assert done.returncode == 0
    nothing = run("erase", "--user", "a mistyped name")
    assert nothing.returncode == 1
    assert nothing.stdout.startswith("Done: 0 episodes of 0 sessions are in this scope")
    assert run("erase", "--user", "a mistyped name", "--dry-run").returncode == 1
    assert done.stdout.startswith("Done: 0 episodes of 0 sessions are erased.")
    assert found_in(run.folder) == {}


def test_the_command_line_refuses_to_erase_everything(run: Runner) -> None:
    """Without anything that narrows it, and without a log, it is one line and no file."""
    for arguments in (("erase",), ("erase", "--user", "u"), ("retain", "--older-than", "1d"), ("retain",)):
        refused = run(*arguments)
        assert refused.returncode in {2, 3}
        assert len(refused.stderr.splitlines()) >= 1
        assert "Traceback" not in refused.stderr
    assert not run.db.exists()


async def test_the_command_line_retains(run: Runner) -> None:
    """What is older goes, in a dry run only in words; a terminal sees how far it has come."""
    async with EpisodicLog.open(run.db) as log:
        await fill(log)
    assert run("retain", "--older-than", "7d").stdout.startswith("removed 0 episodes from before ")
    assert run("retain", "--older-than", "0s", "--user", "another", "--dry-run").stdout.startswith("would remove 120 ")
    kept = orjson.loads(run("retain", "--older-than", "0s", "--user", "another", "--json").stdout)
    assert (kept["episodes"], kept["dry_run"]) == (120, False)
    assert orjson.loads(run("stats", "--json").stdout.splitlines()[0])["episodes"] == 120
