//! The threads of the pool, and the one that watches them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fieldline_model::{EntityId, TenantId};
use fieldline_script::{ScriptHost, ScriptInterrupt, ScriptLimits};
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use rustix::thread::Pid;
use tracing::{error, warn};

use super::SwitchOffListener;
use super::scheduler::{ScriptJob, ScriptPoolLimits, ScriptScheduler};
use super::task::ScriptRefusal;
use crate::script_ledger::ScriptLedger;

/// Threads that may be abandoned at the same time. Further calls that do not stop keep the thread they have.
pub(super) const MAX_ABANDONED: usize = 4;
/// How often the threads are looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);
/// The least a thread can be preferred.
const LOWEST_PRIORITY: i32 = 19;

/// A thread, and what it is at.
struct ScriptThread {
    interrupt: ScriptInterrupt,
    thread: Pid,
    now: Option<(ScriptJob, Instant)>,
    /// Whether nobody waits for what it is at any longer, though it keeps its place.
    is_hopeless: bool,
}

struct ScriptPoolState {
    scheduler: ScriptScheduler,
    slots: HashMap<u64, ScriptThread>,
    /// Abandoned calls that have not returned, by their threads.
    abandoned: FxHashMap<u64, (TenantId, EntityId)>,
    /// What does not run because a call of it was abandoned, until it has returned and the time is over.
    switched_off: FxHashMap<EntityId, Option<Instant>>,
    sleeping: usize,
    next_slot: u64,
}

/// What pool and threads share.
pub(super) struct ScriptPoolShared {
    state: Mutex<ScriptPoolState>,
    wakes: Condvar,
    /// Wakes the watching thread when the pool stops.
    ends: Condvar,
    is_stopped: AtomicBool,
    ids: AtomicU64,
    pub(super) limits: ScriptLimits,
    grace: Duration,
    pub(super) ledger: Arc<ScriptLedger>,
    switched_off: SwitchOffListener,
}

impl ScriptPoolShared {
    pub(super) fn start(
        bounds: ScriptPoolLimits,
        limits: ScriptLimits,
        grace: Duration,
        ledger: Arc<ScriptLedger>,
        switched_off: SwitchOffListener,
    ) -> Arc<Self> {
        let shared = Arc::new(Self {
            state: Mutex::new(ScriptPoolState {
                scheduler: ScriptScheduler::new(bounds),
                slots: HashMap::new(),
                abandoned: FxHashMap::default(),
                switched_off: FxHashMap::default(),
                sleeping: 0,
                next_slot: 0,
            }),
            wakes: Condvar::new(),
            ends: Condvar::new(),
            is_stopped: AtomicBool::new(false),
            ids: AtomicU64::new(1),
            limits,
            grace,
            ledger,
            switched_off,
        });
        for _ in 0..bounds.threads {
            shared.spawn();
        }
        let watching = shared.clone();
        let thread = std::thread::Builder::new().name("scripts-watch".to_owned());
        if let Err(error) = thread.spawn(move || watching.watch()) {
            error!(%error, "cannot start the thread that watches scripts");
        }
        shared
    }

    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn spawn(self: &Arc<Self>) {
        let number = {
            let mut state = self.state.lock();
            state.next_slot += 1;
            state.next_slot
        };
        let shared = self.clone();
        let thread = std::thread::Builder::new().name(format!("script-{number}"));
        if let Err(error) = thread.spawn(move || shared.work(number)) {
            error!(%error, "cannot start a thread for scripts");
        }
    }

    /// Takes a call, or says at once that it is refused.
    pub(super) fn submit(&self, job: ScriptJob) {
        let (tenant, owner) = (job.tenant, job.owner);
        let refused = {
            let mut state = self.state.lock();
            if self.is_stopped() {
                return;
            }
            let pushed = if !job.is_test && state.is_off(owner) {
                Err(Box::new((job, ScriptRefusal::SwitchedOff)))
            } else {
                state.scheduler.push(job)
            };
            if pushed.is_ok() && state.sleeping > 0 {
                self.wakes.notify_one();
            }
            pushed
        };
        if let Err(refused) = refused {
            let (job, refusal) = *refused;
            self.ledger.count_refusal(tenant, owner);
            job.work.refuse(refusal);
        }
    }

    fn work(self: Arc<Self>, number: u64) {
        let mut host = ScriptHost::new(self.limits.clone());
        let slot = ScriptThread {
            interrupt: host.interrupt(),
            thread: rustix::thread::gettid(),
            now: None,
            is_hopeless: false,
        };
        self.state.lock().slots.insert(number, slot);
        while let Some(job) = self.next(number) {
            let (tenant, owner, id) = (job.tenant, job.owner, job.id);
            let (bytes, waited) = (job.bytes, job.since.elapsed());
            host.limit_total_time(Some(self.limits.javascript.time));
            let begun = Instant::now();
            job.work.run(&mut host, &|| self.is_stopped());
            let used = begun.elapsed();
            drop(job);
            self.ledger.count_call(tenant, owner, used, waited, bytes);
            if host.take_overruns() > 0 {
                self.ledger.count_overrun(tenant, owner);
            }
            if let Some(time) = host.take_blocked() {
                (self.switched_off)(tenant, owner, time);
            }
            if !self.finish_call(number, id, used) {
                return;
            }
        }
    }

    /// The next call of a thread; `None` where it is to end.
    fn next(&self, number: u64) -> Option<ScriptJob> {
        let mut state = self.state.lock();
        loop {
            if self.is_stopped() {
                return None;
            }
            let now = Instant::now();
            if let Some(job) = state.scheduler.pick(now) {
                let slot = state.slots.get_mut(&number)?;
                // Nothing that was meant for an earlier call ends this one.
                slot.interrupt.clear();
                slot.now = Some((job.handle(), now));
                return Some(job);
            }
            state.sleeping += 1;
            self.wakes.wait(&mut state);
            state.sleeping -= 1;
        }
    }

    /// A thread has ended its call. Returns false where it was abandoned meanwhile.
    fn finish_call(&self, number: u64, job: u64, used: Duration) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        if let Some((tenant, owner)) = state.abandoned.remove(&number) {
            state.finish_abandoned(tenant, owner, now + self.limits.blocked_for, now);
            return false;
        }
        let Some(slot) = state.slots.get_mut(&number) else {
            return false;
        };
        let done = slot.now.take();
        if std::mem::take(&mut slot.is_hopeless)
            && let Some((job, _)) = done
        {
            state.finish_abandoned(job.tenant, job.owner, now + self.limits.blocked_for, now);
            return true;
        }
        state.scheduler.finish(job, used, now);
        if state.sleeping > 0 && state.scheduler.sizes().0 > 0 {
            // Its tenant may have been the only one that waits, and could not have more threads.
            self.wakes.notify_one();
        }
        true
    }

    /// Lets what belongs to somebody run again.
    pub(super) fn switch_on(&self, owner: EntityId) {
        let mut state = self.state.lock();
        if state.switched_off.get(&owner).is_some_and(Option::is_some) {
            state.switched_off.remove(&owner);
        }
    }

    /// Ends calls that wait or run.
    pub(super) fn cancel(
        &self,
        tenant: Option<TenantId>,
        is_meant: impl Fn(&ScriptJob) -> bool,
        why: &'static str,
    ) {
        let removed = {
            let mut state = self.state.lock();
            for slot in state.slots.values() {
                let is_its =
                    |job: &ScriptJob| tenant.is_none_or(|tenant| job.tenant == tenant) && is_meant(job);
                if slot.now.as_ref().is_some_and(|(job, _)| is_its(job)) {
                    slot.interrupt.set();
                }
            }
            state.scheduler.remove(tenant, is_meant)
        };
        for job in removed {
            job.work.refuse(ScriptRefusal::Ended(why));
        }
    }

    pub(super) fn stop(&self) {
        let dropped = {
            let mut state = self.state.lock();
            self.is_stopped.store(true, Ordering::Release);
            for slot in state.slots.values() {
                slot.interrupt.set();
            }
            state.scheduler.remove(None, |_| true)
        };
        self.wakes.notify_all();
        self.ends.notify_all();
        drop(dropped);
    }

    /// Looks after calls that do not end at their limits, as long as the pool works.
    fn watch(self: Arc<Self>) {
        loop {
            let late = {
                let mut state = self.state.lock();
                if self.is_stopped() {
                    return;
                }
                self.ends.wait_for(&mut state, WATCH_INTERVAL);
                if self.is_stopped() {
                    return;
                }
                self.collect_late_calls(&mut state)
            };
            for (number, job, replaces) in late {
                self.abandon_call(number, job, replaces);
            }
            self.ledger.show();
        }
    }

    /// Threads whose calls are over their time, those calls, and whether each thread is to be replaced.
    fn collect_late_calls(&self, state: &mut ScriptPoolState) -> Vec<(u64, u64, bool)> {
        let now = Instant::now();
        state.scheduler.prune(now);
        state
            .switched_off
            .retain(|_, until| until.is_none_or(|until| now < until));
        let (waiting, running) = state.scheduler.sizes();
        metrics::gauge!("fieldline_script_calls_waiting").set(waiting as f64);
        metrics::gauge!("fieldline_script_calls_running").set(running as f64);
        metrics::gauge!("fieldline_script_threads_abandoned").set(state.abandoned.len() as f64);
        if waiting > 0 && state.sleeping > 0 {
            // Slow tenants are no longer slow by and by, which wakes nobody.
            self.wakes.notify_all();
        }
        let patience = self.limits.javascript.time.max(self.limits.tbel.time) + self.grace;
        let mut room = MAX_ABANDONED.saturating_sub(state.abandoned.len());
        let late = state.slots.iter().filter_map(|(number, slot)| {
            let (job, since) = slot.now.as_ref().filter(|_| !slot.is_hopeless)?;
            (now.saturating_duration_since(*since) > patience).then_some((*number, job.id))
        });
        late.map(|(number, job)| {
            let replaces = room > 0;
            room = room.saturating_sub(1);
            (number, job, replaces)
        })
        .collect()
    }

    /// Waits no longer for the call of a thread.
    fn abandon_call(self: &Arc<Self>, number: u64, late: u64, replaces: bool) {
        let (job, waited, thread) = {
            let mut state = self.state.lock();
            let Some(slot) = state.slots.get_mut(&number) else {
                return;
            };
            let Some((job, _)) = slot.now.as_ref().filter(|(job, _)| job.id == late) else {
                // It has ended just now.
                return;
            };
            let (job, thread) = (job.handle(), slot.thread);
            slot.is_hopeless = true;
            slot.interrupt.set();
            if !job.is_test {
                state.switched_off.insert(job.owner, None);
            }
            let waited = state.scheduler.abandon(job.id, Instant::now());
            if replaces {
                state.slots.remove(&number);
                state.abandoned.insert(number, (job.tenant, job.owner));
            }
            (job, waited, thread)
        };
        let (tenant, owner) = (job.tenant, job.owner);
        warn!(%tenant, %owner, replaced = replaces, "a script cannot be stopped, its thread is abandoned");
        metrics::counter!("fieldline_script_calls_abandoned_total").increment(1);
        self.ledger.count_overrun(tenant, owner);
        (self.switched_off)(tenant, owner, self.limits.blocked_for);
        // It goes on for as long as it likes, but not at the cost of others.
        if let Err(error) = rustix::process::setpriority_process(Some(thread), LOWEST_PRIORITY) {
            warn!(%error, "cannot lower the priority of an abandoned thread");
        }
        if replaces {
            self.spawn();
        }
        job.work.refuse(ScriptRefusal::Abandoned);
        for job in waited {
            self.ledger.count_refusal(job.tenant, job.owner);
            job.work.refuse(ScriptRefusal::Lost);
        }
    }
}

impl ScriptPoolState {
    fn is_off(&self, owner: EntityId) -> bool {
        self.switched_off
            .get(&owner)
            .is_some_and(|until| until.is_none_or(|until| Instant::now() < until))
    }

    /// A call that was given up has returned after all.
    fn finish_abandoned(&mut self, tenant: TenantId, owner: EntityId, off_until: Instant, now: Instant) {
        if let Some(until) = self.switched_off.get_mut(&owner) {
            *until = Some(off_until);
        }
        self.scheduler.finish_abandoned(tenant, now);
    }
}
