//! How many of something each of many has, within a bound.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Who has none takes no room.
pub(super) struct BoundedCounts<K>(FxHashMap<K, usize>);

impl<K> Default for BoundedCounts<K> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<K: Eq + Hash> BoundedCounts<K> {
    /// How many it has.
    pub(super) fn of(&self, owner: &K) -> usize {
        self.0.get(owner).copied().unwrap_or(0)
    }

    /// Gives one more, unless it has `most` already.
    pub(super) fn try_increment(&mut self, owner: K, most: usize) -> bool {
        let fits = self.of(&owner) < most;
        if fits {
            *self.0.entry(owner).or_default() += 1;
        }
        fits
    }

    /// It has one less.
    pub(super) fn decrement(&mut self, owner: &K) {
        let Some(count) = self.0.get_mut(owner) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.0.remove(owner);
        }
    }

    /// Nobody has any.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Those who have any.
    pub(super) fn into_owners(self) -> impl Iterator<Item = K> {
        self.0.into_keys()
    }

    /// Whether nobody has any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
