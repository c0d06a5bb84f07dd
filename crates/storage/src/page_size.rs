//! How many entries or rows a page that is read from a database should have.

/// Entries of the first page of a range, which may be all that is wanted, and each of which may be as large as entries can be.
pub(crate) const FIRST_PAGE: usize = 8;
/// Entries of the largest page.
const LARGEST_PAGE: usize = 1024;
/// What a page should have at most; entries are expected to be as large as those of the page before.
const PAGE_BYTES: usize = 1 << 20;

/// Returns how many entries the page after one of `rows` entries with `bytes` should have.
pub(crate) fn next_page_size(page_size: usize, rows: usize, bytes: usize) -> usize {
    let fitting = PAGE_BYTES * rows.max(1) / bytes.max(1);
    (page_size * 4).min(LARGEST_PAGE).min(fitting.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_until_their_bytes_or_their_entries_reach_the_bound() {
        assert_eq!(next_page_size(FIRST_PAGE, FIRST_PAGE, 32 * 100), 4 * FIRST_PAGE);
        assert_eq!(
            next_page_size(LARGEST_PAGE, LARGEST_PAGE, 1024 * 100),
            LARGEST_PAGE
        );
        let large = PAGE_BYTES / 8;
        assert_eq!(next_page_size(FIRST_PAGE, FIRST_PAGE, FIRST_PAGE * large), 8);
        assert_eq!(next_page_size(FIRST_PAGE, 1, 10 * PAGE_BYTES), 1);
        assert_eq!(next_page_size(FIRST_PAGE, 0, 0), 4 * FIRST_PAGE);
    }
}
