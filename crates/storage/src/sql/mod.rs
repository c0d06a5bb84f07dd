//! Entities in SQL: SQLite embedded, PostgreSQL at scale, one set of statements for both.
