use std::sync::atomic::{AtomicI64, Ordering};

use uuid::Uuid;

use super::*;
use crate::clock::Clock;
use crate::rate_limits::RateLimit;

#[derive(Default)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Reported(Mutex<Vec<OverloadSample>>);

impl OverloadSource for Reported {
    fn collect(&self, into: &mut Vec<OverloadSample>) {
        into.extend(self.0.lock().iter().cloned());
    }
}

struct World {
    hand: Arc<Hand>,
    source: Arc<Reported>,
    monitor: Arc<OverloadMonitor>,
}

impl World {
    fn new() -> Self {
        let (hand, source) = (Arc::new(Hand::default()), Arc::new(Reported::default()));
        let monitor = OverloadMonitor::new(hand.clone());
        monitor.add(source.clone());
        Self {
            hand,
            source,
            monitor,
        }
    }

    /// One look a second later, with these reports.
    fn look(&self, reports: &[OverloadSample]) {
        *self.source.0.lock() = reports.to_vec();
        self.hand.0.fetch_add(1_000, Ordering::Relaxed);
        self.monitor.look();
    }
}

fn tenant(number: u128) -> TenantId {
    TenantId(Uuid::from_u128(number))
}

fn lag(level: u64) -> OverloadSample {
    OverloadSample {
        kind: OverloadKind::QueueLag,
        scope: OverloadScope::All,
        subject: "Main".into(),
        measure: OverloadMeasure::Level(level),
        limit: None,
        reason: "behind".into(),
    }
}

fn refused(of: TenantId, total: u64) -> OverloadSample {
    OverloadSample {
        kind: OverloadKind::RateLimit,
        scope: OverloadScope::Tenant(of),
        subject: "device: messages".into(),
        measure: OverloadMeasure::Total(total),
        limit: Some("10:1".to_owned()),
        reason: "too many".into(),
    }
}

#[test]
fn an_episode_lasts_as_long_as_the_trouble_and_is_remembered_for_an_hour() {
    let world = World::new();
    world.look(&[lag(5)]);
    world.look(&[lag(7)]);
    let [episode] = world.monitor.episodes(None).try_into().unwrap();
    assert_eq!(
        (episode.since_ms, episode.last_ms, episode.level),
        (1_000, 2_000, Some(7))
    );
    assert!(episode.is_active);
    for _ in 0..QUIET_LOOKS {
        world.look(&[]);
    }
    assert!(!world.monitor.episodes(None)[0].is_active, "it has ended");
    for _ in 0..REMEMBERED_LOOKS {
        world.look(&[]);
    }
    assert!(world.monitor.episodes(None).is_empty());
}

#[test]
fn totals_are_trouble_while_they_grow_and_begin_anew_after_a_pause() {
    let world = World::new();
    let of = tenant(1);
    world.look(&[refused(of, 3)]);
    world.look(&[refused(of, 3)]);
    world.look(&[refused(of, 10)]);
    let episode = &world.monitor.episodes(None)[0];
    assert_eq!(
        (episode.count, episode.since_ms, episode.last_ms),
        (10, 1_000, 3_000)
    );
    for _ in 0..=QUIET_LOOKS {
        world.look(&[refused(of, 10)]);
    }
    assert!(!world.monitor.episodes(None)[0].is_active);
    world.look(&[refused(of, 11)]);
    let episode = &world.monitor.episodes(None)[0];
    assert_eq!(episode.count, 1, "what was refused before is not counted again");
    assert_eq!(episode.since_ms, episode.last_ms);
}

#[test]
fn a_tenant_sees_its_own_and_what_all_feel() {
    let world = World::new();
    world.look(&[lag(1), refused(tenant(1), 1), refused(tenant(2), 1)]);
    assert_eq!(world.monitor.episodes(None).len(), 3);
    let own = world.monitor.episodes(Some(tenant(1)));
    let scopes: Vec<OverloadScope> = own.iter().map(|one| one.scope).collect();
    assert_eq!(own.len(), 2);
    assert!(!scopes.contains(&OverloadScope::Tenant(tenant(2))));
}

#[test]
fn one_tenant_fills_only_its_own_part_of_what_is_kept() {
    let world = World::new();
    let many: Vec<OverloadSample> = (0..2 * MAX_OF_TENANT)
        .map(|number| OverloadSample {
            subject: format!("limit {number}").into(),
            ..refused(tenant(1), 1)
        })
        .collect();
    world.look(&many);
    world.look(&[refused(tenant(2), 1)]);
    assert_eq!(world.monitor.episodes(Some(tenant(1))).len(), MAX_OF_TENANT);
    assert_eq!(world.monitor.episodes(Some(tenant(2))).len(), 1);
}

#[test]
fn refusals_say_whose_limit_of_what_it_was() {
    let counts = RefusalCounts::default();
    let rate = RateLimit::parse("10:1,100:60").unwrap().unwrap();
    counts.add("device", "messages", RefusedLimit::Rate(rate.clone()));
    counts.add("device", "messages", RefusedLimit::Rate(rate));
    counts.add("tenant", "sessions", RefusedLimit::Count(4));
    let mut samples = Vec::new();
    counts.collect(tenant(1), &mut samples);
    samples.sort_by_key(|sample| sample.kind);
    let [of_rate, of_count] = samples.try_into().unwrap();
    assert_eq!(of_rate.measure, OverloadMeasure::Total(2));
    assert_eq!(of_rate.limit.as_deref(), Some("10:1,100:60"));
    assert_eq!(
        (of_count.kind, &*of_count.subject),
        (OverloadKind::CountLimit, "tenant: sessions")
    );
}
