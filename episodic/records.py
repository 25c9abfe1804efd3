"""Making a frozen record as quickly as one that is not frozen.

A frozen dataclass sets each field through `object.__setattr__`, which takes five times as long as an assignment, and a
log makes two records for each episode it writes and one for each that it reads. So these are made as instances of a
twin with the same slots, and become the record by changing their class, which CPython allows between equal layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from typing import ParamSpec, TypeVar, cast

__all__ = ["quick"]

P = ParamSpec("P")
RecordT = TypeVar("RecordT")


def quick(record: Callable[P, RecordT]) -> Callable[P, RecordT]:
    """Return a constructor of a frozen, slotted dataclass with its arguments, checks and defaults, only quicker.

    Args:
        record: the dataclass.
    """
    checks = getattr(record, "__post_init__", None)

    def become(self: object) -> None:
        self.__class__ = record  # type: ignore[assignment]
        if checks is not None:
            checks(self)

    # `fields` wants a class, which to a type checker a constructor is not.
    described = [(field.name, field.type, field) for field in fields(cast("type[object]", record))]  # type: ignore[arg-type]
    twin = make_dataclass("Twin", described, slots=True, namespace={"__post_init__": become})
    return cast("Callable[P, RecordT]", twin)
