//! Reading many short ranges at once, such as the values of thousands of entities.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

use fieldline_core::ports::StoreResult;

use super::super::super::keys;
use super::super::TableEntry;
use super::CqlTable;
use super::place::{self, ByteRange};
use super::read::ReadDirection;
use crate::page_size::next_page_size;

impl CqlTable {
    /// Hands over the entries whose keys begin with one of some prefixes, which are in order, each within an entity. They come
    /// in no order.
    pub(in super::super) fn prefixes<K: AsRef<[u8]>>(
        &self,
        prefixes: &[K],
        visit: &mut dyn FnMut(TableEntry) -> StoreResult<()>,
    ) -> StoreResult<()> {
        let mut scans: BTreeMap<u16, PrefixScan> = BTreeMap::new();
        let mut is_narrow = self
            .session
            .narrow_until
            .lock()
            .is_some_and(|until| Instant::now() < until);
        for prefix in prefixes {
            let prefix = prefix.as_ref();
            let end = keys::after_prefix(prefix);
            let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let range = place::byte_range((Bound::Included(prefix), end));
            for slot in place::slots_of_range(self.kind, &range) {
                scans
                    .entry(slot)
                    .or_insert_with(|| PrefixScan::new(is_narrow))
                    .left
                    .push_back(range.clone());
            }
        }
        while !scans.is_empty() {
            let asked = scans
                .iter()
                .filter_map(|(slot, scan)| Some((slot.to_be_bytes().to_vec(), scan.span()?, scan.page_size)));
            let pages = match self.pages(asked.collect(), ReadDirection::Forward) {
                Ok(pages) => pages,
                Err(failure) if failure.is_given_up() && !is_narrow => {
                    is_narrow = true;
                    *self.session.narrow_until.lock() = Some(Instant::now() + NARROW_TIME);
                    scans.values_mut().for_each(|scan| scan.is_narrow = true);
                    continue;
                }
                Err(failure) => return Err(failure.into()),
            };
            for (scan, page) in scans.values_mut().zip(pages) {
                scan.take(page, visit)?;
            }
            scans.retain(|_, scan| !scan.left.is_empty());
        }
        Ok(())
    }
}

/// Ranges of one partition that are read in one go, with what lies between them as long as it is little: a request costs as
/// much as some dozens of entries.
struct PrefixScan {
    /// What is not read yet, in order.
    left: VecDeque<ByteRange>,
    page_size: usize,
    /// Whether nothing between them is read, as much has been deleted there that a node would have to go through.
    is_narrow: bool,
}

/// Entries of the first page, of which there are as many at once as slots, and of one where little of the page before was
/// wanted.
const LEAST_PAGE: usize = 2;
/// Entries of the largest page, of which there may be as many.
const LARGEST_PAGE: usize = 128;
/// How long it is remembered that a node had to go through too much.
const NARROW_TIME: Duration = Duration::from_secs(600);

impl PrefixScan {
    const fn new(is_narrow: bool) -> Self {
        Self {
            left: VecDeque::new(),
            page_size: LEAST_PAGE,
            is_narrow,
        }
    }

    /// What is to be read next: from the first range that is left to the end of the last, or no more than the first.
    fn span(&self) -> Option<ByteRange> {
        let first = self.left.front()?;
        let last = if self.is_narrow { first } else { self.left.back()? };
        Some(first.start.clone()..last.end.clone())
    }

    /// Hands over what is wanted of a page of the span.
    fn take(
        &mut self,
        page: Vec<TableEntry>,
        visit: &mut dyn FnMut(TableEntry) -> StoreResult<()>,
    ) -> StoreResult<()> {
        let read = page.len();
        let mut wanted = 0;
        let bytes = page.iter().map(|(key, value)| key.len() + value.len()).sum();
        let last = page.last().map(|(key, _)| place::successor(key));
        for entry in page {
            while self
                .left
                .pop_front_if(|range| range.end.as_slice() <= &entry.0[..])
                .is_some()
            {}
            if self
                .left
                .front()
                .is_some_and(|range| range.start.as_slice() <= &entry.0[..])
            {
                wanted += 1;
                visit(entry)?;
            }
        }
        let Some(next) = last.filter(|_| read == self.page_size) else {
            match self.is_narrow {
                true => drop(self.left.pop_front()),
                false => self.left.clear(),
            }
            return Ok(());
        };
        while self.left.pop_front_if(|range| range.end <= next).is_some() {}
        if let Some(range) = self.left.front_mut() {
            range.start = next.max(std::mem::take(&mut range.start));
        }
        self.page_size = match 4 * wanted >= read {
            true => next_page_size(self.page_size, read, bytes).min(LARGEST_PAGE),
            false => (self.page_size / 4).max(LEAST_PAGE),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fjall::Slice;

    use super::*;

    fn prefix(number: u16) -> ByteRange {
        number.to_be_bytes().to_vec()..(number + 1).to_be_bytes().to_vec()
    }

    /// Reads prefixes of a table in which each number has so many entries, from one page on each alone; says what was found, how
    /// many pages were asked for, and how many entries they had.
    fn scan(
        narrow_from: usize,
        numbers: u16,
        entries_each: u16,
        wanted: impl Iterator<Item = u16>,
    ) -> (Vec<Vec<u8>>, usize, usize) {
        let key = |number: u16, entry: u16| [number.to_be_bytes(), entry.to_be_bytes()].concat();
        let all = (0..numbers).flat_map(|number| (0..entries_each).map(move |entry| key(number, entry)));
        let table: BTreeMap<Vec<u8>, ()> = all.map(|key| (key, ())).collect();
        let mut scan = PrefixScan::new(false);
        scan.left.extend(wanted.map(prefix));
        let (mut found, mut pages, mut read) = (Vec::new(), 0, 0);
        loop {
            scan.is_narrow = pages >= narrow_from;
            let Some(span) = scan.span() else { break };
            let page: Vec<TableEntry> = table
                .range(span)
                .take(scan.page_size)
                .map(|(key, ())| (Slice::from(&key[..]), Slice::from([])))
                .collect();
            pages += 1;
            read += page.len();
            let mut take = |(key, _): TableEntry| {
                found.push(key.to_vec());
                Ok(())
            };
            scan.take(page, &mut take).unwrap();
        }
        (found, pages, read)
    }

    #[test]
    fn what_is_wanted_is_found_wherever_pages_end() {
        for entries in [0, 1, 3, 31, 32, 33, 200] {
            for step in [1, 2, 7, 40] {
                let wanted = || (3..90).step_by(step);
                let (found, ..) = scan(usize::MAX, 80, entries, wanted());
                let expected: Vec<Vec<u8>> = wanted()
                    .filter(|number| *number < 80)
                    .flat_map(|number| {
                        (0..entries).map(move |entry| [number.to_be_bytes(), entry.to_be_bytes()].concat())
                    })
                    .collect();
                assert_eq!(found, expected, "{entries} entries, each {step}th");
                let (found, _, read) = scan(0, 80, entries, wanted());
                assert_eq!(found, expected, "{entries} entries, each {step}th alone");
                assert_eq!(read, found.len(), "nothing between them");
                let (found, ..) = scan(3, 80, entries, wanted());
                assert_eq!(
                    found, expected,
                    "{entries} entries, each {step}th alone in the end"
                );
            }
        }
    }

    #[test]
    fn neighbours_are_read_together_and_those_far_away_apart() {
        let (found, pages, _) = scan(usize::MAX, 2_000, 2, 0..2_000);
        assert_eq!(found.len(), 4_000);
        assert!(pages < 40, "{pages} pages");
        let (found, pages, read) = scan(usize::MAX, 20_000, 1, (0..20_000).step_by(400));
        assert_eq!(found.len(), 50);
        assert!(pages <= 51, "{pages} pages");
        assert!(read < 50 * 4 * LEAST_PAGE, "{read} entries were read for 50");
    }
}
