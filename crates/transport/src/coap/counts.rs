//! Counts by owner, within a bound.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Counts by owner. An owner with a count of zero takes no memory.
pub(super) struct BoundedCounts<K>(FxHashMap<K, usize>);

impl<K> Default for BoundedCounts<K> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<K: Eq + Hash> BoundedCounts<K> {
    /// Returns the count of an owner.
    pub(super) fn of(&self, owner: &K) -> usize {
        self.0.get(owner).copied().unwrap_or(0)
    }

    /// Increments the count of an owner, unless it is at `most` already.
    pub(super) fn try_increment(&mut self, owner: K, most: usize) -> bool {
        let fits = self.of(&owner) < most;
        if fits {
            *self.0.entry(owner).or_default() += 1;
        }
        fits
    }

    /// Decrements the count of an owner.
    pub(super) fn decrement(&mut self, owner: &K) {
        let Some(count) = self.0.get_mut(owner) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.0.remove(owner);
        }
    }

    /// Sets all counts to zero.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The owners with a count above zero.
    pub(super) fn into_owners(self) -> impl Iterator<Item = K> {
        self.0.into_keys()
    }

    /// Whether all counts are zero.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
