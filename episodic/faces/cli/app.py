"""All commands under one name, and the one place where whatever ends them becomes a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from episodic.errors import DraftError, EpisodicError, FilterError, NotFoundError, QueryError, SettingsError
from episodic.faces.cli import evaluating, maintaining, moving, reading, removing, replaying
from episodic.faces.cli.demo import demo
from episodic.faces.cli.exits import INTERRUPTED, NOTHING, OK, UNUSABLE, USAGE, ExitCodes, NothingFoundError
from episodic.faces.cli.screen import note, prepare_streams
from episodic.faces.cli.version import version

__all__ = ["run"]


@click.group(invoke_without_command=True, epilog=ExitCodes)
@click.option("--version", "wants_version", is_flag=True, help="Show the version and exit.")
@click.pass_context
def episodic(context: click.Context, *, wants_version: bool) -> int:
    """Look into an episodic log: what a bot and its users said, when, and how it ended.

    Each command takes the log's file from --db or from EPISODIC_DB.
    """
    if wants_version:
        click.echo(f"episodic {version()}")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    return OK


for _command in (
    demo,
    moving.import_,
    moving.export,
    reading.sessions,
    replaying.replay,
    replaying.tail,
    reading.recent,
    reading.search,
    reading.recall,
    reading.stats,
    evaluating.eval_,
    removing.retain,
    removing.erase,
    maintaining.doctor,
    maintaining.backup,
    maintaining.restore,
    maintaining.vacuum,
):
    episodic.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; whatever goes wrong is one line on standard error."""
    prepare_streams()
    try:
        code = _outcome(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. What is still to be written must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        # At once: a thread that waits for standard input cannot be woken, and Python would wait for it.
        os._exit(INTERRUPTED)
    return code


def _outcome(arguments: Sequence[str] | None) -> int:
    # Not through click's own main, which would print a line for Ctrl-C and exit for a broken pipe.
    try:
        with episodic.make_context("episodic", list(sys.argv[1:] if arguments is None else arguments)) as context:
            return int(episodic.invoke(context) or OK)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except BrokenPipeError:
        raise
    except (click.ClickException, NothingFoundError, EpisodicError, OSError) as exc:
        note(_line(exc))
        return _code(exc)


def _line(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        said = error.format_message()
        return f"{said}{'' if said.endswith(('.', '?')) else '.'} See --help."
    if isinstance(error, OSError):
        return f"{error.filename or 'the output'}: {error.strerror or error}"
    return str(error)


def _code(error: Exception) -> int:
    match error:
        case NothingFoundError() | NotFoundError():
            return NOTHING
        # What the caller can put right on the command line.
        case click.ClickException() | DraftError() | FilterError() | QueryError() | SettingsError():
            return USAGE
        case _:
            return UNUSABLE
