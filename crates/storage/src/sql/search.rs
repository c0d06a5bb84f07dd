//! Text search by index, in the lists that may be long.
//!
//! A row is found where its `search` contains the text; of some kinds also where its profile or customer is called so. Both
//! databases keep trigrams, that is which rows have which three characters in a row. PostgreSQL uses its index by itself
//! where that helps. In SQLite `text_index` (migration 14) is asked first: if few rows have the trigrams of the text, these
//! alone are looked at, and those that are too new to be in the index; if many do, a page fills soon in the order of the list, and going through all of them in turn is
//! quicker than one by one.

use fieldline_core::ports::StoreResult;
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list;
use super::query::{RowOwner, SqlQuery};
use super::record::number;
use super::text_index;

/// So many rows are looked at one by one; beyond them, all are gone through.
const FEW: i64 = 1_000;

/// So many profiles or customers are named in a statement.
const FEW_RELATED: usize = 100;

/// What is looked for of a text: this many characters find a row that is called by them many times over.
const MOST_TRIGRAMS: usize = 32;

/// What a row refers to that it is found by as well.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelatedTable {
    /// The column with its id.
    pub(super) column: &'static str,
    /// Its table, which has `search`, too.
    pub(super) table: &'static str,
}

/// Where a text is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchScope {
    /// The table.
    pub(super) table: &'static str,
    /// Whose rows.
    pub(super) owner: RowOwner,
    /// What they refer to.
    pub(super) related: &'static [RelatedTable],
}

/// How the rows of a place are found that contain a text.
pub(super) struct TextSearch<'t> {
    scope: SearchScope,
    /// In lower case.
    text: &'t str,
    in_sqlite: bool,
    /// What rows refer to that contains the text.
    related: Vec<(RelatedTable, RelatedMatches)>,
    /// The trigrams to begin with, where they narrow the rows down.
    trigrams: Option<String>,
}

/// What of a kind contains a text.
enum RelatedMatches {
    /// These, at least one.
    These(Vec<Uuid>),
    /// More than a statement should name.
    Many,
}

impl<'t> TextSearch<'t> {
    /// Finds out how to look for a text in lower case.
    pub(super) async fn new(
        database: &EntityDatabase,
        place: SearchScope,
        text: &'t str,
    ) -> StoreResult<Self> {
        let in_sqlite = database.is_sqlite();
        let mut search = Self {
            scope: place,
            text,
            in_sqlite,
            related: Vec::new(),
            trigrams: None,
        };
        let trigrams = if in_sqlite { trigrams(text) } else { None };
        for related in place.related {
            let there = SearchScope {
                table: related.table,
                related: &[],
                ..place
            };
            let there = Self {
                scope: there,
                text,
                in_sqlite,
                related: Vec::new(),
                trigrams: trigrams.clone().filter(|_| text_index::has(related.table)),
            };
            let ids = there.ids(database, FEW_RELATED + 1).await?;
            match ids.len() {
                0 => {}
                1..=FEW_RELATED => search.related.push((*related, RelatedMatches::These(ids))),
                _ => search.related.push((*related, RelatedMatches::Many)),
            }
        }
        if let Some(trigrams) = trigrams
            && search.finds_few(database, &trigrams).await?
        {
            search.trigrams = Some(trigrams);
        }
        Ok(search)
    }

    /// Appends what rows are selected from.
    pub(super) fn from(&self, query: SqlQuery) -> SqlQuery {
        let table = self.scope.table;
        let Some(trigrams) = &self.trigrams else {
            return query.push(table);
        };
        // The order of a cross join is kept: the planner knows nothing of how few they are.
        let query = query.push(
            "(SELECT text_row.id AS found_id FROM text_part CROSS JOIN text_index CROSS JOIN text_row \
             ON text_row.number = text_index.rowid",
        );
        let mut query = self
            .indexed(query, trigrams)
            .push(" UNION SELECT id FROM ")
            .push(table)
            .push("_text_new");
        for (related, found) in &self.related {
            query = self.referring(query.push(" UNION SELECT id"), *related, found);
        }
        query
            .push(") found CROSS JOIN ")
            .push(table)
            .push(" ON ")
            .push(table)
            .push(".id = found.found_id")
    }

    /// Appends the condition that a row contains the text.
    pub(super) fn matching(&self, query: SqlQuery) -> SqlQuery {
        let mut query = self.contains(query.push("("));
        for (related, found) in &self.related {
            query = self.among(query.push(" OR ").push(related.column), *related, found);
        }
        query.push(")")
    }

    /// The condition on a row itself.
    fn contains(&self, query: SqlQuery) -> SqlQuery {
        if self.in_sqlite {
            query.push("instr(search, ").bind(self.text).push(") > 0")
        } else if self.text.chars().nth(2).is_some() {
            list::own_text(query, &list::containing(self.text))
        } else {
            // Without a trigram the index would be read as a whole.
            query.push("strpos(search, ").bind(self.text).push(") > 0")
        }
    }

    /// The condition on what a row refers to.
    fn among(&self, query: SqlQuery, related: RelatedTable, found: &RelatedMatches) -> SqlQuery {
        match found {
            RelatedMatches::These(ids) => query.push(" IN (").bind_list(ids.iter().copied()),
            RelatedMatches::Many => {
                let query = query
                    .push(" IN (SELECT id FROM ")
                    .push(related.table)
                    .push(" WHERE ");
                self.contains(query).owned_by(self.scope.owner)
            }
        }
        .push(")")
    }

    /// The rows that refer to what contains the text.
    fn referring(&self, query: SqlQuery, related: RelatedTable, found: &RelatedMatches) -> SqlQuery {
        let query = query
            .push(" FROM ")
            .push(self.scope.table)
            .push(" WHERE ")
            .push(related.column);
        self.among(query, related, found).owned_by(self.scope.owner)
    }

    /// The entries of the index that have these trigrams.
    fn indexed(&self, query: SqlQuery, trigrams: &str) -> SqlQuery {
        let tenant = match self.scope.owner {
            RowOwner::Tenant(tenant) => tenant,
            RowOwner::NoTenant | RowOwner::Installation => Uuid::nil(),
        };
        query
            .push(" WHERE text_part.kind = ")
            .bind(self.scope.table)
            .push(" AND text_part.tenant_id = ")
            .bind(tenant)
            .push(" AND text_index MATCH ")
            .bind(trigrams)
            .push(
                " AND text_index.rowid BETWEEN text_part.number << 40 AND (text_part.number << 40) + 1099511627775",
            )
    }

    /// Whether it pays to look at the rows one by one.
    async fn finds_few(&self, database: &EntityDatabase, trigrams: &str) -> StoreResult<bool> {
        if self
            .related
            .iter()
            .any(|(_, found)| matches!(found, RelatedMatches::Many))
        {
            return Ok(false);
        }
        let at_most = |query: SqlQuery| query.push(" LIMIT ").bind(FEW + 1).push("))");
        let query =
            SqlQuery::new("SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM text_part CROSS JOIN text_index");
        let mut query = at_most(self.indexed(query, trigrams));
        for (related, found) in &self.related {
            let query_ = query.push(" + (SELECT COUNT(*) FROM (SELECT 1");
            query = at_most(self.referring(query_, *related, found));
        }
        Ok(number(&database.read_list(query).await?)? <= FEW as u64)
    }

    /// The first rows that contain the text.
    async fn ids(&self, database: &EntityDatabase, most: usize) -> StoreResult<Vec<Uuid>> {
        let query = SqlQuery::new("SELECT ").push(self.scope.table).push(".id FROM ");
        let query = self
            .matching(self.from(query).push(" WHERE "))
            .owned_by(self.scope.owner)
            .push(" LIMIT ")
            .bind(i64::try_from(most).unwrap_or(i64::MAX));
        let rows = database.read_list(query).await?;
        rows.iter().map(|row| row.columns().next()).collect()
    }
}

/// The condition, as `text_index` takes it, that a row has the trigrams of a text; those that overlap would say little more.
/// `None` for a text that is shorter than one.
fn trigrams(text: &str) -> Option<String> {
    let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).collect();
    let last = starts.len().checked_sub(3)?;
    let mut condition = String::with_capacity(text.len() * 4);
    for at in (0..last).step_by(3).take(MOST_TRIGRAMS - 1).chain([last]) {
        let end = starts.get(at + 3).copied().unwrap_or(text.len());
        let trigram = starts.get(at).and_then(|start| text.get(*start..end))?;
        if !condition.is_empty() {
            condition.push_str(" AND ");
        }
        condition.push('"');
        condition.push_str(&trigram.replace('"', "\"\""));
        condition.push('"');
    }
    Some(condition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_looked_for_by_trigrams_that_cover_it() {
        assert_eq!(trigrams("öl"), None);
        assert_eq!(trigrams("ölp").unwrap(), "\"ölp\"");
        assert_eq!(trigrams("ölpumpe").unwrap(), "\"ölp\" AND \"ump\" AND \"mpe\"");
        assert_eq!(trigrams("a\"b\"c").unwrap(), "\"a\"\"b\" AND \"b\"\"c\"");
        assert_eq!(
            trigrams(&"x".repeat(1_000)).unwrap().matches("xxx").count(),
            MOST_TRIGRAMS
        );
    }
}
