//! The pool, with scripts and with closures that stand for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use fieldline_core::options::HumanDuration;
use fieldline_core::ports::RuleUsageSource as _;
use fieldline_model::{EntityId, RuleNodeId, TenantId};
use fieldline_script::{Script, ScriptError, ScriptLang, ScriptLimits};
use uuid::Uuid;

use super::scheduler::{SLOW_CALL_THRESHOLD, ScriptJob, ScriptPoolLimits, ScriptScheduler};
use super::task::ScriptTask;
use super::{ScriptCaller, ScriptCancelScope, ScriptPool, ScriptRefusal};
use crate::engine::Options;

const PATIENCE: Duration = Duration::from_secs(30);
const SPIN: &str = "while (true) {}";

fn bounds() -> ScriptPoolLimits {
    ScriptPoolLimits {
        threads: 3,
        waiting: 100,
        waiting_bytes: 1000,
        all_waiting: 150,
        all_waiting_bytes: 1500,
        tests: 1,
        tests_waiting: 1,
    }
}

/// A call that nobody makes.
struct Nothing;

impl ScriptTask for Nothing {
    fn run(&self, _: &mut fieldline_script::ScriptHost, _: &dyn Fn() -> bool) {}
    fn refuse(&self, _: ScriptRefusal) {}
}

fn job(id: u64, tenant: TenantId) -> ScriptJob {
    ScriptJob {
        id,
        tenant,
        owner: tenant.into(),
        order_key: Uuid::from_u128(id.into()),
        scope: 0,
        bytes: 1,
        is_test: false,
        since: Instant::now(),
        work: Arc::new(Nothing),
    }
}

fn push(turns: &mut ScriptScheduler, job: ScriptJob) -> Result<(), ScriptRefusal> {
    turns.push(job).map_err(|refused| refused.1)
}

#[test]
fn tenants_get_the_same_time_whoever_came_first_and_however_much_waits() {
    let mut turns = ScriptScheduler::new(bounds());
    let (slow, quick) = (TenantId::new(), TenantId::new());
    let mut now = Instant::now();
    for id in 1..=50 {
        push(&mut turns, job(id, slow)).unwrap();
    }
    for id in 51..=100 {
        push(&mut turns, job(id, quick)).unwrap();
    }
    let mut used = [Duration::ZERO; 2];
    while used.iter().sum::<Duration>() < Duration::from_millis(300) {
        let next = turns.pick(now).unwrap();
        let (index, took) = if next.tenant == slow { (0, 50) } else { (1, 10) };
        let took = Duration::from_millis(took);
        now += took;
        used[index] += took;
        turns.finish(next.id, took, now);
    }
    let difference = used[0].abs_diff(used[1]);
    assert!(difference <= Duration::from_millis(50), "{used:?}");
}

#[test]
fn nobody_saves_up_turns() {
    let mut turns = ScriptScheduler::new(bounds());
    let (busy, late) = (TenantId::new(), TenantId::new());
    let now = Instant::now();
    for id in 1..=10 {
        push(&mut turns, job(id, busy)).unwrap();
        let next = turns.pick(now).unwrap();
        turns.finish(next.id, Duration::from_millis(90), now);
    }
    for id in 11..=14 {
        push(&mut turns, job(id, busy)).unwrap();
        push(&mut turns, job(id + 10, late)).unwrap();
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        let next = turns.pick(now).unwrap();
        order.push(next.tenant == late);
        turns.finish(next.id, Duration::from_millis(90), now);
    }
    let late = order.iter().filter(|is_late| **is_late).count();
    assert!((2..=3).contains(&late), "{order:?}");
}

#[test]
fn a_tenant_never_has_all_threads_and_slow_ones_leave_one_to_the_others() {
    let mut turns = ScriptScheduler::new(bounds());
    let (first, second, quick) = (TenantId::new(), TenantId::new(), TenantId::new());
    let now = Instant::now();
    for id in 1..=3 {
        push(&mut turns, job(id, first)).unwrap();
    }
    let (one, two) = (turns.pick(now).unwrap(), turns.pick(now).unwrap());
    assert!(
        turns.pick(now).is_none(),
        "two of three threads are a tenant's at most"
    );
    let later = now + SLOW_CALL_THRESHOLD * 2;
    turns.finish(one.id, SLOW_CALL_THRESHOLD * 2, later);
    turns.finish(two.id, SLOW_CALL_THRESHOLD * 2, later);
    push(&mut turns, job(10, second)).unwrap();
    let next = turns.pick(later).unwrap();
    assert_eq!(next.tenant, second, "it has used less");
    turns.finish(next.id, SLOW_CALL_THRESHOLD * 2, later);
    for id in 20..24 {
        push(&mut turns, job(id, first)).unwrap();
        push(&mut turns, job(id + 10, second)).unwrap();
    }
    assert!(turns.pick(later).is_some() && turns.pick(later).is_some());
    assert!(
        turns.pick(later).is_none(),
        "both are slow, and have two threads already"
    );
    push(&mut turns, job(40, quick)).unwrap();
    assert_eq!(turns.pick(later).map(|next| next.tenant), Some(quick));
}

#[test]
fn calls_about_one_originator_keep_their_order_and_others_pass() {
    let mut turns = ScriptScheduler::new(bounds());
    let tenant = TenantId::new();
    let now = Instant::now();
    let of = |id, turn| ScriptJob {
        order_key: Uuid::from_u128(turn),
        ..job(id, tenant)
    };
    for (id, turn) in [(1, 7), (2, 7), (3, 8), (4, 7)] {
        push(&mut turns, of(id, turn)).unwrap();
    }
    assert_eq!(turns.pick(now).unwrap().id, 1);
    assert_eq!(
        turns.pick(now).unwrap().id,
        3,
        "the second one waits for the first"
    );
    assert!(turns.pick(now).is_none());
    turns.finish(1, Duration::from_millis(1), now);
    assert_eq!(turns.pick(now).unwrap().id, 2);
    assert_eq!(turns.remove(Some(tenant), |job| job.id == 4).len(), 1);
    turns.finish(2, Duration::from_millis(1), now);
    turns.finish(3, Duration::from_millis(1), now);
    assert!(turns.pick(now).is_none());
    assert_eq!(turns.sizes(), (0, 0));
    push(&mut turns, of(5, 7)).unwrap();
    assert_eq!(turns.pick(now).unwrap().id, 5);
}

#[test]
fn what_waits_is_bounded_by_tenant_and_in_all_by_calls_and_by_bytes() {
    let full = |limit, count| Err(ScriptRefusal::Full { limit, count });
    let of = |id, tenant, bytes| ScriptJob {
        bytes,
        ..job(id, tenant)
    };
    let mut turns = ScriptScheduler::new(bounds());
    let (first, second) = (TenantId::new(), TenantId::new());
    for id in 0..100 {
        push(&mut turns, of(id, first, 1)).unwrap();
    }
    assert_eq!(
        push(&mut turns, of(100, first, 1)),
        full("rules.script-waiting", 100)
    );
    for id in 200..250 {
        push(&mut turns, of(id, second, 1)).unwrap();
    }
    assert_eq!(
        push(&mut turns, of(250, second, 1)),
        full("rules.script-waiting-total", 150)
    );
    let mut turns = ScriptScheduler::new(bounds());
    push(&mut turns, of(1, first, 1000)).unwrap();
    assert_eq!(
        push(&mut turns, of(2, first, 1)),
        full("rules.script-waiting-bytes", 1000)
    );
    push(&mut turns, of(3, second, 500)).unwrap();
    assert_eq!(
        push(&mut turns, of(4, second, 1)),
        full("rules.script-waiting-total-bytes", 1500)
    );
    // What runs no longer waits.
    assert!(turns.pick(Instant::now()).is_some());
    assert!(turns.pick(Instant::now()).is_some());
    push(&mut turns, of(5, first, 1000)).unwrap();
}

#[test]
fn tests_of_a_tenant_have_bounds_of_their_own() {
    let mut turns = ScriptScheduler::new(bounds());
    let tenant = TenantId::new();
    let now = Instant::now();
    let test = |id| ScriptJob {
        is_test: true,
        ..job(id, tenant)
    };
    push(&mut turns, test(1)).unwrap();
    assert_eq!(turns.pick(now).unwrap().id, 1);
    push(&mut turns, test(2)).unwrap();
    assert_eq!(
        push(&mut turns, test(3)),
        Err(ScriptRefusal::TooManyTests { limit: 2 })
    );
    assert!(turns.pick(now).is_none(), "one runs at a time");
    push(&mut turns, job(4, tenant)).unwrap();
    assert_eq!(turns.pick(now).unwrap().id, 4, "messages do not wait for tests");
    turns.finish(1, Duration::from_millis(1), now);
    assert_eq!(turns.pick(now).unwrap().id, 2);
}

#[test]
fn while_a_call_is_lost_its_tenant_gets_no_thread() {
    let mut turns = ScriptScheduler::new(bounds());
    let tenant = TenantId::new();
    let now = Instant::now();
    push(&mut turns, job(1, tenant)).unwrap();
    turns.pick(now).unwrap();
    push(&mut turns, job(2, tenant)).unwrap();
    let waited = turns.abandon(1, now);
    assert_eq!(waited.len(), 1);
    assert_eq!(push(&mut turns, job(3, tenant)), Err(ScriptRefusal::Lost));
    turns.finish_abandoned(tenant, now);
    push(&mut turns, job(4, tenant)).unwrap();
    assert_eq!(turns.pick(now).unwrap().id, 4);
}

fn options(threads: u16) -> Options {
    Options {
        script_threads: threads,
        ..Options::default()
    }
}

fn pool(options: &Options) -> Arc<ScriptPool> {
    ScriptPool::start(options, Arc::default(), Box::new(|_, _, _| {}))
}

fn spin() -> Script {
    Script::new(ScriptLang::JavaScript, &[], SPIN).unwrap()
}

fn caller() -> ScriptCaller {
    ScriptCaller::of(TenantId::new(), RuleNodeId::new().into())
}

/// Has a script spin; the receiver is told when it has begun, and how it has ended.
fn spinning(pool: &ScriptPool, caller: ScriptCaller) -> mpsc::Receiver<Option<Result<(), ScriptError>>> {
    let (told, tells) = mpsc::channel();
    let begun = told.clone();
    let script = spin();
    pool.submit(
        caller,
        0,
        (),
        move |host, ()| {
            begun.send(None).unwrap();
            host.call(&script, &[]).map(drop)
        },
        move |result| drop(told.send(Some(result.map_err(|_| ()).unwrap()))),
    );
    assert_eq!(tells.recv_timeout(PATIENCE).unwrap(), None);
    tells
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_is_served_while_one_spins() {
    let pool = pool(&options(2));
    let evil = caller();
    let spins = spinning(&pool, evil);
    // It waits for the thread that its tenant has, not for the one that is left.
    pool.submit(evil, 0, (), |_, ()| (), |_| {});
    let answer = tokio::time::timeout(PATIENCE / 8, pool.call(caller(), 0, |_| 5)).await;
    assert_eq!(answer.unwrap(), Ok(5));
    pool.cancel_owner(evil.tenant, evil.owner);
    assert_eq!(
        spins.recv_timeout(PATIENCE).unwrap(),
        Some(Err(ScriptError::Ended))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_waits_for_is_ended_running_or_waiting() {
    let pool = pool(&options(2));
    let of = caller();
    let (begun, begins) = mpsc::channel();
    let (script, ended) = (spin(), Arc::new(AtomicBool::new(false)));
    let seen = ended.clone();
    let (running, served) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
    let task = tokio::spawn(async move {
        let call = running.call(of, 0, move |host| {
            begun.send(()).unwrap();
            let result = host.call(&script, &[]);
            seen.store(result == Err(ScriptError::Ended), Ordering::SeqCst);
        });
        call.await
    });
    begins.recv_timeout(PATIENCE).unwrap();
    let (waiting, count) = (pool.clone(), served.clone());
    let second = tokio::spawn(async move {
        let count = count.clone();
        waiting
            .call(of, 0, move |_| count.fetch_add(1, Ordering::SeqCst))
            .await
    });
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    // The thread is free again, and the one that waited is not made.
    assert_eq!(pool.call(of, 0, |_| 1).await, Ok(1));
    assert!(ended.load(Ordering::SeqCst));
    assert_eq!(served.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_a_scope_end_together() {
    let pool = pool(&options(2));
    let scope = ScriptCancelScope::fresh();
    let of = ScriptCaller { scope, ..caller() };
    let spins = spinning(&pool, of);
    let (told, tells) = mpsc::channel();
    pool.submit(of, 0, 7, |_, _: i32| (), move |result| told.send(result).unwrap());
    pool.cancel_scope(ScriptCancelScope::fresh(), None);
    pool.cancel_scope(scope, Some(TenantId::new()));
    assert!(tells.try_recv().is_err(), "neither scope nor tenant are its own");
    pool.cancel_scope(scope, Some(of.tenant));
    let refused = tells.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert!(
        matches!(refused, (ScriptRefusal::Ended(_), Some(7))),
        "the input comes back"
    );
    assert_eq!(
        spins.recv_timeout(PATIENCE).unwrap(),
        Some(Err(ScriptError::Ended))
    );
}

#[test]
fn stopping_ends_what_runs_and_tells_nobody() {
    let pool = pool(&options(2));
    let of = caller();
    let spins = spinning(&pool, of);
    let (told, tells) = mpsc::channel::<()>();
    pool.submit(of, 0, (), |_, ()| (), move |_| told.send(()).unwrap());
    pool.stop();
    // Both ends of the channels are gone, and nothing was sent.
    assert_eq!(
        tells.recv_timeout(PATIENCE),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
    assert_eq!(
        spins.recv_timeout(PATIENCE),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
}

/// A pool whose calls may last 50 ms, and are abandoned soon after.
fn hasty(threads: u16) -> (Arc<ScriptPool>, mpsc::Receiver<(TenantId, EntityId)>) {
    let mut limits = ScriptLimits::default();
    limits.javascript.time = Duration::from_millis(50);
    limits.tbel.time = Duration::from_millis(50);
    limits.blocked_for = Duration::ZERO;
    let (told, tells) = mpsc::channel();
    let switched_off = move |tenant, owner, _| {
        let _ = told.send((tenant, owner));
    };
    let ledger = Arc::default();
    let grace = Duration::from_millis(50);
    let pool = ScriptPool::with_limits(&options(threads), limits, grace, ledger, Box::new(switched_off));
    (pool, tells)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_not_return_is_abandoned_and_its_tenant_waits_until_it_does() {
    let (pool, switched_off) = hasty(2);
    let hung = caller();
    let (release, held) = mpsc::channel::<()>();
    let call = pool.call(hung, 0, move |_| held.recv().is_ok());
    assert_eq!(call.await, Err(ScriptRefusal::Abandoned));
    assert_eq!(
        switched_off.recv_timeout(PATIENCE).unwrap(),
        (hung.tenant, hung.owner)
    );
    assert_eq!(pool.ledger().of_tenant(hung.tenant).total.overruns, 1);
    assert_eq!(pool.call(hung, 0, |_| ()).await, Err(ScriptRefusal::SwitchedOff));
    let other = ScriptCaller::of(hung.tenant, RuleNodeId::new().into());
    assert_eq!(pool.call(other, 0, |_| ()).await, Err(ScriptRefusal::Lost));
    assert_eq!(pool.ledger().of_tenant(hung.tenant).total.refused, 2);
    // Both threads serve the others.
    for _ in 0..2 {
        assert_eq!(pool.call(caller(), 0, |_| 1).await, Ok(1));
    }
    release.send(()).unwrap();
    let back = Instant::now();
    while pool.call(other, 0, |_| ()).await.is_err() {
        assert!(back.elapsed() < PATIENCE, "the tenant is never served again");
        tokio::task::yield_now().await;
    }
    pool.cancel_owner(hung.tenant, hung.owner);
    assert_eq!(
        pool.call(hung, 0, |_| ()).await,
        Ok(()),
        "its chain was saved anew"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_few_threads_are_abandoned_and_the_rest_goes_on() {
    let (pool, switched_off) = hasty(6);
    let mut releases = Vec::new();
    for _ in 0..5 {
        let (release, held) = mpsc::channel::<()>();
        releases.push(release);
        let call = pool.call(caller(), 0, move |_| held.recv().is_ok());
        assert_eq!(call.await, Err(ScriptRefusal::Abandoned));
        switched_off.recv_timeout(PATIENCE).unwrap();
    }
    assert_eq!(pool.call(caller(), 0, |_| 1).await, Ok(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_scripts_of_a_call_share_its_time() {
    let pool = pool(&Options {
        script_time_limit: HumanDuration::millis(300),
        ..options(2)
    });
    let script = Script::new(ScriptLang::Tbel, &[], "while (true) {}").unwrap();
    let begun = Instant::now();
    let results = pool.call(caller(), 0, move |host| {
        (0..100).map(|_| host.call(&script, &[])).collect::<Vec<_>>()
    });
    let results = results.await.unwrap();
    assert!(results.iter().all(Result::is_err));
    assert!(begun.elapsed() < PATIENCE / 2, "each has had all of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_is_counted_by_owner() {
    let pool = pool(&options(2));
    let of = caller();
    pool.call(of, 40, |_| std::hint::black_box(())).await.unwrap();
    pool.call(of, 2, |_| ()).await.unwrap();
    pool.test(of.tenant, 0, |_| ()).await.unwrap();
    // The last call is counted once its thread takes the next one.
    let seen = Instant::now();
    let report = loop {
        let report = pool.ledger().of_tenant(of.tenant);
        if report.total.calls == 3 {
            break report;
        }
        assert!(seen.elapsed() < PATIENCE);
        tokio::task::yield_now().await;
    };
    let own = report.parts.iter().find(|part| part.entity == of.owner).unwrap();
    assert_eq!((own.used.calls, own.used.bytes), (2, 42));
    assert_eq!(pool.ledger().of_tenants(1).parts[0].entity, of.tenant.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_its_own_caller_s_alone() {
    let pool = pool(&options(2));
    let call = pool.call(caller(), 0, |_| assert_eq!(1, 2));
    assert_eq!(call.await, Err(ScriptRefusal::Panicked));
    assert_eq!(pool.call(caller(), 0, |_| 1).await, Ok(1));
}
