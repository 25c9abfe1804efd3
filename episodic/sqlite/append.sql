-- The write path, made anew on the writer's connection: one INSERT into a view is one batch and one transaction,
-- however many rows it holds. Python's sqlite3 gives up the GIL at each step of a statement and must win it back, so a
-- statement for each row would lose a factor of 100 beside a busy event loop.
--
-- doc: the rows, a JSON array of arrays in the order of codec.ROW_FIELDS; n: how many; first_id: the id that the writer
-- takes for free and the first row must get, or NULL for whichever is; clock: the latest time that the log gave to one of
-- them, or 0; has_events: whether one of them has an event id; writer: the number of this connection.

CREATE TEMP VIEW batch AS
SELECT NULL AS doc, NULL AS n, NULL AS first_id, NULL AS clock, NULL AS has_events, NULL AS writer WHERE 0;

-- What must happen to the episodes from first_id on beside their own table; see indexing.sql.
CREATE TEMP VIEW appended AS SELECT NULL AS first_id, NULL AS n WHERE 0;

CREATE TEMP TRIGGER append_batch INSTEAD OF INSERT ON batch
BEGIN
    -- Another process has written, or a batch before this one was refused. The number of the writer keeps a batch from
    -- overtaking the refused one before it when the other process wrote just as many rows.
    SELECT raise(ABORT, 'episodic: stale ids')
    FROM log_state
    WHERE NEW.first_id IS NOT NULL AND (NEW.first_id <> next_id OR NEW.writer <> writer);

    -- Materialized, or each `->>` would write the row's array out anew.
    INSERT INTO episodes
        (id, agent_id, session_id, user_id, author, timestamp, role, content, outcome, metadata, event_id, folded)
    WITH lines AS MATERIALIZED (SELECT key, value FROM json_each(NEW.doc))
    SELECT
        state.next_id + line.key, line.value ->> 0, line.value ->> 1, line.value ->> 2, line.value ->> 3,
        line.value ->> 4, line.value ->> 5, line.value ->> 6, line.value ->> 7, line.value ->> 8, line.value ->> 9,
        line.value ->> 11
    FROM log_state AS state CROSS JOIN lines AS line
    WHERE true
    ON CONFLICT (agent_id, event_id) WHERE event_id IS NOT NULL DO NOTHING;

    SELECT raise(ABORT, 'episodic: event conflict')
    FROM json_each(NEW.doc) AS line
    CROSS JOIN episodes AS e ON e.agent_id = line.value ->> 0 AND e.event_id = line.value ->> 9
    WHERE NEW.has_events
      AND NOT (
          e.session_id = line.value ->> 1 AND e.user_id IS line.value ->> 2 AND e.author IS line.value ->> 3
          AND (NOT line.value ->> 10 OR e.timestamp = line.value ->> 4) AND e.role = line.value ->> 5
          AND e.content = line.value ->> 6 AND e.outcome IS line.value ->> 7 AND e.metadata = line.value ->> 8
      );

    -- The user is that of the lowest id which has one.
    INSERT INTO sessions (agent_id, session_id, user_id, first, last, episodes)
    SELECT
        agent_id, session_id, substr(min(format('%019d', id) || user_id), 20),
        min(timestamp), max(timestamp), count(*)
    FROM episodes
    WHERE id BETWEEN (SELECT next_id FROM log_state) AND (SELECT next_id FROM log_state) + NEW.n - 1
    GROUP BY agent_id, session_id
    ON CONFLICT (agent_id, session_id) DO UPDATE SET
        user_id = coalesce(user_id, excluded.user_id),
        first = min(first, excluded.first),
        last = max(last, excluded.last),
        episodes = episodes + excluded.episodes;

    INSERT INTO agents (agent_id, episodes)
    SELECT agent_id, count(*)
    FROM episodes
    WHERE id BETWEEN (SELECT next_id FROM log_state) AND (SELECT next_id FROM log_state) + NEW.n - 1
    GROUP BY agent_id
    ON CONFLICT (agent_id) DO UPDATE SET episodes = episodes + excluded.episodes;

    INSERT INTO appended (first_id, n) SELECT next_id, NEW.n FROM log_state;

    UPDATE log_state SET next_id = next_id + NEW.n, clock = max(clock, NEW.clock), writer = NEW.writer;
END;
