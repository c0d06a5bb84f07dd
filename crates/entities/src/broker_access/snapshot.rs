//! Something that was read from the store and is taken for true for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_core::ports::StoreResult;
use parking_lot::Mutex;

/// How long what was read is taken for true, milliseconds: it bounds how late a change by another program takes effect.
pub(super) const TRUE_MS: i64 = 30_000;
/// How long it is while it is being read again.
const HELD_MS: i64 = 2 * TRUE_MS;

/// Whether what was read at a time is taken for true at another.
pub(super) fn is_true(read_at: i64, now_ms: i64) -> bool {
    is_within(TRUE_MS, read_at, now_ms)
}

fn is_within(span_ms: i64, read_at: i64, now_ms: i64) -> bool {
    (read_at..read_at.saturating_add(span_ms)).contains(&now_ms)
}

/// Counts changes, so that what was read before a change is not kept after it.
#[derive(Default)]
pub(super) struct ChangeCount(AtomicU64);

impl ChangeCount {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// See the module.
pub(super) struct Snapshot<T> {
    held: Mutex<Option<(Arc<T>, i64)>>,
    changes: ChangeCount,
    /// Whoever reads it has this.
    reading: tokio::sync::Mutex<()>,
}

impl<T> Default for Snapshot<T> {
    fn default() -> Self {
        Self {
            held: Mutex::new(None),
            changes: ChangeCount::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }
}

impl<T> Snapshot<T> {
    /// What is held, or else what `read` reads. One reads at a time: the others take what is held for true a little longer, or
    /// wait if it has changed.
    pub(super) async fn get_or_read(
        &self,
        now_ms: impl Fn() -> i64,
        read: impl Future<Output = StoreResult<T>>,
    ) -> StoreResult<Arc<T>> {
        if let Some(held) = self.get(now_ms()) {
            return Ok(held);
        }
        let _reading = match self.reading.try_lock() {
            Ok(reading) => reading,
            Err(_) => {
                if let Some(held) = self.get_within(HELD_MS, now_ms()) {
                    return Ok(held);
                }
                self.reading.lock().await
            }
        };
        // Somebody else may just have read it.
        let now = now_ms();
        if let Some(held) = self.get(now) {
            return Ok(held);
        }
        let version = self.version();
        Ok(self.put(read.await?, version, now))
    }

    /// What is held, if that is still taken for true.
    fn get(&self, now_ms: i64) -> Option<Arc<T>> {
        self.get_within(TRUE_MS, now_ms)
    }

    fn get_within(&self, span_ms: i64, now_ms: i64) -> Option<Arc<T>> {
        let held = self.held.lock();
        let (value, read_at) = held.as_ref()?;
        is_within(span_ms, *read_at, now_ms).then(|| value.clone())
    }

    /// To be asked before something is read for [`Self::put`].
    fn version(&self) -> u64 {
        self.changes.get()
    }

    /// Holds what was read, unless it has changed meanwhile.
    fn put(&self, value: T, version: u64, now_ms: i64) -> Arc<T> {
        let value = Arc::new(value);
        let mut held = self.held.lock();
        if self.changes.get() == version {
            *held = Some((value.clone(), now_ms));
        }
        value
    }

    /// Drops what is held: it has changed.
    pub(super) fn forget(&self) {
        let mut held = self.held.lock();
        self.changes.increment();
        *held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_not_held() {
        let snapshot = Snapshot::default();
        assert!(snapshot.get(0).is_none());
        snapshot.put(1, snapshot.version(), 10);
        assert_eq!(snapshot.get(10).as_deref(), Some(&1));
        assert!(snapshot.get(9).is_none(), "the clock was set back");
        assert!(snapshot.get(10 + TRUE_MS).is_none());
        let before = snapshot.version();
        snapshot.forget();
        assert!(snapshot.get(10).is_none());
        assert_eq!(*snapshot.put(2, before, 11), 2);
        assert!(snapshot.get(11).is_none(), "it was read before the change");
    }

    #[tokio::test]
    async fn one_reads_while_the_others_have_what_was_held() {
        let snapshot = Snapshot::default();
        snapshot.put(1, snapshot.version(), 0);
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        let reader = snapshot.get_or_read(|| TRUE_MS, async {
            wait.await.expect("somebody who waits");
            Ok(2)
        });
        let others = async {
            let held = snapshot
                .get_or_read(|| TRUE_MS, async { Ok(9) })
                .await
                .expect("a value");
            assert_eq!(*held, 1);
            snapshot.forget();
            go.send(()).expect("a reader");
            // It has changed since that reader began, whose value is not held.
            snapshot.get_or_read(|| TRUE_MS, async { Ok(3) }).await
        };
        let (read, after) = tokio::join!(reader, others);
        assert_eq!((*read.expect("a value"), *after.expect("a value")), (2, 3));
        assert_eq!(snapshot.get(TRUE_MS).as_deref(), Some(&3));
        assert!(
            snapshot.get_within(HELD_MS, TRUE_MS + HELD_MS).is_none(),
            "too old"
        );
    }
}
