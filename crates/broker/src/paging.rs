//! Pages of long lists: of all that is looked at, only what comes first in the order is kept.

use std::cmp::Ordering;

use fieldline_core::ports::{BrokerAdminError, BrokerAdminResult};
use fieldline_model::page::{PageData, PageLink, SortOrder};

/// Rows beside those of a page that are kept before the surplus is dropped.
const SLACK: usize = 4_096;

/// Compares two rows.
pub(crate) type RowOrder<T> = fn(&T, &T) -> Ordering;

/// Gathers the page of a list.
pub(crate) struct PageBuilder<T> {
    link: PageLink,
    /// The order of the rows; `None` if they come in it.
    order: Option<RowOrder<T>>,
    is_descending: bool,
    most: usize,
    total: u64,
    kept: Vec<T>,
}

impl<T> PageBuilder<T> {
    /// Begins a page. `order_of` knows the properties to sort by: those with `None` are the order in which rows come.
    ///
    /// # Errors
    /// The list does not sort by the property of the link.
    pub(crate) fn new(
        link: PageLink,
        order_of: impl FnOnce(&str) -> Option<Option<RowOrder<T>>>,
        by_default: RowOrder<T>,
    ) -> BrokerAdminResult<Self> {
        let is_descending = link.sort_order == Some(SortOrder::Desc);
        let order = match link.sort_property.as_deref() {
            None => None,
            Some(property) => order_of(property).ok_or_else(|| {
                BrokerAdminError::Invalid(format!("Unsupported sort property '{property}'"))
            })?,
        };
        let is_descending = is_descending && link.sort_property.is_some();
        let end = link.offset().saturating_add(u64::from(link.page_size));
        Ok(Self {
            most: usize::try_from(end).unwrap_or(usize::MAX),
            order: order.or(is_descending.then_some(by_default)),
            is_descending,
            link,
            total: 0,
            kept: Vec::new(),
        })
    }

    /// Takes a row into account, which is made only if it may be in the page.
    pub(crate) fn offer(&mut self, make: impl FnOnce() -> T) {
        self.total += 1;
        if self.order.is_none() && self.kept.len() >= self.most {
            return;
        }
        self.kept.push(make());
        if self.kept.len() >= self.most.saturating_mul(2).saturating_add(SLACK) {
            self.cut();
        }
    }

    /// Sorts what is kept, and drops what comes behind the page.
    fn cut(&mut self) {
        if let Some(order) = self.order {
            // Equal rows keep the order in which they came.
            match self.is_descending {
                true => self.kept.sort_by(|one, other| order(other, one)),
                false => self.kept.sort_by(order),
            }
        }
        self.kept.truncate(self.most);
    }

    /// Ends the page.
    pub(crate) fn finish(mut self) -> PageData<T> {
        self.cut();
        let offset = usize::try_from(self.link.offset()).unwrap_or(usize::MAX);
        let rows = match offset < self.kept.len() {
            true => self.kept.split_off(offset),
            false => Vec::new(),
        };
        PageData::new(rows, self.total, &self.link)
    }
}

/// A text that is looked for in others, in any case.
pub(crate) struct SoughtText(String);

impl SoughtText {
    /// Looks for a text.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_lowercase())
    }

    /// Whether a text has it.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        if !text.is_ascii() {
            return text.to_lowercase().contains(&self.0);
        }
        let (text, sought) = (text.as_bytes(), self.0.as_bytes());
        sought.is_empty()
            || text
                .windows(sought.len())
                .any(|part| part.eq_ignore_ascii_case(sought))
    }
}

/// Whether a text has what is looked for, if anything is.
pub(crate) fn has(sought: Option<&SoughtText>, text: &str) -> bool {
    sought.is_none_or(|sought| sought.is_in(text))
}

/// Whether a list of permitted values has one; an empty list permits all.
pub(crate) fn permits<T: PartialEq>(permitted: &[T], value: &T) -> bool {
    permitted.is_empty() || permitted.contains(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(link: PageLink, rows: impl IntoIterator<Item = u32>) -> PageData<u32> {
        let order_of = |property: &str| match property {
            "value" => Some(None),
            "last digit" => {
                let order: RowOrder<u32> = |one, other| (one % 10).cmp(&(other % 10));
                Some(Some(order))
            }
            _ => None,
        };
        let mut page = PageBuilder::new(link, order_of, u32::cmp).expect("a known property");
        for row in rows {
            page.offer(|| row);
        }
        page.finish()
    }

    fn link(page_size: u32, page: u32, property: Option<&str>, order: SortOrder) -> PageLink {
        PageLink {
            page_size,
            page,
            text_search: None,
            sort_property: property.map(str::to_owned),
            sort_order: Some(order),
        }
    }

    #[test]
    fn pages_are_those_of_the_sorted_list() {
        let rows = || 0..20_000;
        let plain = page(link(3, 1, None, SortOrder::Desc), rows());
        assert_eq!(plain.data, [3, 4, 5]);
        assert_eq!((plain.total_elements, plain.has_next), (20_000, true));
        let last = page(link(3, 0, Some("value"), SortOrder::Desc), rows());
        assert_eq!(last.data, [19_999, 19_998, 19_997]);
        let digits = page(link(2, 1_000, Some("last digit"), SortOrder::Asc), rows());
        assert_eq!(digits.data, [1, 11]);
        let behind = page(link(100, 200, Some("last digit"), SortOrder::Asc), rows());
        assert_eq!((behind.data.len(), behind.has_next), (0, false));
    }

    #[test]
    fn texts_are_found_in_any_case() {
        for (sought, text) in [("b", "aBc"), ("", ""), ("ä", "XÄ"), ("ABC", "abc")] {
            assert!(SoughtText::new(sought).is_in(text), "{sought} in {text}");
        }
        for (sought, text) in [("b", ""), ("ab", "a b"), ("ä", "a")] {
            assert!(!SoughtText::new(sought).is_in(text), "{sought} in {text}");
        }
    }
}
