"""What is left of erased texts in the bytes of a log's files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import anyio
import orjson
from anyio import to_thread

from episodic.errors import StorageError
from episodic.ports import Residue
from episodic.sqlite.connect import Place, translated, wal_of
from episodic.sqlite.copying import read_connection

__all__ = ["find_residue"]

PROGRAM = Path(__file__).with_name("scanning.py")

# Whether anything that stays holds a text: the index has its words in lower case, and the schema is text, too.
HELD = """
SELECT
    EXISTS (
        SELECT 1 FROM episodes
        WHERE instr(lower(content), lower(:text)) OR instr(metadata, :text) OR instr(agent_id, :text)
           OR instr(session_id, :text) OR instr(user_id, :text) OR instr(lower(author), lower(:text))
           OR instr(event_id, :text) OR instr(folded, :text)
    )
    OR EXISTS (SELECT 1 FROM sessions WHERE instr(user_id, :text))
    OR EXISTS (SELECT 1 FROM sqlite_schema WHERE instr(sql, :text))
"""


async def find_residue(where: Place, texts: Sequence[str]) -> Residue:
    """Look for texts, byte by byte, in a log's file and in the write-ahead log beside it.

    Args:
        where: the log.
        texts: what to look for.

    Returns:
        What was found, apart from what episodes that are still there hold as well.

    Raises:
        StorageError: the files could not be read.
    """
    files = [str(where.path), str(wal_of(where.path))]
    asked = orjson.dumps({"files": files, "needles": [text.encode().hex() for text in texts]})
    try:
        done = await anyio.run_process([sys.executable, "-I", str(PROGRAM)], input=asked)
    except (OSError, subprocess.CalledProcessError) as exc:
        msg = f"{where.path}: its bytes could not be looked at ({exc})"
        raise StorageError(msg) from exc
    answer = orjson.loads(done.stdout)
    found = [texts[place] for place in answer["found"]]
    held = await to_thread.run_sync(_held, where, found)
    return Residue(answer["bytes"], len(found) - held, held)


def _held(where: Place, texts: Sequence[str]) -> int:
    """Count the texts that something in the log holds."""
    with translated(where.path), closing(read_connection(where)) as db:
        return sum(db.execute(HELD, {"text": text}).fetchone()[0] for text in texts)
