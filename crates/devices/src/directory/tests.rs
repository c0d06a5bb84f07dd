use std::sync::atomic::{AtomicUsize, Ordering};

use fieldline_core::events::ChangeKind;
use fieldline_model::{DeviceId, TenantId};
use fieldline_testkit::clock::ManualClock;
use fieldline_testkit::fake_stores::{Call, FakeStores};

use super::*;

const START: i64 = 1_700_000_000_000;

fn directory(stores: &Arc<FakeStores>) -> Arc<DeviceDirectory> {
    let clock = ManualClock::at(START);
    let options = Options { cached_devices: 16 };
    DeviceDirectory::new(stores.entities(), stores.clone(), None, clock, &options)
}

async fn log_in(directory: &DeviceDirectory, token: &str) -> Option<Arc<DeviceHandle>> {
    directory.by_token(token).await.expect("the store serves")
}

/// Runs an action with the first calls that a predicate picks, and counts them.
fn with_first(
    stores: &FakeStores,
    picks: impl Fn(&Call<'_>) -> bool + Send + Sync + 'static,
    first: usize,
    action: impl Fn() + Send + Sync + 'static,
) -> Arc<AtomicUsize> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    stores.watch(move |call| {
        if picks(&call) && counted.fetch_add(1, Ordering::SeqCst) < first {
            action();
        }
        Ok(())
    });
    calls
}

#[tokio::test]
async fn credentials_that_change_while_they_are_looked_up_are_not_kept() {
    let stores = FakeStores::new();
    let directory = directory(&stores);
    let device = stores.add_device("old");
    let id = DeviceId(device.entity.id);
    let (held, told) = (stores.clone(), directory.clone());
    let finds = with_first(
        &stores,
        |call| matches!(call, Call::FindCredentials),
        1,
        move || {
            held.set_token(id, "new");
            told.on_change(EntityChange::new(held.tenant, id, ChangeKind::Credentials));
        },
    );
    assert!(log_in(&directory, "old").await.is_none());
    assert_eq!(finds.load(Ordering::SeqCst), 2);
    assert!(log_in(&directory, "old").await.is_none());
    let handle = log_in(&directory, "new").await.expect("the new token admits");
    assert!(!handle.is_revoked());
}

#[tokio::test]
async fn a_device_that_changes_all_the_time_is_unavailable_but_other_changes_do_not_matter() {
    let stores = FakeStores::new();
    let directory = directory(&stores);
    let device = DeviceId(stores.add_device("busy").entity.id);
    let find = |call: &Call<'_>| matches!(call, Call::FindCredentials);

    let (told, tenant) = (directory.clone(), stores.tenant);
    with_first(&stores, find, usize::MAX, move || {
        told.on_change(EntityChange::saved(tenant, device));
    });
    let error = directory.by_token("busy").await.expect_err("it changes");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);

    let told = directory.clone();
    let finds = with_first(&stores, find, usize::MAX, move || {
        told.on_change(EntityChange::saved(tenant, DeviceId::new()));
        told.on_change(EntityChange::saved(TenantId::new(), TenantId::new()));
    });
    assert!(log_in(&directory, "busy").await.is_some());
    assert_eq!(finds.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_refresh_that_a_change_overtakes_ends_with_the_new_settings() {
    let stores = FakeStores::new();
    let directory = directory(&stores);
    stores.add_device("token");
    let handle = log_in(&directory, "token").await.expect("it exists");
    let changed = EntityChange::saved(stores.tenant, stores.profile);
    stores.set_ttl_days(1);
    directory.on_change(changed);
    assert!(handle.is_stale());

    let (held, told) = (stores.clone(), directory.clone());
    with_first(
        &stores,
        |call| matches!(call, Call::GetProfile),
        1,
        move || {
            held.set_ttl_days(2);
            told.on_change(changed);
        },
    );
    directory.refresh(&handle).await.expect("the store serves");
    assert!(!handle.is_stale());
    assert_eq!(handle.settings().ttl_seconds, 2 * 86_400);
}

#[tokio::test]
async fn a_profile_is_read_once_for_all_its_devices_until_it_changes() {
    let stores = FakeStores::new();
    let directory = directory(&stores);
    for token in ["one", "two", "three"] {
        stores.add_device(token);
    }
    let reads = with_first(&stores, |call| matches!(call, Call::GetProfile), 0, || {});
    let one = log_in(&directory, "one").await.expect("it exists");
    let two = log_in(&directory, "two").await.expect("it exists");
    assert!(Arc::ptr_eq(&one.settings(), &two.settings()));
    assert_eq!(reads.load(Ordering::SeqCst), 1);

    stores.set_ttl_days(3);
    directory.on_change(EntityChange::saved(stores.tenant, stores.profile));
    let three = log_in(&directory, "three").await.expect("it exists");
    assert_eq!(three.settings().ttl_seconds, 3 * 86_400);
    assert_eq!(reads.load(Ordering::SeqCst), 2);
    assert!(one.is_stale());
    directory.refresh(&one).await.expect("the store serves");
    assert!(Arc::ptr_eq(&one.settings(), &three.settings()));
    assert_eq!(reads.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn changes_of_many_other_devices_keep_no_device_out() {
    let stores = FakeStores::new();
    let directory = directory(&stores);
    stores.add_device("one");
    let (told, tenant) = (directory.clone(), stores.tenant);
    let find = |call: &Call<'_>| matches!(call, Call::FindCredentials);
    // With each look-up a thousand others are imported.
    with_first(&stores, find, usize::MAX, move || {
        for _ in 0..1_000 {
            told.on_change(EntityChange::saved(tenant, DeviceId::new()));
        }
    });
    assert!(log_in(&directory, "one").await.is_some());
}

#[tokio::test]
async fn a_change_among_many_is_not_overlooked() {
    let stores = FakeStores::new();
    let directory = directory(&stores);
    let one = stores.add_device("one");
    let (told, tenant, profile) = (directory.clone(), stores.tenant, stores.profile);
    let id = DeviceId(one.entity.id);
    for change in [
        EntityChange::saved(tenant, id),
        EntityChange::saved(tenant, profile),
        EntityChange::saved(tenant, tenant),
    ] {
        let told = told.clone();
        let find = |call: &Call<'_>| matches!(call, Call::FindCredentials);
        let finds = with_first(&stores, find, 1, move || {
            told.on_change(change);
            for _ in 0..1_000 {
                told.on_change(EntityChange::saved(tenant, DeviceId::new()));
            }
        });
        directory.known.clear();
        assert!(log_in(&directory, "one").await.is_some());
        assert!(finds.load(Ordering::SeqCst) >= 2, "{change:?}");
    }
}

#[tokio::test]
async fn a_change_concerns_the_devices_of_its_tenant_and_profile_alone() {
    let stores = FakeStores::new();
    let directory = directory(&stores);
    stores.add_device("one");
    let handle = log_in(&directory, "one").await.expect("it exists");
    let others = TenantId::new();
    for change in [
        EntityChange::saved(stores.tenant, fieldline_model::DeviceProfileId::new()),
        EntityChange::saved(others, others),
        EntityChange::deleted(others, others),
        EntityChange::saved(TenantId::NULL, fieldline_model::TenantProfileId::new()),
    ] {
        directory.on_change(change);
        assert!(!handle.is_stale() && !handle.is_revoked(), "{change:?}");
    }
    for change in [
        EntityChange::saved(stores.tenant, stores.profile),
        EntityChange::saved(stores.tenant, stores.tenant),
        EntityChange::saved(TenantId::NULL, handle.settings().tenant_profile),
    ] {
        directory.on_change(change);
        assert!(handle.is_stale(), "{change:?}");
        directory.refresh(&handle).await.expect("the store serves");
        assert!(!handle.is_stale(), "{change:?}");
    }
    directory.on_change(EntityChange::deleted(stores.tenant, stores.tenant));
    assert!(handle.is_revoked());
}

/// Asks for more times than milliseconds pass, and checks that they follow those given out before.
fn pipeline(handle: &DeviceHandle, last: &mut i64) {
    for _ in 0..5_000 {
        let next = handle.times.next(START);
        assert!(next > *last, "{next} was given out before");
        *last = next;
    }
}

#[tokio::test]
async fn a_device_faster_than_the_clock_gets_no_time_twice() {
    let stores = FakeStores::new();
    let first = directory(&stores);
    let device = stores.add_device("fast");
    let id = DeviceId(device.entity.id);
    let mut last = 0;

    let handle = log_in(&first, "fast").await.expect("it exists");
    pipeline(&handle, &mut last);
    first.on_change(EntityChange::new(stores.tenant, id, ChangeKind::Credentials));
    let replacement = log_in(&first, "fast").await.expect("it exists");
    assert!(handle.is_revoked() && !Arc::ptr_eq(&handle, &replacement));
    pipeline(&replacement, &mut last);
    pipeline(&handle, &mut last);

    // Nobody holds a handle any more, and so many other devices come by that some are forgotten.
    let forgotten = Arc::downgrade(&replacement);
    drop((handle, replacement));
    first.known.clear();
    assert!(forgotten.upgrade().is_none());
    for n in 0..1_100 {
        let token = n.to_string();
        stores.add_device(&token);
        log_in(&first, &token).await.expect("it exists");
    }
    assert!(first.index.lock().len() < 1_100);
    let evicted = log_in(&first, "fast").await.expect("it exists");
    pipeline(&evicted, &mut last);

    // After a restart the newest point tells how far it was.
    stores.set_latest(device, last);
    let handle = log_in(&directory(&stores), "fast").await.expect("it exists");
    pipeline(&handle, &mut last);

    // A device whose own clock is a day ahead does not move the server's times.
    stores.set_latest(device, START + 86_400_000);
    let handle = log_in(&directory(&stores), "fast").await.expect("it exists");
    assert_eq!(handle.times.next(START), START);
}
