-- SQLite alone. Which rows of the kinds that may be many have which three characters in a row in `search`: see search.rs.

-- The rows of one kind and tenant; those of no tenant have the null id. Their numbers begin with the number of the part, so
-- that a search reads the entries of its own part only.
CREATE TABLE text_part (
    number INTEGER NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    tenant_id UUID NOT NULL,
    UNIQUE (kind, tenant_id)
);

-- The part in the bits from the 41st on, and a number within it.
CREATE TABLE text_row (
    number INTEGER NOT NULL PRIMARY KEY,
    id UUID NOT NULL UNIQUE
);

-- It keeps neither texts nor places within them: what it finds is looked at again. `search` is in lower case already.
CREATE VIRTUAL TABLE text_index USING fts5 (
    search, content = '', columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1'
);

CREATE TRIGGER text_part_delete AFTER DELETE ON tenant BEGIN
    DELETE FROM text_part WHERE tenant_id = OLD.id;
END;
