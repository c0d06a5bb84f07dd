
-- The same for each of the kinds. OWNER is the tenant of a row of KIND, or the null id; MOVED says that an update changes it.

-- Rows that are not in the index yet, and some that are gone. A row alone changes ten pages of the index; many together hardly
-- more. Each row is here or in `text_row`, never in both.
CREATE TABLE KIND_text_new (
    number INTEGER NOT NULL PRIMARY KEY,
    id UUID NOT NULL
);

CREATE TRIGGER KIND_text_many AFTER INSERT ON KIND_text_new WHEN NEW.number >= 128 BEGIN
    INSERT INTO text_part (kind, tenant_id)
        SELECT DISTINCT 'KIND', OWNER FROM KIND_text_new JOIN KIND ON KIND.id = KIND_text_new.id WHERE TRUE
        ON CONFLICT DO NOTHING;
    INSERT INTO text_row (number, id)
        SELECT COALESCE(
            (
                SELECT MAX(number) FROM text_row
                WHERE number BETWEEN text_part.number << 40 AND (text_part.number << 40) + 1099511627775
            ),
            text_part.number << 40
        ) + row_number() OVER (PARTITION BY text_part.number ORDER BY KIND.id), KIND.id
        FROM (SELECT DISTINCT id FROM KIND_text_new) added
        CROSS JOIN KIND ON KIND.id = added.id
        CROSS JOIN text_part ON text_part.kind = 'KIND' AND text_part.tenant_id = OWNER;
    INSERT INTO text_index (rowid, search)
        SELECT text_row.number, KIND.search
        FROM (SELECT DISTINCT id FROM KIND_text_new) added
        CROSS JOIN KIND ON KIND.id = added.id
        CROSS JOIN text_row ON text_row.id = added.id
        ORDER BY text_row.number;
    DELETE FROM KIND_text_new;
END;

INSERT INTO KIND_text_new (id) SELECT id FROM KIND ORDER BY id;

CREATE TRIGGER KIND_text_insert AFTER INSERT ON KIND BEGIN
    INSERT INTO KIND_text_new (id) VALUES (NEW.id);
END;

CREATE TRIGGER KIND_text_update AFTER UPDATE ON KIND
WHEN (OLD.search <> NEW.search OR MOVED) AND EXISTS (SELECT 1 FROM text_row WHERE id = OLD.id) BEGIN
    INSERT INTO text_index (text_index, rowid, search)
        SELECT 'delete', number, OLD.search FROM text_row WHERE id = OLD.id;
    DELETE FROM text_row WHERE id = OLD.id;
    INSERT INTO KIND_text_new (id) VALUES (NEW.id);
END;

CREATE TRIGGER KIND_text_delete AFTER DELETE ON KIND BEGIN
    INSERT INTO text_index (text_index, rowid, search)
        SELECT 'delete', number, OLD.search FROM text_row WHERE id = OLD.id;
    DELETE FROM text_row WHERE id = OLD.id;
END;
