//! The points as rows of the table `telemetry`, on the PostgreSQL server that `FIELDLINE_TEST_POSTGRES_URL` names.

use std::sync::Arc;

use fieldline_core::ports::{
    SeriesDeletion, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore as _, ValueRemoval as _,
    ValueRemovalScope, ValueTransfer as _,
};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use fieldline_testkit::clock::ManualClock;
use sqlx::Row as _;
use uuid::Uuid;

use super::postgres::{TestDatabase, query};
use super::quiet;
use crate::series::{SeriesStore, SqlSeriesOptions};

const NOW: i64 = 1_700_000_000_000;
const DAY: i64 = 86_400_000;

fn device(tenant: u128, of: u128) -> EntityKey {
    EntityKey::device(TenantId(Uuid::from_u128(tenant)), DeviceId(Uuid::from_u128(of)))
}

struct PlainWorld {
    database: TestDatabase,
    clock: Arc<ManualClock>,
}

impl PlainWorld {
    fn new() -> Self {
        Self {
            database: TestDatabase::new(),
            clock: ManualClock::at(NOW),
        }
    }

    fn open(&self) -> Arc<SeriesStore> {
        let tables = SqlSeriesOptions {
            plain_rows: true,
            ..self.database.options()
        };
        SeriesStore::open_sql(&tables, &quiet(), self.clock.clone()).unwrap()
    }

    /// Rows as texts: the number of the entity, key, milliseconds, value, tenant.
    fn rows(&self) -> Vec<String> {
        let sql = format!(
            "SELECT concat_ws(' ', right(entity_id::text, 1), key, (extract(epoch FROM ts) * 1000)::int8, \
             coalesce(bool_v::text, long_v::text, dbl_v::text, str_v, json_v::text), right(tenant_id::text, 1)) \
             FROM {}.telemetry ORDER BY entity_id, key, ts",
            self.database.schema
        );
        query(sql, |row| row.get::<String, _>(0))
    }

    fn count(&self, sql: &str) -> i64 {
        let sql = sql.replace("SCHEMA", &self.database.schema);
        query(sql, |row| row.get::<i64, _>(0))[0]
    }
}

async fn save(
    store: &SeriesStore,
    subject: EntityKey,
    ts: i64,
    ttl_seconds: u32,
    values: &[(&str, KvValue)],
) {
    let mut packed = Vec::new();
    for (name, value) in values {
        pack(name, value.as_ref(), &mut packed);
    }
    let row = TelemetryRow {
        subject,
        ts,
        ttl_seconds,
        strategy: TelemetrySaveStrategy::ALL,
        values: &packed,
    };
    store.save(&[row]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn postgres_has_each_point_as_a_row_and_the_newest_of_a_time() {
    let world = PlainWorld::new();
    let store = world.open();
    let one = device(7, 1);
    let values = [
        ("flag", KvValue::Bool(true)),
        ("long", KvValue::Long(i64::MAX)),
        ("double", KvValue::Double(0.1)),
        ("text", KvValue::Text("a\0b".into())),
        ("json", KvValue::Json("{\"a\":[1]}".into())),
    ];
    save(&store, one, NOW + 7, 0, &values).await;
    save(&store, one, NOW, 0, &[("long", KvValue::Long(1))]).await;
    save(&store, one, NOW, 0, &[("long", KvValue::Long(2))]).await;
    let rows = world.rows();
    assert_eq!(
        rows,
        [
            format!("1 double {} 0.1 7", NOW + 7),
            format!("1 flag {} true 7", NOW + 7),
            format!("1 json {} {{\"a\":[1]}} 7", NOW + 7),
            format!("1 long {NOW} 2 7"),
            format!("1 long {} {} 7", NOW + 7, i64::MAX),
            format!("1 text {} a\u{fffd}b 7", NOW + 7),
        ]
    );
    // Packing, which reads and writes the same points, and a new start change nothing.
    store.compact_now().unwrap();
    assert_eq!(world.rows(), rows);
    store.close().unwrap();
    let store = world.open();
    assert_eq!(world.rows(), rows);
    let months = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'SCHEMA.telemetry'::regclass";
    assert_eq!(
        world.count(months),
        6,
        "four months, what was before, and the rest"
    );

    // What PostgreSQL cannot hold does not keep the rest from being stored.
    let deep = format!("{}1{}", "[".repeat(60_000), "]".repeat(60_000));
    save(&store, one, NOW + 8, 0, &[("json", KvValue::Json(deep.into()))]).await;
    save(&store, one, i64::MAX - 1, 0, &[("late", KvValue::Long(1))]).await;
    save(&store, one, -1, 0, &[("early", KvValue::Long(1))]).await;
    assert_eq!(store.keys(one).await.unwrap().len(), 7);
    assert_eq!(world.rows().len(), rows.len() + 1);
    let all = world.count("SELECT count(*) FROM SCHEMA.telemetry_before");
    assert_eq!(all, world.rows().len() as i64, "2023 and before");
    // One of the rows of a batch is refused, the others are there.
    let others = [
        ("a", KvValue::Long(1)),
        (
            "b",
            KvValue::Json(format!("{}1{}", "[".repeat(60_000), "]".repeat(60_000)).into()),
        ),
    ];
    save(&store, one, NOW + 9, 0, &others).await;
    assert_eq!(world.rows().len() as i64, all + 1);
    store.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn postgres_loses_the_rows_of_points_that_go() {
    let world = PlainWorld::new();
    let store = world.open();
    let (one, two, three) = (device(7, 1), device(7, 2), device(8, 3));
    for subject in [one, two, three] {
        for ts in 0..4 {
            let values = [("a", KvValue::Long(ts)), ("b", KvValue::Long(ts))];
            save(&store, subject, NOW + ts, 0, &values).await;
        }
    }
    store.compact_now().unwrap();
    let part = SeriesDeletion {
        range: Some((NOW + 1, NOW + 3)),
        delete_latest: false,
        rewrite_latest: false,
    };
    store.delete(one, &["a".to_owned()], part).await.unwrap();
    let whole = SeriesDeletion { range: None, ..part };
    store.delete(two, &["b".to_owned()], whole).await.unwrap();
    store
        .remove(&[ValueRemovalScope::Tenant(three.tenant)], &[])
        .await
        .unwrap();
    let of = |entity: u32, key: &str, times: &[i64]| -> Vec<String> {
        let row = |ts: &i64| format!("{entity} {key} {} {ts} 7", NOW + ts);
        times.iter().map(row).collect()
    };
    let left = [
        of(1, "a", &[0, 3]),
        of(1, "b", &[0, 1, 2, 3]),
        of(2, "a", &[0, 1, 2, 3]),
    ];
    assert_eq!(world.rows(), left.concat());

    // To another tenant, whose former owner no longer has anything to take away.
    assert!(store.transfer(two, device(8, 2)).await.unwrap());
    store
        .remove(&[ValueRemovalScope::Subject(two)], &[])
        .await
        .unwrap();
    let moved: Vec<String> = (0..4).map(|ts| format!("2 a {} {ts} 8", NOW + ts)).collect();
    assert_eq!(world.rows()[6..], moved);

    // What has lived its time.
    save(&store, one, NOW, 86_400, &[("c", KvValue::Long(1))]).await;
    assert_eq!(world.rows().len(), 11);
    store.expire_slice().unwrap();
    assert_eq!(world.rows().len(), 11);
    world.clock.advance(2 * DAY);
    store.expire_slice().unwrap();
    assert_eq!(world.rows().len(), 10);
    store.close().unwrap();
}
