-- Indexes the episodes of a batch in the batch's own transaction.

CREATE TEMP TRIGGER index_appended INSTEAD OF INSERT ON appended
BEGIN
    -- In the order of the index: FTS5 would start a new segment at each step back.
    INSERT INTO episodes_fts (rowid, user, author, content)
    SELECT place, user, author, content
    FROM episodes_indexed
    WHERE id BETWEEN NEW.first_id AND NEW.first_id + NEW.n - 1
    ORDER BY place;
END;
