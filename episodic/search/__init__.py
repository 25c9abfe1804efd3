"""The search engine above the index: words, plan, ranking. Pure functions; no I/O."""
