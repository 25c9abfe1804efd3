-- Without FTS5 an episode is stored and not indexed, and removed without the index knowing; the next open with FTS5 heals it.

CREATE TEMP TRIGGER index_appended INSTEAD OF INSERT ON appended
BEGIN
    UPDATE log_state SET unindexed = unindexed + NEW.n;
END;

CREATE TEMP TRIGGER unindex_removed INSTEAD OF INSERT ON removed
BEGIN
    SELECT NULL;
END;
