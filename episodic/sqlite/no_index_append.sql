-- Without FTS5 an episode is stored and not indexed; the next open with FTS5 indexes it.

CREATE TEMP TRIGGER index_appended INSTEAD OF INSERT ON appended
BEGIN
    SELECT 1;
END;
