"""The names and signatures that may not change silently; their types are pinned in typing_api.py."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass
from types import ModuleType
from typing import Any

import pytest

import episodic
from episodic import (
    AgentSummary,
    BusyError,
    ConflictError,
    Context,
    ContextItem,
    Draft,
    Episode,
    EpisodicError,
    EpisodicLog,
    Erasure,
    Filter,
    Hit,
    Reasons,
    SearchResult,
    Session,
    Settings,
    Term,
    errors,
)
from episodic.events import BatchCommitted, Checkpointed, IndexHealed, QueueFull, SlowBatch, WalGrown
from episodic.transfer.item import BadLineError

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(episodic.__path__, "episodic.")
    # A face or an adapter needs a library of its own, and running `__main__` is running the program.
    if module.name.split(".")[1] not in {"__main__", "adapters", "faces"}
)

SIGNATURES: dict[Callable[..., Any], str] = {
    EpisodicLog.open: "(path, *, settings=None, read_only=False, on_event=None)",
    EpisodicLog.record: (
        "(self, agent_id, session_id, role, content, *, user_id=None, author=None, outcome=None, metadata=None, "
        "timestamp=None, event_id=None)"
    ),
    EpisodicLog.record_many: "(self, drafts)",
    EpisodicLog.resolve: "(self, agent_id, session_id, outcome)",
    EpisodicLog.replay: "(self, session_id, *, agent_id=None, where=None, after=None)",
    EpisodicLog.scan: "(self, *, agent_id=None, where=None, after=0)",
    EpisodicLog.follow: "(self, after=None, *, agent_id=None, where=None)",
    EpisodicLog.recent: "(self, agent_id, limit=20, min_age_seconds=0, where=None, *, before=None)",
    EpisodicLog.search: "(self, agent_id, query, limit=10, where=None)",
    EpisodicLog.recall_context: "(self, agent_id, message, limit=5, where=None, *, prefer=None)",
    EpisodicLog.sessions: "(self, agent_id, where=None, limit=20)",
    EpisodicLog.resolved: "(self, *, agent_id=None, where=None, upto=None)",
    EpisodicLog.agents: "(self)",
    EpisodicLog.newest_id: "(self)",
    EpisodicLog.get: "(self, episode_id, *, where=None)",
    EpisodicLog.around: "(self, episode_id, before=2, after=2, *, where=None)",
    EpisodicLog.retain: "(self, *, older_than, agent_id=None, where=None, dry_run=False)",
    EpisodicLog.erase: "(self, *, user_id=None, session_id=None, agent_id=None, where=None, dry_run=False)",
    EpisodicLog.stats: "(self)",
    EpisodicLog.aclose: "(self)",
    Context.render: "(self, max_tokens, count_tokens=None)",
    Draft: (
        "(agent_id, session_id, role, content, *, user_id=None, author=None, outcome=None, metadata=None, "
        "timestamp=None, event_id=None)"
    ),
    Filter: (
        "(user_id=None, session_id=None, roles=None, outcome=None, since=None, until=None, metadata=None, "
        "archived=None)"
    ),
}

FIELDS = {
    Episode: "id agent_id session_id user_id author timestamp role content outcome metadata event_id archived",
    SearchResult: "hits mode words exhaustive terms total truncated",
    Hit: "episode score matched reasons",
    Reasons: "words nearby session factor author",
    Term: "word frequency is_bound weight use",
    Context: "items",
    ContextItem: "episode score relevance_rank recency_rank matched preferred",
    Session: "agent_id session_id user_id first last episodes outcome",
    AgentSummary: "agent_id episodes sessions first last",
    Erasure: "state episodes sessions reason looked_at looked_for held",
    BatchCommitted: "rows seconds queued_rows",
    SlowBatch: "rows seconds",
    QueueFull: "queued_rows queued_bytes",
    Checkpointed: "wal_bytes seconds",
    WalGrown: "wal_bytes",
    IndexHealed: "episodes",
}


def bare(signature: inspect.Signature) -> str:
    """Write a signature without its types, which mypy checks."""
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def test_all_names_what_the_package_offers() -> None:
    """`__all__` is sorted and holds each public name of the package, and no other."""
    offered = {name for name, value in vars(episodic).items() if not name.startswith("_") and not is_module(value)}
    assert episodic.__all__ == sorted(offered)


def is_module(value: object) -> bool:
    """Tell modules, which an import of one leaves behind in its package, from what is offered."""
    return isinstance(value, ModuleType)


@pytest.mark.parametrize("name", MODULES)
def test_each_module_has_the_names_that_it_lists(name: str) -> None:
    """The `__all__` of each module, where it has one, holds names that exist, each once."""
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", [])
    assert len(listed) == len(set(listed))
    assert [missing for missing in listed if not hasattr(module, missing)] == []


def test_each_error_is_public() -> None:
    """Whoever calls the log can catch whatever it raises, by a name of the package, or all by one base."""
    for name, error in vars(errors).items():
        if inspect.isclass(error) and error.__module__ == errors.__name__:
            assert issubclass(error, EpisodicError)
            assert getattr(episodic, name, None) is error


@pytest.mark.parametrize(("function", "expected"), SIGNATURES.items(), ids=lambda one: getattr(one, "__qualname__", ""))
def test_a_public_call_takes_its_arguments(function: Callable[..., Any], expected: str) -> None:
    """Names, order, defaults and what must be named are as they were promised."""
    assert bare(inspect.signature(function)) == expected


def test_each_public_method_of_the_log_is_pinned() -> None:
    """A new method gets its line in SIGNATURES."""
    public = {name for name in dir(EpisodicLog) if not name.startswith("_")}
    assert public == {function.__name__ for function in SIGNATURES if hasattr(EpisodicLog, function.__name__)}


@pytest.mark.parametrize(("record", "names"), FIELDS.items())
def test_a_record_has_its_fields(record: type, names: str) -> None:
    """Fields and their order are as they were promised."""
    assert [field.name for field in fields(record)] == names.split()


@pytest.mark.parametrize("record", [*FIELDS, Draft, Filter, Settings])
def test_a_record_is_frozen_and_has_no_dict(record: type) -> None:
    """What the log gives out is a value: it cannot be changed, and takes no other attributes."""
    assert is_dataclass(record)
    empty = object.__new__(record)
    with pytest.raises(FrozenInstanceError):
        setattr(empty, fields(record)[0].name, 1)
    assert not hasattr(empty, "__dict__")


@pytest.mark.parametrize(
    "error",
    [
        ConflictError("a", "msg-1", 7),
        ConflictError("a", "msg-1", None),
        BadLineError("line 3: no JSON", 3),
        BusyError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_goes_from_process_to_process(error: EpisodicError) -> None:
    """A pool of processes hands an error on as it was, with what it knows."""
    other = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))
