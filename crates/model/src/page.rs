//! Pages of entity lists.

use serde::{Deserialize, Serialize};

/// Direction of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum SortOrder {
    /// Smallest first.
    #[default]
    Asc,
    /// Largest first.
    Desc,
}

/// Which page of a list is asked for. `sort_property` is a name of the JSON shape, such as `createdTime`; stores refuse
/// names they do not sort by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageLink {
    /// Entities a page; at least 1.
    pub page_size: u32,
    /// Page index from 0.
    pub page: u32,
    /// Case-insensitive text that a name, label or type must contain.
    pub text_search: Option<String>,
    /// JSON name of the property to sort by; creation time, newest first, where absent.
    pub sort_property: Option<String>,
    /// Direction of the sort.
    pub sort_order: Option<SortOrder>,
}

impl PageLink {
    /// The first page of the given size, in the default order.
    pub fn first(page_size: u32) -> Self {
        Self {
            page_size,
            ..Self::default()
        }
    }

    /// How many entities stand before this page.
    pub fn offset(&self) -> u64 {
        u64::from(self.page) * u64::from(self.page_size)
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageData<T> {
    /// The entities of this page.
    pub data: Vec<T>,
    /// Pages in all.
    pub total_pages: u64,
    /// Entities in all.
    pub total_elements: u64,
    /// Whether a further page follows.
    pub has_next: bool,
}

impl<T> PageData<T> {
    /// A page of `data` out of `total` entities.
    pub fn new(data: Vec<T>, total: u64, link: &PageLink) -> Self {
        let size = u64::from(link.page_size.max(1));
        Self {
            has_next: link.offset() + (data.len() as u64) < total,
            data,
            total_pages: total.div_ceil(size),
            total_elements: total,
        }
    }

    /// The same page with each entity changed.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> PageData<U> {
        PageData {
            data: self.data.into_iter().map(change).collect(),
            total_pages: self.total_pages,
            total_elements: self.total_elements,
            has_next: self.has_next,
        }
    }
}
