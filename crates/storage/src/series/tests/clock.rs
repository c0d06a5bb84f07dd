//! A clock that runs ahead and comes back.

use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore};
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::timeseries::{PointOrder, RangeQuery};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use fieldline_testkit::clock::ManualClock;
use uuid::Uuid;

use super::super::{Options, SeriesStore};
use super::quiet;

const DAY_MS: i64 = 86_400_000;

#[tokio::test(flavor = "multi_thread")]
async fn what_expires_by_a_clock_that_ran_ahead_is_hidden_and_not_deleted() {
    let root = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(1_700_000_000_000);
    let options = Options {
        clock_grace: HumanDuration::secs(3_600),
        ..quiet()
    };
    let store = SeriesStore::open(root.path(), &options, clock.clone()).unwrap();
    let subject = EntityKey::device(TenantId(Uuid::from_u128(1)), DeviceId(Uuid::from_u128(2)));
    let mut values = Vec::new();
    pack("k", KvValueRef::Long(1), &mut values);
    let row = |ts| TelemetryRow {
        strategy: TelemetrySaveStrategy::ALL,
        subject,
        ts,
        ttl_seconds: 3_600,
        values: &values,
    };
    let seen = async || {
        let everything = RangeQuery {
            start: i64::MIN,
            end: i64::MAX,
            limit: 10,
            order: PointOrder::Ascending,
        };
        let points = store.range(subject, "k", everything).await.unwrap().len();
        (points, store.latest(subject, None).await.unwrap().len())
    };
    store.save(&[row(1_700_000_000_000)]).await.unwrap();
    store.compact_now().unwrap();
    store.expire_slice().unwrap();

    clock.advance(DAY_MS);
    assert_eq!(seen().await, (0, 0), "hidden at once");
    // A point of the true time joins the chunk, which is written anew for it.
    store.save(&[row(1_700_000_000_001)]).await.unwrap();
    store.compact_now().unwrap();
    store.expire_slice().unwrap();

    clock.advance(-DAY_MS);
    assert_eq!(seen().await, (2, 1));
    store.close().unwrap();
}
