-- Indexes the episodes of a batch in the batch's own transaction, and takes removed ones out in that of their removal.

CREATE TEMP TRIGGER index_appended INSTEAD OF INSERT ON appended
BEGIN
    -- In the order of the index: FTS5 would start a new segment at each step back.
    INSERT INTO episodes_fts (rowid, user, author, content)
    SELECT place, user, author, content
    FROM episodes_indexed
    WHERE id BETWEEN NEW.first_id AND NEW.first_id + NEW.n - 1
    ORDER BY place;
END;

CREATE TEMP TRIGGER unindex_removed INSTEAD OF INSERT ON removed
BEGIN
    -- With exactly what was indexed, and only if it was: anything else would damage the index.
    INSERT INTO episodes_fts (episodes_fts, rowid, user, author, content)
    SELECT 'delete', i.place, i.user, i.author, i.content
    FROM leaving AS l CROSS JOIN episodes_indexed AS i ON i.id = l.id
    WHERE l.id <= NEW.upto AND EXISTS (SELECT 1 FROM episodes_fts_docsize AS d WHERE d.id = i.place)
    ORDER BY i.place;
END;
