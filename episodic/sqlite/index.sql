-- The full-text index: made where SQLite has FTS5, and left alone where it has not.

-- What the index sees of an episode. Agent and user are words of their own column, so that a search stays inside its
-- scope from the start; hexadecimal keeps any name one word, and the digit at its end keeps the stemmer off it.
CREATE VIEW IF NOT EXISTS episodes_indexed AS
SELECT
    id,
    'a' || hex(agent_id) || '0' || coalesce(' u' || hex(agent_id) || 'x' || hex(user_id) || '0', '') AS scope,
    CASE WHEN folded IS NULL THEN author END AS author,
    coalesce(folded, content) AS content
FROM episodes;

CREATE VIRTUAL TABLE IF NOT EXISTS episodes_fts USING fts5 (
    scope,
    author,
    content,
    content = 'episodes_indexed',
    content_rowid = 'id',
    tokenize = 'porter unicode61 categories ''L* N* Co M*'''
);

-- Segments of a level are merged once there are 16 of them: a sixth faster to write than the default of 4, and a
-- search still reads a few dozen segments at the most.
INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('automerge', 16);
