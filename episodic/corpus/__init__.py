"""A synthetic support desk: endless customers, conversations and episodes, the same ones for the same seed.

It fills a log with something worth searching: for a demonstration, for a load test, for a benchmark. Texts are drawn
from templates and skewed vocabularies, in eight languages; an order number that a customer gives is the one that the
tool finds and the assistant repeats. Nothing in it is about a real person.
"""

from __future__ import annotations

from episodic.corpus.desk import Conversation, conversations, episodes

__all__ = ["Conversation", "conversations", "episodes"]
