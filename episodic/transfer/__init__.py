"""Import and export: files of several formats into a log, a log into a file, and questions to ask it."""

from episodic.transfer.exporting import export_file
from episodic.transfer.importing import import_file
from episodic.transfer.progress import OnProgress, Progress
from episodic.transfer.questions import Question, read_questions
from episodic.transfer.source import Format

__all__ = ["Format", "OnProgress", "Progress", "Question", "export_file", "import_file", "read_questions"]
