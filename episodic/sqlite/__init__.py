"""The SQLite engine: every statement, every connection, every error of SQLite."""
