-- Indexes the episodes of a batch in the batch's own transaction.

CREATE TEMP TRIGGER index_appended INSTEAD OF INSERT ON appended
BEGIN
    INSERT INTO episodes_fts (rowid, scope, author, content)
    SELECT id, scope, author, content
    FROM episodes_indexed
    WHERE id BETWEEN NEW.first_id AND NEW.first_id + NEW.n - 1;
END;
