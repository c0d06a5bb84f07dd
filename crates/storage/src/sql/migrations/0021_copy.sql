-- Where a database is being filled from, until all of it is there, and what makes its foreign keys again.
CREATE TABLE database_copy (
    source KEYTEXT NOT NULL PRIMARY KEY,
    constraints TEXT NOT NULL
);
