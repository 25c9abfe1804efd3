-- The way out, made anew on the writer's connection. Each INSERT into one of these views is one transaction, as in
-- append.sql.

-- Takes episodes out of every answer. ids: a JSON array of ids that are in the log and not withdrawn yet.
CREATE TEMP VIEW withdrawal AS SELECT NULL AS ids WHERE 0;

CREATE TEMP TRIGGER withdraw INSTEAD OF INSERT ON withdrawal
BEGIN
    INSERT INTO leaving (id) SELECT value FROM json_each(NEW.ids);
    UPDATE removal_state SET unclean = 1 WHERE unclean = 0 AND EXISTS (SELECT 1 FROM leaving);

    -- A later event with the same id is another one.
    UPDATE episodes SET event_id = NULL
    WHERE id IN (SELECT value FROM json_each(NEW.ids)) AND event_id IS NOT NULL;

    UPDATE agents SET episodes = episodes - gone.n
    FROM (
        SELECT e.agent_id, count(*) AS n
        FROM json_each(NEW.ids) AS line CROSS JOIN episodes AS e ON e.id = line.value
        GROUP BY e.agent_id
    ) AS gone
    WHERE agents.agent_id = gone.agent_id;

    -- What is left of each session lies between its first and its last time. It is about the user of the lowest id that
    -- has one, which stays unless an episode of that user goes.
    UPDATE sessions SET
        episodes = sessions.episodes - gone.n,
        first = coalesce((
            SELECT e.timestamp FROM episodes AS e INDEXED BY episodes_by_session
            WHERE e.session_id = sessions.session_id AND e.agent_id = sessions.agent_id
              AND e.timestamp >= sessions.first AND e.id NOT IN (SELECT id FROM leaving)
            ORDER BY e.timestamp LIMIT 1
        ), first),
        last = coalesce((
            SELECT e.timestamp FROM episodes AS e INDEXED BY episodes_by_session
            WHERE e.session_id = sessions.session_id AND e.agent_id = sessions.agent_id
              AND e.timestamp <= sessions.last AND e.id NOT IN (SELECT id FROM leaving)
            ORDER BY e.timestamp DESC LIMIT 1
        ), last),
        user_id = CASE WHEN instr(gone.users, json_quote(sessions.user_id)) THEN (
            SELECT e.user_id FROM episodes AS e INDEXED BY episodes_by_session
            WHERE e.session_id = sessions.session_id AND e.agent_id = sessions.agent_id
              AND e.user_id IS NOT NULL AND e.id NOT IN (SELECT id FROM leaving)
            ORDER BY e.id LIMIT 1
        ) ELSE user_id END
    FROM (
        SELECT e.agent_id, e.session_id, count(*) AS n, json_group_array(DISTINCT e.user_id) AS users
        FROM json_each(NEW.ids) AS line CROSS JOIN episodes AS e ON e.id = line.value
        GROUP BY e.agent_id, e.session_id
    ) AS gone
    WHERE sessions.agent_id = gone.agent_id AND sessions.session_id = gone.session_id;

    DELETE FROM sessions
    WHERE episodes = 0 AND (agent_id, session_id) IN (
        SELECT e.agent_id, e.session_id
        FROM json_each(NEW.ids) AS line CROSS JOIN episodes AS e ON e.id = line.value
    );
END;

-- Removes the withdrawn episodes up to an id, of which there are n.
CREATE TEMP VIEW removal AS SELECT NULL AS upto, NULL AS n WHERE 0;

-- What must happen to them beside their own table; see indexing.sql.
CREATE TEMP VIEW removed AS SELECT NULL AS upto WHERE 0;

CREATE TEMP TRIGGER remove_withdrawn INSTEAD OF INSERT ON removal
BEGIN
    INSERT INTO removed (upto) VALUES (NEW.upto);
    DELETE FROM episodes WHERE id IN (SELECT id FROM leaving WHERE id <= NEW.upto);
    DELETE FROM leaving WHERE id <= NEW.upto;

    -- The last one is gone: so may be the last one of an agent, whose name needs not stay.
    DELETE FROM agents
    WHERE NOT EXISTS (SELECT 1 FROM leaving) AND episodes = 0
      AND NOT EXISTS (SELECT 1 FROM episodes AS e INDEXED BY episodes_by_agent WHERE e.agent_id = agents.agent_id);
    UPDATE removal_state SET ended = ended + 1 WHERE NOT EXISTS (SELECT 1 FROM leaving);
END;
