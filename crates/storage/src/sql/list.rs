//! Pages of entities: filter, text search, sort.

use fieldline_core::ports::StoreResult;
use fieldline_model::page::{PageData, PageLink, SortOrder};

use super::database::EntityDatabase;
use super::query::{ColumnReader, RowOwner, SqlQuery};
use super::record::{invalid, number};
use super::search::{RelatedTable, SearchScope, TextSearch};

/// Longer texts are found nowhere.
const MAX_SEARCH_CHARS: usize = 1_000;

/// What a list is made from.
pub(super) struct ListDefinition {
    /// The table.
    pub(super) table: &'static str,
    /// What is read of each row.
    pub(super) select: &'static str,
    /// Tables that `select` needs besides, each joined to at most one row.
    pub(super) joins: &'static str,
    /// Names that a list can be sorted by, and what they stand for; `createdTime` is always among them.
    pub(super) sorts: &'static [(&'static str, &'static str)],
}

/// One page of the rows that meet a condition. `condition` continues a `WHERE` clause; `search` appends the condition
/// that a row contains a pattern (as for `LIKE … ESCAPE '\'`).
pub(super) async fn page<T>(
    database: &EntityDatabase,
    listing: &ListDefinition,
    link: &PageLink,
    condition: impl Fn(SqlQuery) -> SqlQuery,
    search: impl Fn(SqlQuery, &str) -> SqlQuery,
    read: impl Fn(&mut ColumnReader<'_>) -> StoreResult<T>,
) -> StoreResult<PageData<T>> {
    let pattern = pattern(link.text_search.as_deref())?;
    let matching = |query: SqlQuery| {
        let query = condition(query.push(listing.table).push(" WHERE TRUE"));
        match &pattern {
            Some(pattern) => search(query.push(" AND "), pattern),
            None => query,
        }
    };
    selected(database, listing, link, matching, read).await
}

/// The same of a table whose texts are indexed. `place` says where a text is looked for.
pub(super) async fn indexed_page<T>(
    database: &EntityDatabase,
    listing: &ListDefinition,
    link: &PageLink,
    place: (RowOwner, &'static [RelatedTable]),
    condition: impl Fn(SqlQuery) -> SqlQuery,
    read: impl Fn(&mut ColumnReader<'_>) -> StoreResult<T>,
) -> StoreResult<PageData<T>> {
    let (owner, related) = place;
    let place = SearchScope {
        table: listing.table,
        owner,
        related,
    };
    let text = searched(link.text_search.as_deref())?;
    let search = match &text {
        Some(text) => Some(TextSearch::new(database, place, text).await?),
        None => None,
    };
    let matching = |query: SqlQuery| match &search {
        Some(search) => {
            let query = condition(search.from(query).push(" WHERE TRUE"));
            search.matching(query.push(" AND "))
        }
        None => condition(query.push(listing.table).push(" WHERE TRUE")),
    };
    selected(database, listing, link, matching, read).await
}

/// One page of what `matching` finds, which continues a statement behind `FROM`.
async fn selected<T>(
    database: &EntityDatabase,
    listing: &ListDefinition,
    link: &PageLink,
    matching: impl Fn(SqlQuery) -> SqlQuery,
    read: impl Fn(&mut ColumnReader<'_>) -> StoreResult<T>,
) -> StoreResult<PageData<T>> {
    let (sort, direction) = order(listing, link)?;
    let counted = matching(SqlQuery::new("SELECT COUNT(*) FROM "));
    let total = number(&database.read_list(counted).await?)?;
    if link.offset() >= total {
        return Ok(PageData::new(Vec::new(), total, link));
    }

    let ordered = |query: SqlQuery| {
        query
            .push(" ORDER BY ")
            .push(sort)
            .push(direction)
            .push(", ")
            .push(listing.table)
            .push(".id")
            .push(direction)
    };
    // Rows to skip are counted off on an index; only those of the page are read and joined.
    let query = SqlQuery::new("SELECT ")
        .push(listing.select)
        .push(" FROM (SELECT ")
        .push(listing.table)
        .push(".id AS page_id FROM ");
    let query = ordered(matching(query))
        .push(" LIMIT ")
        .bind(i64::from(link.page_size.max(1)))
        .push(" OFFSET ")
        .bind(i64::try_from(link.offset()).unwrap_or(i64::MAX))
        .push(") page JOIN ")
        .push(listing.table)
        .push(" ON ")
        .push(listing.table)
        .push(".id = page.page_id ")
        .push(listing.joins);
    let rows = database.read_list(ordered(query)).await?;
    let data = rows
        .iter()
        .map(|row| read(&mut row.columns()))
        .collect::<StoreResult<Vec<T>>>()?;
    Ok(PageData::new(data, total, link))
}

/// What to sort by, and in which direction.
fn order(listing: &ListDefinition, link: &PageLink) -> StoreResult<(&'static str, &'static str)> {
    let (name, order) = match link.sort_property.as_deref() {
        Some(name) => (name, link.sort_order.unwrap_or_default()),
        None => ("createdTime", SortOrder::Desc),
    };
    let Some((_, column)) = listing.sorts.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = listing.sorts.iter().map(|(name, _)| *name).collect();
        return Err(invalid(format!(
            "Unsupported sort property '{}'! Supported are: {}",
            name.chars().take(64).collect::<String>(),
            known.join(", ")
        )));
    };
    let direction = match order {
        SortOrder::Asc => " ASC",
        SortOrder::Desc => " DESC",
    };
    Ok((column, direction))
}

/// The pattern of rows that contain the text, none for no text.
pub(super) fn pattern(text: Option<&str>) -> StoreResult<Option<String>> {
    Ok(searched(text)?.map(|text| containing(&text)))
}

/// What is looked for: the text in lower case, none for no text.
fn searched(text: Option<&str>) -> StoreResult<Option<String>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    if text.chars().count() > MAX_SEARCH_CHARS {
        return Err(invalid(format!(
            "Text search length must be equal or less than {MAX_SEARCH_CHARS}"
        )));
    }
    Ok(Some(text.to_lowercase()))
}

/// The pattern, as for `LIKE … ESCAPE '\'`, of texts that contain this one.
pub(super) fn containing(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for char in text.chars() {
        if matches!(char, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern.push('%');
    pattern
}

/// The search of tables that keep all they are searched by in their own column.
pub(super) fn own_text(query: SqlQuery, pattern: &str) -> SqlQuery {
    query.push("search LIKE ").bind(pattern).push(" ESCAPE '\\'")
}
