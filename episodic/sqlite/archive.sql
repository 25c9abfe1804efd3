-- Archiving, on the connection of a writer that has a `hot_cap`. Only the flag of an episode changes: the index of words
-- does not know it.

-- What is not archived, so that the newest are found however many are.
CREATE INDEX IF NOT EXISTS episodes_hot ON episodes (agent_id, timestamp) WHERE archived = 0;

-- How many episodes of each agent stay hot.
CREATE TEMP TABLE hot (cap INTEGER NOT NULL);

CREATE TEMP TRIGGER archive_surplus INSTEAD OF INSERT ON appended
BEGIN
    -- And some that a writer without the cap has left.
    INSERT INTO surplus (agent_id, most)
    SELECT agent_id, count(*) + 100 FROM episodes
    WHERE id BETWEEN NEW.first_id AND NEW.first_id + NEW.n - 1
    GROUP BY agent_id;
END;

-- Archives what an agent has beyond its newest hot ones, at most so many.
CREATE TEMP VIEW surplus AS SELECT NULL AS agent_id, NULL AS most WHERE 0;

CREATE TEMP TRIGGER archive INSTEAD OF INSERT ON surplus
BEGIN
    UPDATE episodes SET archived = 1
    WHERE id IN (
        SELECT id FROM episodes INDEXED BY episodes_hot
        WHERE agent_id = NEW.agent_id AND archived = 0
        ORDER BY timestamp DESC, id DESC
        LIMIT NEW.most OFFSET (SELECT cap FROM hot)
    );
END;
