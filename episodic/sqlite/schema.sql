-- Version 1 of the schema. Times are microseconds since 1970 in UTC.

CREATE TABLE episodes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id   TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    user_id    TEXT,
    author     TEXT,
    timestamp  INTEGER NOT NULL,
    role       TEXT    NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    content    TEXT    NOT NULL,
    outcome    TEXT    CHECK (outcome IN ('success', 'failure', 'partial')),
    metadata   TEXT    NOT NULL,
    event_id   TEXT,
    archived   INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1)),
    -- What the index sees instead of author and content, where that is not the same: words of one form for all spellings.
    folded     TEXT
);

-- Each index ends in the rowid, so that ties of time are in the order of ids in every one.
CREATE INDEX episodes_by_agent ON episodes (agent_id, timestamp);

-- With what a search asks of the turns around a hit, so that these need not be read.
CREATE INDEX episodes_by_session ON episodes (session_id, timestamp, id, agent_id, user_id);

CREATE INDEX episodes_by_user ON episodes (agent_id, user_id, timestamp) WHERE user_id IS NOT NULL;

CREATE UNIQUE INDEX episodes_by_event ON episodes (agent_id, event_id) WHERE event_id IS NOT NULL;

-- Rolled up with each batch. Sessions are listed through episodes_by_agent and episodes_by_user, newest episode first:
-- an index on `last` would have to move at every write and costs a tenth of the rate.
CREATE TABLE sessions (
    agent_id   TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    user_id    TEXT,
    first      INTEGER NOT NULL,
    last       INTEGER NOT NULL,
    episodes   INTEGER NOT NULL,
    outcome    TEXT    CHECK (outcome IN ('success', 'failure', 'partial')),
    PRIMARY KEY (agent_id, session_id)
) WITHOUT ROWID;

-- An agent's number is the upper part of its episodes' ids in the index of words; see index.sql.
CREATE TABLE agents (
    number   INTEGER PRIMARY KEY CHECK (number < 1 << 27),
    agent_id TEXT    NOT NULL UNIQUE,
    episodes INTEGER NOT NULL
);

-- One row: the id of the next episode, whichever process writes it; the latest time that the log itself gave; the number of
-- the writer that was the last to append; and how many episodes a build without FTS5 has left out of the index.
CREATE TABLE log_state (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    next_id   INTEGER NOT NULL,
    clock     INTEGER NOT NULL,
    writer    INTEGER NOT NULL,
    unindexed INTEGER NOT NULL
);

INSERT INTO log_state (one, next_id, clock, writer, unindexed) VALUES (1, 1, 0, 0, 0);
