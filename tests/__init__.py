"""The tests: real SQLite files, real processes; each named after the rule that it proves."""
