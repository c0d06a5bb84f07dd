use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fieldline_core::clock::Clock as _;
use fieldline_core::ports::{NoRuleEngine, StoreErrorKind};
use fieldline_model::TenantId;
use fieldline_model::kv::KvValue;
use fieldline_model::message::QueueMessage;
use fieldline_testkit::clock::ManualClock;
use fieldline_testkit::fake_stores::{Call, FakeStores, failure};

use super::*;

const START: i64 = 1_700_000_000_000;

struct World {
    stores: Arc<FakeStores>,
    clock: Arc<ManualClock>,
    tracker: Arc<ActivityTracker>,
}

impl World {
    fn new() -> Self {
        Self::told_to(Arc::new(NoRuleEngine))
    }

    fn told_to(engine: Arc<dyn RuleEngine>) -> Self {
        let stores = FakeStores::new();
        let clock = ManualClock::at(START);
        let tracker = ActivityTracker::new(
            stores.entities(),
            stores.clone(),
            engine,
            clock.clone(),
            &Options::default(),
        );
        Self {
            stores,
            clock,
            tracker,
        }
    }

    async fn round(&self) {
        self.tracker.find_silent();
        self.tracker.write_changes(false, || false).await;
    }

    fn is_active(&self, device: EntityKey) -> bool {
        self.stores.attribute(device, "active") == Some(KvValue::Bool(true))
    }

    fn queued(&self) -> usize {
        self.tracker.states.lock().queued()
    }

    /// Has the next write of each kind fail once.
    fn fail_writes_once(&self) {
        let attributes = AtomicBool::new(true);
        let lists = AtomicBool::new(true);
        self.stores.watch(move |call| {
            let armed = match call {
                Call::SaveAttributes(_) => attributes.swap(false, Ordering::SeqCst),
                Call::SetActive(_) => lists.swap(false, Ordering::SeqCst),
                _ => false,
            };
            if armed {
                return Err(failure(StoreErrorKind::DiskFull));
            }
            Ok(())
        });
    }
}

#[tokio::test]
async fn a_transition_whose_write_failed_is_written_by_a_later_round() {
    let world = World::new();
    let device = world.stores.add_device("a");

    world.fail_writes_once();
    world.tracker.record_connect(device);
    for _ in 0..2 {
        world.tracker.record_activity(device);
        world.round().await;
        assert!(!world.is_active(device));
        // It waits once, however often it was heard and failed.
        assert_eq!(world.queued(), 1);
    }
    world.round().await;
    assert!(world.is_active(device) && world.stores.is_listed(device));
    for key in ["lastConnectTime", "lastActivityTime"] {
        assert_eq!(world.stores.attribute(device, key), Some(KvValue::Long(START)));
    }

    world.fail_writes_once();
    world.clock.advance(600_000);
    for _ in 0..2 {
        world.round().await;
        // Who is still active in one place is watched after a restart.
        assert!(world.stores.is_listed(device));
    }
    world.round().await;
    assert!(!world.is_active(device) && !world.stores.is_listed(device));
    assert_eq!(world.queued(), 0);
    assert_eq!(world.tracker.states.lock().watched(), 0);
}

#[tokio::test]
async fn one_device_that_cannot_be_read_or_written_does_not_hold_others_back() {
    for unreadable in [true, false] {
        let world = World::new();
        let devices: Vec<_> = (0..PART * 2)
            .map(|n| world.stores.add_device(&n.to_string()))
            .collect();
        let (bad, good) = devices.split_first().expect("there are devices");
        let culprit = *bad;
        world.stores.watch(move |call| match call {
            Call::GetAttributes(subject) if unreadable && subject == culprit => {
                Err(failure(StoreErrorKind::Corrupt))
            }
            Call::SaveAttributes(subjects) if !unreadable && subjects.contains(&culprit) => {
                Err(failure(StoreErrorKind::Invalid))
            }
            _ => Ok(()),
        });
        let heard: Vec<_> = devices.iter().map(|device| (*device, START)).collect();
        world.tracker.record_activities(&heard);
        world.round().await;
        assert!(good.iter().all(|device| world.is_active(*device)));
        assert!(!world.is_active(*bad));
        assert_eq!(world.queued(), 1);

        world.stores.unwatch();
        world.round().await;
        assert!(world.is_active(*bad));
    }
}

#[tokio::test]
async fn a_store_that_serves_nobody_is_not_asked_for_every_device() {
    let world = World::new();
    let heard: Vec<_> = (0..PART)
        .map(|n| (world.stores.add_device(&n.to_string()), START))
        .collect();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    world.stores.watch(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Err(failure(StoreErrorKind::Unavailable))
    });
    world.tracker.record_activities(&heard);
    world.round().await;
    assert!(calls.load(Ordering::SeqCst) < 10);
    assert_eq!(world.queued(), PART);

    world.stores.unwatch();
    world.round().await;
    assert!(heard.iter().all(|(device, _)| world.is_active(*device)));
}

#[tokio::test]
async fn a_timeout_that_is_changed_while_it_is_read_counts() {
    let world = World::new();
    let device = world.stores.add_device("a");
    let (stores, tracker) = (world.stores.clone(), world.tracker.clone());
    let changed = AtomicBool::new(false);
    world.stores.watch(move |call| {
        if matches!(call, Call::GetAttributes(_)) && !changed.swap(true, Ordering::SeqCst) {
            stores.set_attribute(device, "inactivityTimeout", KvValue::Long(1_000));
            tracker.on_change(EntityChange {
                subject: device,
                what: ChangeKind::Attributes(AttributeScope::Server),
            });
        }
        Ok(())
    });
    world.tracker.record_activity(device);
    world.round().await;
    world.round().await;
    assert!(world.is_active(device));
    world.clock.advance(1_000);
    world.round().await;
    assert!(!world.is_active(device));
}

#[tokio::test(start_paused = true)]
async fn devices_that_were_active_are_watched_although_reading_them_failed_at_first() {
    let world = World::new();
    let device = world.stores.add_device("a");
    world.stores.set_listed(device, true);
    world.stores.set_attribute(device, "active", KvValue::Bool(true));
    let failing = AtomicBool::new(true);
    let (done, mut is_done) = watch::channel(false);
    world.stores.watch(move |call| {
        if matches!(call, Call::ListTenants) && failing.swap(false, Ordering::SeqCst) {
            return Err(failure(StoreErrorKind::Unavailable));
        }
        if matches!(call, Call::SetActive([(_, false)])) {
            done.send_replace(true);
        }
        Ok(())
    });
    let (stop, stopping) = watch::channel(false);
    let running = tokio::spawn(world.tracker.clone().run(Options::default(), stopping));
    is_done.wait_for(|done| *done).await.expect("the store is there");
    stop.send_replace(true);
    running.await.expect("it does not panic");
    assert!(!world.is_active(device) && !world.stores.is_listed(device));
}

#[tokio::test]
async fn devices_that_were_active_are_taken_up_in_pieces() {
    let world = World::new();
    for number in 0..2_500 {
        let device = world.stores.add_device(&number.to_string());
        world.stores.set_listed(device, number % 25 != 0);
    }
    let reads = Arc::new(AtomicUsize::new(0));
    let (counted, tracker) = (reads.clone(), world.tracker.clone());
    world.stores.watch(move |call| {
        if matches!(call, Call::ListActive) {
            counted.fetch_add(1, Ordering::SeqCst);
            assert!(tracker.states.lock().queued() <= 1_000, "one piece at a time");
        }
        Ok(())
    });
    let mut place = RestoreCursor::default();
    while world.tracker.restore(&mut place).await.expect("the store serves") {
        assert!(world.tracker.write_changes(false, || false).await);
    }
    assert_eq!(
        reads.load(Ordering::SeqCst),
        3,
        "no count, no walk over what was read"
    );
    // None of them was heard, so all were looked at once, and are inactive.
    assert_eq!(world.tracker.states.lock().watched(), 0);
}

#[tokio::test]
async fn a_device_that_does_not_exist_is_forgotten() {
    let world = World::new();
    world
        .tracker
        .record_activity(EntityKey::device(TenantId::new(), DeviceId::new()));
    world.round().await;
    assert_eq!(world.tracker.states.lock().watched(), 0);
}

#[tokio::test]
async fn the_room_of_a_crowd_is_given_back() {
    let world = World::new();
    for number in 0..5_000 {
        let device = world.stores.add_device(&format!("device-{number}"));
        world.tracker.record_connect(device);
    }
    world.round().await;

    // Nobody was heard, so nobody is watched.
    let states = world.tracker.states.lock();
    assert_eq!(states.watched(), 0);
    let (watched, queued) = states.room();
    assert!(
        watched <= 2_048 && queued <= 2_048,
        "room for {watched} and {queued} is kept"
    );
}

#[tokio::test]
async fn silence_counts_only_as_far_as_it_is_known_who_was_heard() {
    let world = World::new();
    let device = world.stores.add_device("a");
    world.tracker.record_activity(device);
    world.round().await;
    // Messages of the last quarter of an hour are on their way.
    world.clock.advance(900_000);
    world.tracker.set_lag(Duration::from_secs(900));
    world.round().await;
    assert!(world.is_active(device));
    world.tracker.set_lag(Duration::ZERO);
    world.round().await;
    assert!(!world.is_active(device));
}

#[tokio::test]
async fn a_clock_that_is_set_neither_silences_anybody_nor_keeps_them_alive() {
    let world = World::new();
    let device = world.stores.add_device("a");
    let set = |by: i64| {
        world.clock.advance(by);
        let now = world.clock.now_ms();
        world.tracker.states.lock().restart_timeouts(now);
    };
    world.tracker.record_activity(device);
    set(86_400_000);
    world.round().await;
    assert!(world.is_active(device), "a day ahead");
    world.tracker.record_activity(device);
    let told_late = [(device, START + 86_400_000)];
    set(-90_000_000);
    world.tracker.record_activities(&told_late);
    world.clock.advance(599_999);
    world.round().await;
    assert!(world.is_active(device), "an hour back");
    world.clock.advance(1);
    world.round().await;
    assert!(!world.is_active(device));
    // What was written by the clock that was ahead does not keep it alive when it is read again.
    world
        .stores
        .set_attribute(device, "lastActivityTime", KvValue::Long(START + 86_400_000));
    world.tracker.record_activity(device);
    world.round().await;
    world.clock.advance(600_000);
    world.round().await;
    assert!(!world.is_active(device));
}

#[tokio::test]
async fn a_device_that_is_told_to_be_inactive_is_until_it_is_heard() {
    let world = World::new();
    let device = world.stores.add_device("a");
    world
        .tracker
        .handle_event(device, ActivityEvent::Activity, START - 5_000);
    world
        .tracker
        .handle_event(device, ActivityEvent::Connect, START - 6_000);
    world.round().await;
    assert!(world.is_active(device));
    assert_eq!(
        world.stores.attribute(device, "lastConnectTime"),
        Some(KvValue::Long(START - 6_000))
    );

    // What was heard later counts more.
    world
        .tracker
        .handle_event(device, ActivityEvent::Inactivity, START - 5_000);
    world.round().await;
    assert!(world.is_active(device));

    world
        .tracker
        .handle_event(device, ActivityEvent::Inactivity, START - 4_000);
    world.round().await;
    assert!(!world.is_active(device));
    assert_eq!(
        world.stores.attribute(device, "inactivityAlarmTime"),
        Some(KvValue::Long(START - 4_000))
    );
    assert_eq!(world.tracker.states.lock().watched(), 0);

    world.tracker.record_activity(device);
    world.round().await;
    assert!(world.is_active(device));
}

/// Keeps what it is told.
#[derive(Default)]
struct Heard(Mutex<Vec<QueueMessage>>);

impl Heard {
    /// Types and bodies of what it was told since it was last asked.
    fn take(&self) -> Vec<(String, serde_json::Value)> {
        let heard = std::mem::take(&mut *self.0.lock());
        let shown = heard.iter().map(|message| {
            assert_eq!(message.metadata.get("scope"), Some("SERVER_SCOPE"));
            assert!(
                message.metadata.get("deviceName").is_some() && message.metadata.get("deviceType").is_some()
            );
            let body = serde_json::from_str(&message.data).expect("the body is JSON");
            (message.msg_type.name().to_owned(), body)
        });
        shown.collect()
    }
}

#[async_trait::async_trait]
impl RuleEngine for Heard {
    async fn push(&self, _: TenantId, message: QueueMessage) -> StoreResult<()> {
        self.0.lock().push(message);
        Ok(())
    }
}

#[tokio::test]
async fn the_rule_engine_is_told_what_becomes_of_a_device() {
    let heard = Arc::new(Heard::default());
    let world = World::told_to(heard.clone());
    let device = world.stores.add_device("a");
    let state = |active: bool, times: [i64; 4]| {
        let [connect, activity, disconnect, alarm] = times;
        serde_json::json!({
            "active": active, "lastConnectTime": connect, "lastActivityTime": activity,
            "lastDisconnectTime": disconnect, "lastInactivityAlarmTime": alarm, "inactivityTimeout": 600_000,
        })
    };

    // What cannot be written is not told yet.
    world.fail_writes_once();
    world.tracker.record_connect(device);
    world.tracker.record_activity(device);
    for _ in 0..2 {
        world.round().await;
        assert_eq!(heard.take(), []);
    }
    world.round().await;
    let alive = state(true, [START, START, 0, 0]);
    let mut connected = alive.clone();
    connected
        .as_object_mut()
        .expect("it is an object")
        .remove("active");
    assert_eq!(
        heard.take(),
        [
            ("CONNECT_EVENT".to_owned(), connected),
            ("ACTIVITY_EVENT".to_owned(), alive)
        ]
    );

    // One that goes on sending is nothing new.
    world.clock.advance(1_000);
    world.tracker.record_activity(device);
    world.round().await;
    assert_eq!(heard.take(), []);

    world.tracker.record_disconnect(device);
    world.clock.advance(1_000);
    world.tracker.record_connect(device);
    world.tracker.flush().await;
    let types: Vec<_> = heard.take().into_iter().map(|(name, _)| name).collect();
    assert_eq!(types, ["DISCONNECT_EVENT", "CONNECT_EVENT"]);

    world.clock.advance(600_000);
    let now = world.clock.now_ms();
    world.tracker.record_disconnect(device);
    world.round().await;
    let silent = state(false, [START + 2_000, START + 1_000, now, now]);
    assert_eq!(
        heard.take(),
        [
            ("DISCONNECT_EVENT".to_owned(), silent.clone()),
            ("INACTIVITY_EVENT".to_owned(), silent)
        ]
    );
}
