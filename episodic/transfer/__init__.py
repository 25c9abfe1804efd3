"""Import and export: files of several formats into a log, and a log into a file."""

from episodic.transfer.exporting import export_file
from episodic.transfer.importing import import_file
from episodic.transfer.progress import OnProgress, Progress
from episodic.transfer.source import Format

__all__ = ["Format", "OnProgress", "Progress", "export_file", "import_file"]
