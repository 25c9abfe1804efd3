-- The full-text index: made where SQLite has FTS5, and left alone where it has not.

-- What the index sees of an episode, and at which place: each agent's episodes lie together, in the order of their ids, so
-- that a search reads those of its agent and no others. The user is a word of its own column; hexadecimal keeps any name
-- one word, and the digit at its end keeps the stemmer off it.
CREATE VIEW IF NOT EXISTS episodes_indexed AS
SELECT
    (a.number << 36) | e.id AS place,
    e.id,
    CASE WHEN e.user_id IS NOT NULL THEN 'u' || hex(e.user_id) || '0' END AS user,
    CASE WHEN e.folded IS NULL THEN e.author END AS author,
    coalesce(e.folded, e.content) AS content
FROM episodes AS e CROSS JOIN agents AS a ON a.agent_id = e.agent_id;

CREATE VIRTUAL TABLE IF NOT EXISTS episodes_fts USING fts5 (
    user,
    author,
    content,
    content = 'episodes_indexed',
    content_rowid = 'place',
    tokenize = 'porter unicode61 categories ''L* N* Co M*'''
);

-- Segments of a level are merged once there are 16 of them: a sixth faster to write than the default of 4, and a
-- search still reads a few dozen segments at the most. Once nobody writes, already two are merged, after which a search
-- in a million episodes takes half of the time that it takes with 20 segments.
INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('automerge', 16);
INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('usermerge', 2);
