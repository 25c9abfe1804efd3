-- Version 2: removing. An episode that is to go is withdrawn first, which takes it out of every answer and every count at
-- once, and removed after that, a few at a time.

-- The withdrawn episodes, whose rows and words are still there.
CREATE TABLE leaving (id INTEGER PRIMARY KEY);

-- One row: how often a removal has ended, after which words are less frequent than before; and whether bytes of removed
-- episodes may still be in the file.
CREATE TABLE removal_state (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    ended   INTEGER NOT NULL,
    unclean INTEGER NOT NULL CHECK (unclean IN (0, 1))
);

INSERT INTO removal_state (one, ended, unclean) VALUES (1, 0, 0);
