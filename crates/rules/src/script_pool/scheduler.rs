//! Whose call is next: that of the tenant that has used the least time, and of a tenant's calls the oldest one whose
//! originator has none under way.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_model::{EntityId, TenantId};
use rustc_hash::FxHashMap;
use uuid::Uuid;

use super::task::{ScriptRefusal, ScriptTask};

/// Calls that take longer make their tenant one of the slow ones.
pub(super) const SLOW_CALL_THRESHOLD: Duration = Duration::from_millis(100);
/// How long a tenant is a slow one after such a call.
pub(super) const SLOW_TENANT_PERIOD: Duration = Duration::from_secs(10);
/// What an idle tenant has used is forgotten after that.
const IDLE_FOR: Duration = Duration::from_secs(60);

/// How much may wait and run.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptPoolLimits {
    /// Threads that calls run on.
    pub(super) threads: usize,
    /// Calls of one tenant that wait.
    pub(super) waiting: usize,
    /// Bytes of their arguments.
    pub(super) waiting_bytes: usize,
    /// Calls of all tenants that wait.
    pub(super) all_waiting: usize,
    /// Bytes of their arguments.
    pub(super) all_waiting_bytes: usize,
    /// Tests of one tenant that run.
    pub(super) tests: usize,
    /// Tests of one tenant that wait.
    pub(super) tests_waiting: usize,
}

/// A call that waits.
pub(super) struct ScriptJob {
    pub(super) id: u64,
    pub(super) tenant: TenantId,
    pub(super) owner: EntityId,
    /// Calls with the same one come one after the other.
    pub(super) order_key: Uuid,
    pub(super) scope: u64,
    pub(super) bytes: usize,
    pub(super) is_test: bool,
    pub(super) since: Instant,
    pub(super) work: Arc<dyn ScriptTask>,
}

impl ScriptJob {
    /// The same call, for those who may have to end it.
    pub(super) fn handle(&self) -> Self {
        Self {
            work: self.work.clone(),
            ..*self
        }
    }
}

/// The calls of one originator, in their order.
#[derive(Default)]
struct OriginatorQueue {
    jobs: VecDeque<ScriptJob>,
    is_running: bool,
}

#[derive(Default)]
struct TenantScriptQueue {
    /// Nanoseconds, from where all tenants began.
    spent: u64,
    /// Where it stands in the order, if anything of it may run.
    listed: Option<u64>,
    lines: FxHashMap<Uuid, OriginatorQueue>,
    /// Lines whose first call may run.
    ready: VecDeque<Uuid>,
    tests: VecDeque<ScriptJob>,
    waiting: usize,
    bytes: usize,
    running: usize,
    running_tests: usize,
    /// Calls that were abandoned and have not returned.
    lost: usize,
    slow_until: Option<Instant>,
    idle_since: Option<Instant>,
}

impl TenantScriptQueue {
    fn is_idle(&self) -> bool {
        self.waiting == 0 && self.tests.is_empty() && self.running == 0 && self.lost == 0
    }

    fn is_slow(&self, now: Instant) -> bool {
        self.slow_until.is_some_and(|until| now < until)
    }

    fn may_test(&self, bounds: &ScriptPoolLimits) -> bool {
        !self.tests.is_empty() && self.running_tests < bounds.tests
    }

    fn may_run(&self, bounds: &ScriptPoolLimits) -> bool {
        self.lost == 0
            && self.running < bounds.threads.saturating_sub(1).max(1)
            && (!self.ready.is_empty() || self.may_test(bounds))
    }
}

struct RunningScript {
    tenant: TenantId,
    turn: Uuid,
    is_test: bool,
    since: Instant,
}

/// Calls that wait and run. See the module.
pub(super) struct ScriptScheduler {
    bounds: ScriptPoolLimits,
    tenants: FxHashMap<TenantId, TenantScriptQueue>,
    order: BTreeSet<(u64, Uuid)>,
    /// What a tenant that comes anew begins with.
    floor: u64,
    running: FxHashMap<u64, RunningScript>,
    waiting: usize,
    bytes: usize,
}

impl ScriptScheduler {
    pub(super) fn new(bounds: ScriptPoolLimits) -> Self {
        Self {
            bounds,
            tenants: FxHashMap::default(),
            order: BTreeSet::new(),
            floor: 0,
            running: FxHashMap::default(),
            waiting: 0,
            bytes: 0,
        }
    }

    /// Calls that wait and that run.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.waiting, self.running.len())
    }

    /// Takes a call, unless there is too much of them: then it comes back with the limit.
    pub(super) fn push(&mut self, job: ScriptJob) -> Result<(), Box<(ScriptJob, ScriptRefusal)>> {
        if let Some(refusal) = self.refusal(&job) {
            return Err(Box::new((job, refusal)));
        }
        let id = job.tenant;
        let tenant = self.tenants.entry(id).or_default();
        if tenant.is_idle() {
            // Nobody saves up turns by not using them.
            tenant.spent = tenant.spent.max(self.floor);
            tenant.idle_since = None;
        }
        self.waiting += 1;
        self.bytes += job.bytes;
        if job.is_test {
            tenant.tests.push_back(job);
        } else {
            tenant.waiting += 1;
            tenant.bytes += job.bytes;
            let turn = job.order_key;
            let line = tenant.lines.entry(turn).or_default();
            line.jobs.push_back(job);
            if line.jobs.len() == 1 && !line.is_running {
                tenant.ready.push_back(turn);
            }
        }
        self.update_order(id);
        Ok(())
    }

    fn refusal(&self, job: &ScriptJob) -> Option<ScriptRefusal> {
        let bounds = &self.bounds;
        let known = self.tenants.get(&job.tenant);
        if known.is_some_and(|tenant| tenant.lost > 0) {
            return Some(ScriptRefusal::Lost);
        }
        let full = |limit, count| Some(ScriptRefusal::Full { limit, count });
        let (waiting, bytes, tests) = known.map_or((0, 0, 0), |tenant| {
            (
                tenant.waiting,
                tenant.bytes,
                tenant.tests.len() + tenant.running_tests,
            )
        });
        if job.is_test {
            if tests >= bounds.tests + bounds.tests_waiting {
                return Some(ScriptRefusal::TooManyTests {
                    limit: bounds.tests + bounds.tests_waiting,
                });
            }
        } else if waiting >= bounds.waiting {
            return full("rules.script-waiting", bounds.waiting);
        } else if bytes.saturating_add(job.bytes) > bounds.waiting_bytes {
            return full("rules.script-waiting-bytes", bounds.waiting_bytes);
        }
        if self.waiting >= bounds.all_waiting {
            return full("rules.script-waiting-total", bounds.all_waiting);
        }
        if self.bytes.saturating_add(job.bytes) > bounds.all_waiting_bytes {
            return full("rules.script-waiting-total-bytes", bounds.all_waiting_bytes);
        }
        None
    }

    /// The next call, which runs from here on. `None` where none may.
    pub(super) fn pick(&mut self, now: Instant) -> Option<ScriptJob> {
        let is_slow = |run: &RunningScript| {
            now.saturating_duration_since(run.since) > SLOW_CALL_THRESHOLD
                || self
                    .tenants
                    .get(&run.tenant)
                    .is_some_and(|tenant| tenant.is_slow(now))
        };
        let slow = self.running.values().filter(|run| is_slow(run)).count();
        // One thread is left to those whose calls are short.
        let has_room = slow + 1 < self.bounds.threads.max(2);
        let next = self.order.iter().find(|(_, id)| {
            has_room
                || self
                    .tenants
                    .get(&TenantId(*id))
                    .is_some_and(|tenant| !tenant.is_slow(now))
        });
        let id = TenantId(next?.1);
        let job = self.take(id)?;
        self.running.insert(
            job.id,
            RunningScript {
                tenant: id,
                turn: job.order_key,
                is_test: job.is_test,
                since: now,
            },
        );
        self.update_order(id);
        Some(job)
    }

    fn take(&mut self, id: TenantId) -> Option<ScriptJob> {
        let tenant = self.tenants.get_mut(&id)?;
        self.floor = self.floor.max(tenant.spent);
        let first = tenant
            .ready
            .front()
            .and_then(|turn| tenant.lines.get(turn)?.jobs.front())
            .map(|job| job.id);
        let test = tenant.tests.front().map(|job| job.id);
        let is_test =
            tenant.may_test(&self.bounds) && first.is_none_or(|first| test.is_some_and(|it| it < first));
        let job = if is_test {
            tenant.running_tests += 1;
            tenant.tests.pop_front()?
        } else {
            let turn = tenant.ready.pop_front()?;
            let line = tenant.lines.get_mut(&turn)?;
            let job = line.jobs.pop_front()?;
            line.is_running = true;
            tenant.waiting -= 1;
            tenant.bytes -= job.bytes;
            job
        };
        tenant.running += 1;
        self.waiting -= 1;
        self.bytes -= job.bytes;
        Some(job)
    }

    /// A call has ended that had run for so long.
    pub(super) fn finish(&mut self, job: u64, used: Duration, now: Instant) {
        let Some(run) = self.running.remove(&job) else {
            return;
        };
        if let Some(tenant) = self.tenants.get_mut(&run.tenant) {
            tenant.running -= 1;
            charge(tenant, used, now);
            release(tenant, &run);
            if tenant.is_idle() {
                tenant.idle_since = Some(now);
            }
        }
        self.update_order(run.tenant);
    }

    /// A call is waited for no longer: until it has returned, its tenant gets no thread. What waited of the tenant.
    pub(super) fn abandon(&mut self, job: u64, now: Instant) -> Vec<ScriptJob> {
        let Some(run) = self.running.remove(&job) else {
            return Vec::new();
        };
        if let Some(tenant) = self.tenants.get_mut(&run.tenant) {
            tenant.running -= 1;
            tenant.running_tests -= usize::from(run.is_test);
            tenant.lost += 1;
            charge(tenant, now.saturating_duration_since(run.since), now);
            if let Some(line) = tenant.lines.get_mut(&run.turn) {
                line.is_running = false;
            }
        }
        self.remove(Some(run.tenant), |_| true)
    }

    /// A call that was abandoned has returned.
    pub(super) fn finish_abandoned(&mut self, id: TenantId, now: Instant) {
        if let Some(tenant) = self.tenants.get_mut(&id) {
            tenant.lost = tenant.lost.saturating_sub(1);
            if tenant.is_idle() {
                tenant.idle_since = Some(now);
            }
        }
        self.update_order(id);
    }

    /// Takes calls out that wait.
    pub(super) fn remove(
        &mut self,
        of: Option<TenantId>,
        is_meant: impl Fn(&ScriptJob) -> bool,
    ) -> Vec<ScriptJob> {
        let ids: Vec<TenantId> = match of {
            Some(id) => vec![id],
            None => self.tenants.keys().copied().collect(),
        };
        let mut removed = Vec::new();
        for id in ids {
            let Some(tenant) = self.tenants.get_mut(&id) else {
                continue;
            };
            let before = removed.len();
            for line in tenant.lines.values_mut() {
                removed.extend(drain(&mut line.jobs, &is_meant));
            }
            for job in &removed[before..] {
                tenant.waiting -= 1;
                tenant.bytes -= job.bytes;
            }
            tenant
                .lines
                .retain(|_, line| line.is_running || !line.jobs.is_empty());
            let lines = &tenant.lines;
            tenant.ready.retain(|turn| {
                lines
                    .get(turn)
                    .is_some_and(|line| !line.is_running && !line.jobs.is_empty())
            });
            removed.extend(drain(&mut tenant.tests, &is_meant));
            self.waiting -= removed.len() - before;
            self.bytes -= removed[before..].iter().map(|job| job.bytes).sum::<usize>();
            self.update_order(id);
        }
        removed
    }

    /// Forgets tenants that have had nothing to run for a while.
    pub(super) fn prune(&mut self, now: Instant) {
        self.tenants.retain(|_, tenant| {
            let is_old = |since| now.saturating_duration_since(since) >= IDLE_FOR;
            !(tenant.is_idle() && tenant.idle_since.is_none_or(is_old))
        });
    }

    fn update_order(&mut self, id: TenantId) {
        let Some(tenant) = self.tenants.get_mut(&id) else {
            return;
        };
        if let Some(spent) = tenant.listed.take() {
            self.order.remove(&(spent, id.0));
        }
        if tenant.may_run(&self.bounds) {
            tenant.listed = Some(tenant.spent);
            self.order.insert((tenant.spent, id.0));
        }
    }
}

fn charge(tenant: &mut TenantScriptQueue, used: Duration, now: Instant) {
    let nanos = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
    tenant.spent = tenant.spent.saturating_add(nanos);
    if used > SLOW_CALL_THRESHOLD {
        tenant.slow_until = Some(now + SLOW_TENANT_PERIOD);
    }
}

/// Lets the next call of the originator follow.
fn release(tenant: &mut TenantScriptQueue, run: &RunningScript) {
    if run.is_test {
        tenant.running_tests -= 1;
        return;
    }
    let Some(line) = tenant.lines.get_mut(&run.turn) else {
        return;
    };
    line.is_running = false;
    if line.jobs.is_empty() {
        tenant.lines.remove(&run.turn);
    } else {
        tenant.ready.push_back(run.turn);
    }
}

fn drain(jobs: &mut VecDeque<ScriptJob>, is_meant: impl Fn(&ScriptJob) -> bool) -> Vec<ScriptJob> {
    if !jobs.iter().any(&is_meant) {
        return Vec::new();
    }
    let (removed, kept) = std::mem::take(jobs).into_iter().partition::<Vec<_>, _>(is_meant);
    *jobs = kept.into();
    removed
}
