-- Without FTS5 an episode is stored and not indexed; the next open with FTS5 indexes it.

CREATE TEMP TRIGGER index_appended INSTEAD OF INSERT ON appended
BEGIN
    UPDATE log_state SET unindexed = unindexed + NEW.n;
END;
