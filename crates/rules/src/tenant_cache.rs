//! Something that every tenant has, made of what is stored when it is first needed, and again in part when that changes.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use fieldline_core::ports::StoreResult;
use fieldline_model::TenantId;
use parking_lot::{Mutex, RwLock};

/// The values of all tenants, each swapped as a whole. Tenants do not wait for each other: each has a lock of its own for
/// loading.
///
/// # Promises
/// - What was marked before [`get`](Self::get) is called is loaded anew before that returns; what is marked while it loads
///   is loaded once more.
/// - A mark outlives a load that fails.
/// - What is loaded of a tenant that was forgotten meanwhile does not come into force.
pub(crate) struct TenantCache<T, P> {
    slots: RwLock<HashMap<TenantId, Arc<TenantSlot<T, P>>>>,
}

/// What was known of a tenant's value at a time: whoever keeps the value keeps this with it, and asks again once it no longer
/// holds. Changes of other tenants do not touch it.
#[derive(Debug, Clone)]
pub struct TenantEpoch {
    of: Arc<AtomicU64>,
    seen: u64,
}

impl TenantEpoch {
    /// Whether nothing has changed since.
    pub fn is_current(&self) -> bool {
        self.of.load(Ordering::Acquire) == self.seen
    }
}

/// What of a tenant's value is no longer true.
#[derive(Debug, Clone)]
pub(crate) struct StaleParts<P> {
    /// All of it.
    pub(crate) everything: bool,
    /// These parts.
    pub(crate) parts: HashSet<P>,
}

impl<P> Default for StaleParts<P> {
    fn default() -> Self {
        Self {
            everything: false,
            parts: HashSet::new(),
        }
    }
}

/// Where the values of a kind come from.
#[async_trait]
pub(crate) trait TenantLoader<T, P>: Send + Sync {
    /// Makes the value of a tenant, of the one before and what of that is stale, all where that is absent.
    ///
    /// # Errors
    /// The store failed.
    async fn load(
        &self,
        tenant: TenantId,
        before: Option<&T>,
        stale: Option<&StaleParts<P>>,
    ) -> StoreResult<T>;

    /// A value is about to come into force in the place of another one; nobody has seen it yet.
    fn activate(&self, tenant: TenantId, before: Option<&T>, now: &Arc<T>);
}

struct TenantSlot<T, P> {
    state: Mutex<TenantSlotState<T, P>>,
    loading: tokio::sync::Mutex<()>,
    /// Grows with every change.
    epoch: Arc<AtomicU64>,
}

struct TenantSlotState<T, P> {
    value: Option<Arc<T>>,
    stale: Option<StaleParts<P>>,
    /// Grows with every mark.
    marks: u64,
    /// The tenant was forgotten.
    is_gone: bool,
}

impl<T, P> Default for TenantSlot<T, P> {
    fn default() -> Self {
        Self {
            state: Mutex::new(TenantSlotState {
                value: None,
                stale: None,
                marks: 0,
                is_gone: false,
            }),
            loading: tokio::sync::Mutex::default(),
            epoch: Arc::default(),
        }
    }
}

impl<T, P> TenantSlot<T, P> {
    /// Lets those who keep the value ask again.
    fn advance_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}

impl<T, P> TenantSlotState<T, P> {
    fn known(&self) -> Option<Arc<T>> {
        self.value.clone().filter(|_| self.stale.is_none())
    }
}

impl<T, P> Default for TenantCache<T, P> {
    fn default() -> Self {
        Self {
            slots: RwLock::default(),
        }
    }
}

impl<T, P: Clone + Eq + Hash> TenantCache<T, P> {
    /// What is known of a tenant's value now. To be asked for before the value is: a change in between is then noticed.
    pub(crate) fn epoch(&self, tenant: TenantId) -> TenantEpoch {
        let of = self.slot(tenant).epoch.clone();
        let seen = of.load(Ordering::Acquire);
        TenantEpoch { of, seen }
    }

    /// The value of a tenant as it is now.
    ///
    /// # Errors
    /// It cannot be loaded.
    pub(crate) async fn get(
        &self,
        tenant: TenantId,
        loader: &impl TenantLoader<T, P>,
    ) -> StoreResult<Arc<T>> {
        loop {
            let slot = self.slot(tenant);
            if let Some(known) = slot.state.lock().known() {
                return Ok(known);
            }
            let _one = slot.loading.lock().await;
            let (before, stale, marks) = {
                let state = slot.state.lock();
                if let Some(known) = state.known() {
                    return Ok(known);
                }
                (state.value.clone(), state.stale.clone(), state.marks)
            };
            let loaded = Arc::new(loader.load(tenant, before.as_deref(), stale.as_ref()).await?);
            let mut state = slot.state.lock();
            if state.is_gone {
                // Whoever asks after that asks for another tenant of the same id.
                return Ok(loaded);
            }
            if state.marks == marks {
                loader.activate(tenant, before.as_deref(), &loaded);
                state.value = Some(loaded.clone());
                state.stale = None;
                return Ok(loaded);
            }
        }
    }

    /// The value of a tenant, whether or not it is still true; `None` before the first load.
    pub(crate) fn peek(&self, tenant: TenantId) -> Option<Arc<T>> {
        let slot = self.slots.read().get(&tenant).cloned()?;
        slot.state.lock().value.clone()
    }

    /// Puts a value in force that was not loaded; returns the one before.
    pub(crate) fn put(&self, tenant: TenantId, value: Arc<T>) -> Option<Arc<T>> {
        let slot = self.slot(tenant);
        let before = {
            let mut state = slot.state.lock();
            state.stale = None;
            state.value.replace(value)
        };
        slot.advance_epoch();
        before
    }

    /// A part of a tenant's value is no longer true, or all of it where no part is named.
    pub(crate) fn mark_stale(&self, tenant: TenantId, part: Option<P>) {
        let slot = self.slot(tenant);
        {
            let mut state = slot.state.lock();
            state.marks += 1;
            let stale = state.stale.get_or_insert_default();
            match part {
                Some(part) => {
                    stale.parts.insert(part);
                }
                None => stale.everything = true,
            }
        }
        slot.advance_epoch();
    }

    /// The tenants whose values have been asked for.
    pub(crate) fn all(&self) -> Vec<TenantId> {
        self.slots.read().keys().copied().collect()
    }

    /// Drops the value of a tenant that is no more, and returns it.
    pub(crate) fn forget(&self, tenant: TenantId) -> Option<Arc<T>> {
        let slot = self.slots.write().remove(&tenant)?;
        let value = {
            let mut state = slot.state.lock();
            state.is_gone = true;
            state.value.take()
        };
        slot.advance_epoch();
        value
    }

    fn slot(&self, tenant: TenantId) -> Arc<TenantSlot<T, P>> {
        if let Some(slot) = self.slots.read().get(&tenant) {
            return slot.clone();
        }
        self.slots.write().entry(tenant).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fieldline_core::ports::{StoreError, StoreErrorKind};
    use tokio::sync::mpsc;
    use tokio::sync::oneshot;

    use super::*;

    type Numbers = TenantCache<u32, u8>;
    /// What a load was given, and what answers it.
    struct Asked {
        tenant: TenantId,
        before: Option<u32>,
        stale: Option<(bool, Vec<u8>)>,
        answer: oneshot::Sender<StoreResult<u32>>,
    }

    /// A value that came into force, and the one before it.
    type Forced = (Option<u32>, u32);

    /// Loads end when the test says so.
    #[derive(Clone)]
    struct Loader {
        numbers: Arc<Numbers>,
        asked: mpsc::UnboundedSender<Asked>,
        forced: Arc<Mutex<Vec<Forced>>>,
    }

    impl Loader {
        fn new() -> (Self, mpsc::UnboundedReceiver<Asked>) {
            let (asked, asks) = mpsc::unbounded_channel();
            let loader = Self {
                numbers: Arc::default(),
                asked,
                forced: Arc::default(),
            };
            (loader, asks)
        }

        async fn get(&self, tenant: TenantId) -> StoreResult<u32> {
            self.numbers.get(tenant, self).await.map(|number| *number)
        }

        fn ask(&self, tenant: TenantId) -> tokio::task::JoinHandle<StoreResult<u32>> {
            let loader = self.clone();
            tokio::spawn(async move { loader.get(tenant).await })
        }
    }

    #[async_trait]
    impl TenantLoader<u32, u8> for Loader {
        async fn load(
            &self,
            tenant: TenantId,
            before: Option<&u32>,
            stale: Option<&StaleParts<u8>>,
        ) -> StoreResult<u32> {
            let parts = |stale: &StaleParts<u8>| {
                let mut parts: Vec<u8> = stale.parts.iter().copied().collect();
                parts.sort_unstable();
                (stale.everything, parts)
            };
            let (answer, answered) = oneshot::channel();
            let asked = Asked {
                tenant,
                before: before.copied(),
                stale: stale.map(parts),
                answer,
            };
            self.asked.send(asked).ok().unwrap();
            answered.await.unwrap()
        }

        fn activate(&self, _: TenantId, before: Option<&u32>, now: &Arc<u32>) {
            self.forced.lock().push((before.copied(), **now));
        }
    }

    async fn next(asks: &mut mpsc::UnboundedReceiver<Asked>) -> Asked {
        let waiting = tokio::time::timeout(Duration::from_secs(10), asks.recv());
        waiting.await.expect("nothing is loaded").unwrap()
    }

    fn none(asks: &mut mpsc::UnboundedReceiver<Asked>) {
        assert!(asks.try_recv().is_err(), "something is loaded");
    }

    #[tokio::test]
    async fn many_who_ask_wait_for_one_load_and_other_tenants_do_not() {
        let (loader, mut asks) = Loader::new();
        let (slow, fast) = (TenantId::new(), TenantId::new());
        let waiting: Vec<_> = (0..3).map(|_| loader.ask(slow)).collect();
        let of_slow = next(&mut asks).await;
        assert_eq!(
            (of_slow.tenant, of_slow.before, &of_slow.stale),
            (slow, None, &None)
        );
        let quick = loader.ask(fast);
        let of_fast = next(&mut asks).await;
        assert_eq!(of_fast.tenant, fast);
        of_fast.answer.send(Ok(2)).unwrap();
        assert_eq!(quick.await.unwrap().unwrap(), 2);
        of_slow.answer.send(Ok(1)).unwrap();
        for waits in waiting {
            assert_eq!(waits.await.unwrap().unwrap(), 1);
        }
        none(&mut asks);
    }

    #[tokio::test]
    async fn what_is_marked_while_it_is_loaded_is_loaded_once_more_and_nobody_sees_the_old_one() {
        let (loader, mut asks) = Loader::new();
        let tenant = TenantId::new();
        let first = loader.ask(tenant);
        next(&mut asks).await.answer.send(Ok(1)).unwrap();
        assert_eq!(first.await.unwrap().unwrap(), 1);

        loader.numbers.mark_stale(tenant, Some(7));
        let second = loader.ask(tenant);
        let asked = next(&mut asks).await;
        assert_eq!((asked.before, asked.stale), (Some(1), Some((false, vec![7]))));
        let epoch = loader.numbers.epoch(tenant);
        assert!(epoch.is_current());
        loader.numbers.mark_stale(tenant, Some(8));
        assert!(!epoch.is_current());
        let meanwhile = loader.ask(tenant);
        asked.answer.send(Ok(2)).unwrap();
        let again = next(&mut asks).await;
        assert_eq!((again.before, again.stale), (Some(1), Some((false, vec![7, 8]))));
        assert_eq!(
            *loader.forced.lock(),
            [(None, 1)],
            "what was stale already has come into force"
        );
        again.answer.send(Ok(3)).unwrap();
        assert_eq!(second.await.unwrap().unwrap(), 3);
        assert_eq!(meanwhile.await.unwrap().unwrap(), 3);
        assert_eq!(*loader.forced.lock(), [(None, 1), (Some(1), 3)]);
        none(&mut asks);
    }

    #[tokio::test]
    async fn a_mark_outlives_a_load_that_fails_and_a_first_load_is_marked_too() {
        let (loader, mut asks) = Loader::new();
        let tenant = TenantId::new();
        let first = loader.ask(tenant);
        let asked = next(&mut asks).await;
        // As after a change of the tenant profile, which concerns all that are known.
        assert_eq!(loader.numbers.all(), [tenant]);
        loader.numbers.mark_stale(tenant, None);
        asked.answer.send(Ok(1)).unwrap();
        let again = next(&mut asks).await;
        assert_eq!(again.stale, Some((true, Vec::new())));
        let failure = StoreError::new(StoreErrorKind::Unavailable, "not now");
        again.answer.send(Err(failure)).unwrap();
        first.await.unwrap().unwrap_err();
        let second = loader.ask(tenant);
        let asked = next(&mut asks).await;
        assert_eq!(asked.stale, Some((true, Vec::new())));
        asked.answer.send(Ok(2)).unwrap();
        assert_eq!(second.await.unwrap().unwrap(), 2);
    }

    #[tokio::test]
    async fn what_is_loaded_of_a_tenant_that_is_gone_does_not_come_into_force() {
        let (loader, mut asks) = Loader::new();
        let tenant = TenantId::new();
        let first = loader.ask(tenant);
        let asked = next(&mut asks).await;
        assert_eq!(loader.numbers.forget(tenant), None);
        asked.answer.send(Ok(1)).unwrap();
        assert_eq!(first.await.unwrap().unwrap(), 1);
        assert!(loader.forced.lock().is_empty());
        assert_eq!(loader.numbers.peek(tenant), None);
        let second = loader.ask(tenant);
        next(&mut asks).await.answer.send(Ok(2)).unwrap();
        assert_eq!(second.await.unwrap().unwrap(), 2);
        assert_eq!(loader.numbers.forget(tenant).as_deref(), Some(&2));
    }

    #[tokio::test]
    async fn whatever_changes_of_a_tenant_costs_the_others_no_question() {
        let (loader, _asks) = Loader::new();
        let numbers = &loader.numbers;
        let [changed, other] = [TenantId::new(), TenantId::new()];
        let of_other = numbers.epoch(other);
        let changes: [&dyn Fn(); 4] = [
            &|| drop(numbers.put(changed, Arc::new(1))),
            &|| numbers.mark_stale(changed, Some(1)),
            &|| numbers.mark_stale(changed, None),
            &|| drop(numbers.forget(changed)),
        ];
        for change in changes {
            let before = numbers.epoch(changed);
            change();
            assert!(!before.is_current());
            assert!(of_other.is_current());
        }
    }
}
