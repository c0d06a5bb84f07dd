//! Scripts of all tenants on threads of their own, apart from those that move partitions.
//!
//! Each thread has a [`ScriptHost`]. The next call is that of the tenant that has used the least time; a tenant never has all
//! threads, and those whose calls take long leave one to the others. Calls about one originator run one after the other, in
//! their order. What waits is bounded, and what waits or runs can be ended: by whoever made the call, when the chain of its
//! node is replaced, when its batch's time is up, and when the program stops. A call that cannot be stopped at its
//! limit, because it is inside a function of the engine, is abandoned: another thread takes the place of its own.

mod scheduler;
mod task;
mod threads;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fieldline_model::{EntityId, TenantId};
use fieldline_script::{ScriptHost, ScriptLimits};
use tokio::sync::oneshot;
use uuid::Uuid;

use self::scheduler::{ScriptJob, ScriptPoolLimits};
pub use self::task::ScriptRefusal;
use self::task::{ScriptTask, TypedScriptCall};
use self::threads::{MAX_ABANDONED, ScriptPoolShared};
use crate::engine::Options;
use crate::script_ledger::ScriptLedger;

/// How long a call may go on after its time limit before it is abandoned.
const ABANDON_GRACE: Duration = Duration::from_secs(2);
/// Fewest threads: a tenant is to have one and leave one.
const FEWEST_THREADS: usize = 2;

impl Options {
    fn threads(&self) -> usize {
        let processors =
            || std::thread::available_parallelism().map_or(FEWEST_THREADS, |count| count.get() + 1);
        match self.script_threads {
            0 => processors(),
            count => count.into(),
        }
        .max(FEWEST_THREADS)
    }

    fn limits(&self) -> ScriptLimits {
        let mut limits = ScriptLimits::default();
        limits.javascript.time = self.script_time_limit.0.max(Duration::from_millis(1));
        limits.javascript.memory = self.script_memory.as_usize();
        limits.tbel.time = limits.tbel.time.min(limits.javascript.time);
        limits
    }

    /// Bytes that all scripts together may take at a time, those of abandoned threads included.
    pub fn script_bytes(&self) -> u64 {
        let limits = self.limits();
        let of_thread = limits.javascript.memory + limits.tbel.memory;
        ((self.threads() + MAX_ABANDONED) * of_thread) as u64
    }

    fn bounds(&self) -> ScriptPoolLimits {
        ScriptPoolLimits {
            threads: self.threads(),
            waiting: self.script_waiting,
            waiting_bytes: self.script_waiting_bytes.as_usize(),
            all_waiting: self.script_waiting_total,
            all_waiting_bytes: self.script_waiting_total_bytes.as_usize(),
            tests: self.script_tests.max(1),
            tests_waiting: self.script_tests_waiting,
        }
    }
}

/// What calls belong to that are ended together, such as a round of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptCancelScope(u64);

static NEXT_SCOPE: AtomicU64 = AtomicU64::new(1);

impl ScriptCancelScope {
    /// Of calls that are ended one by one.
    pub const NONE: Self = Self(0);

    /// One that nothing belongs to yet.
    pub fn fresh() -> Self {
        Self(NEXT_SCOPE.fetch_add(1, Ordering::Relaxed))
    }
}

/// Whose call it is.
#[derive(Debug, Clone, Copy)]
pub struct ScriptCaller {
    /// The tenant.
    pub tenant: TenantId,
    /// The rule node or calculated field.
    pub owner: EntityId,
    /// Its calls about this one run in their order; the nil id where there is no order.
    pub order_key: Uuid,
    /// What it is ended with.
    pub scope: ScriptCancelScope,
}

impl ScriptCaller {
    /// A node or field whose calls have no order and no scope.
    pub const fn of(tenant: TenantId, owner: EntityId) -> Self {
        Self {
            tenant,
            owner,
            order_key: Uuid::nil(),
            scope: ScriptCancelScope::NONE,
        }
    }
}

/// Told when something is switched off: whose it is, and for how long.
pub type SwitchOffListener = Box<dyn Fn(TenantId, EntityId, Duration) + Send + Sync>;

/// See the module.
pub struct ScriptPool(Arc<ScriptPoolShared>);

impl ScriptPool {
    /// Starts the threads. They end when the pool is stopped or dropped.
    pub fn start(options: &Options, ledger: Arc<ScriptLedger>, switched_off: SwitchOffListener) -> Arc<Self> {
        Self::with_limits(options, options.limits(), ABANDON_GRACE, ledger, switched_off)
    }

    fn with_limits(
        options: &Options,
        limits: ScriptLimits,
        grace: Duration,
        ledger: Arc<ScriptLedger>,
        switched_off: SwitchOffListener,
    ) -> Arc<Self> {
        let shared = ScriptPoolShared::start(options.bounds(), limits, grace, ledger, switched_off);
        Arc::new(Self(shared))
    }

    /// What tenants have used.
    pub fn ledger(&self) -> &Arc<ScriptLedger> {
        &self.0.ledger
    }

    /// Limits of each call.
    pub fn limits(&self) -> &ScriptLimits {
        &self.0.limits
    }

    /// Has a call made of an input of so many bytes. `deliver` is told on the pool's thread, or at once where it is refused;
    /// never once the pool has stopped.
    pub fn submit<I: Send + 'static, R: Send + 'static>(
        &self,
        caller: ScriptCaller,
        bytes: usize,
        input: I,
        made: impl FnOnce(&mut ScriptHost, I) -> R + Send + 'static,
        deliver: impl FnOnce(Result<R, (ScriptRefusal, Option<I>)>) + Send + 'static,
    ) {
        let work = Arc::new(TypedScriptCall::new(input, made, deliver));
        self.0.submit(self.job(caller, bytes, false, work));
    }

    /// Has a call made, and waits for it. It is ended when the future is dropped.
    ///
    /// # Errors
    /// The call was refused, or ended from outside.
    pub async fn call<R: Send + 'static>(
        &self,
        caller: ScriptCaller,
        bytes: usize,
        made: impl FnOnce(&mut ScriptHost) -> R + Send + 'static,
    ) -> Result<R, ScriptRefusal> {
        self.wait(caller, bytes, false, made).await
    }

    /// Tries a script out for somebody: as [`Self::call`], but only few of a tenant at a time.
    ///
    /// # Errors
    /// The call was refused, or ended from outside.
    pub async fn test<R: Send + 'static>(
        &self,
        tenant: TenantId,
        bytes: usize,
        made: impl FnOnce(&mut ScriptHost) -> R + Send + 'static,
    ) -> Result<R, ScriptRefusal> {
        self.wait(ScriptCaller::of(tenant, tenant.into()), bytes, true, made)
            .await
    }

    async fn wait<R: Send + 'static>(
        &self,
        caller: ScriptCaller,
        bytes: usize,
        is_test: bool,
        made: impl FnOnce(&mut ScriptHost) -> R + Send + 'static,
    ) -> Result<R, ScriptRefusal> {
        let (answer, answered) = oneshot::channel();
        let deliver = move |result: Result<R, (ScriptRefusal, Option<()>)>| {
            // Whoever asked may be gone.
            let _ = answer.send(result.map_err(|(refusal, _)| refusal));
        };
        let work = Arc::new(TypedScriptCall::new(
            (),
            move |host: &mut ScriptHost, ()| made(host),
            deliver,
        ));
        let job = self.job(caller, bytes, is_test, work);
        let waits = ScriptCallFuture {
            shared: self.0.clone(),
            tenant: job.tenant,
            job: job.id,
            receiver: answered,
            is_done: false,
        };
        self.0.submit(job);
        waits.await
    }

    fn job(&self, caller: ScriptCaller, bytes: usize, is_test: bool, work: Arc<dyn ScriptTask>) -> ScriptJob {
        let id = self.0.next_id();
        ScriptJob {
            id,
            tenant: caller.tenant,
            owner: caller.owner,
            order_key: if caller.order_key.is_nil() {
                Uuid::from_u128(id.into())
            } else {
                caller.order_key
            },
            scope: caller.scope.0,
            bytes,
            is_test,
            since: Instant::now(),
            work,
        }
    }

    /// Ends what waits or runs for a node or field that is no longer in force, and lets it run again where it was switched
    /// off.
    pub fn cancel_owner(&self, tenant: TenantId, owner: EntityId) {
        self.0.switch_on(owner);
        let is_meant = |job: &ScriptJob| job.owner == owner && !job.is_test;
        self.0
            .cancel(Some(tenant), is_meant, "what it belongs to was changed");
    }

    /// Ends what waits or runs of a scope: of one tenant, or of all.
    pub fn cancel_scope(&self, scope: ScriptCancelScope, tenant: Option<TenantId>) {
        if scope != ScriptCancelScope::NONE {
            self.0.cancel(
                tenant,
                |job| job.scope == scope.0,
                "the time of its messages is up",
            );
        }
    }

    /// Ends everything. What waits or runs has no result any more, not even an error: it is not the fault of its messages.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

impl Drop for ScriptPool {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Waits for a call, and ends it when dropped.
struct ScriptCallFuture<R> {
    shared: Arc<ScriptPoolShared>,
    tenant: TenantId,
    job: u64,
    receiver: oneshot::Receiver<Result<R, ScriptRefusal>>,
    is_done: bool,
}

impl<R> Future for ScriptCallFuture<R> {
    type Output = Result<R, ScriptRefusal>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        std::pin::Pin::new(&mut self.receiver)
            .poll(context)
            .map(|answered| {
                self.is_done = true;
                answered.unwrap_or(Err(ScriptRefusal::Stopped))
            })
    }
}

impl<R> Drop for ScriptCallFuture<R> {
    fn drop(&mut self) {
        if !self.is_done {
            let job = self.job;
            self.shared
                .cancel(Some(self.tenant), |it| it.id == job, "nobody waits for it");
        }
    }
}
