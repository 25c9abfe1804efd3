"""The command that shows a log at work."""

from __future__ import annotations

from pathlib import Path

import click

from episodic.faces.cli.exits import OK
from episodic.faces.cli.options import Number, awaited, command

__all__ = ["demo"]


@command("demo")
@click.option("--seconds", metavar="X", type=Number(min=0.1), default=15, show_default=True, help="How long they talk.")
@click.option(
    "--conversations",
    "count",
    metavar="N",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="How many conversations are held at once.",
)
@click.option("--keep", type=click.Path(path_type=Path), help="Write the log to this new file and keep it.")
@click.option("--json", "as_json", is_flag=True, help="Write the figures as one line of JSON.")
@awaited
async def demo(*, seconds: float, count: int, keep: Path | None, as_json: bool) -> int:
    """Let a synthetic support desk show how quick a log is.

    Hundreds of customers talk at once. Each turn is recorded and waited for; meanwhile others recall what a model
    would be told.
    """
    # Here, since the corpus takes a moment that other commands need not wait for.
    from episodic.faces.cli import desk

    await desk.show(seconds, count, keep, as_json=as_json)
    return OK
