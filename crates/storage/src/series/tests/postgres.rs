//! The store over PostgreSQL, on the server that `FIELDLINE_TEST_POSTGRES_URL` names, in a schema of each test's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fieldline_core::ports::{
    StoreErrorKind, StoredValue, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore, ValueReadRequest,
    ValueReader, ValueSource,
};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::{DeviceId, EntityKey, EntityType, TenantId};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::memtable::ALL;
use super::{World, WorldPlace, series_contract};
use crate::series::{SeriesStore, SqlSeriesOptions};

/// A schema, dropped with the test.
pub(super) struct TestDatabase {
    url: String,
    pub(super) schema: String,
}

impl TestDatabase {
    pub(super) fn new() -> Self {
        let schema = format!("series_{}", Uuid::now_v7().simple());
        administer(format!("CREATE SCHEMA {schema}"));
        let server = server();
        let separator = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{separator}options[search_path]={schema}");
        Self { url, schema }
    }

    pub(super) fn options(&self) -> SqlSeriesOptions {
        SqlSeriesOptions {
            url: self.url.clone(),
            connections: 4,
            plain_rows: false,
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        administer(format!("DROP SCHEMA {} CASCADE", self.schema));
    }
}

fn server() -> String {
    std::env::var("FIELDLINE_TEST_POSTGRES_URL").expect(
        "FIELDLINE_TEST_POSTGRES_URL names the server to test on; see tests/services/with-postgres.sh",
    )
}

fn administer(sql: String) {
    query(sql, |_| ());
}

/// Runs a statement on a thread of its own, as tests run inside runtimes and outside.
pub(super) fn query<T: Send + 'static>(sql: String, read: fn(&sqlx::postgres::PgRow) -> T) -> Vec<T> {
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&server()).await.unwrap();
            let rows = sqlx::raw_sql(AssertSqlSafe(sql))
                .fetch_all(&mut connection)
                .await
                .unwrap();
            connection.close().await.unwrap();
            rows.iter().map(read).collect()
        })
    };
    std::thread::spawn(work).join().unwrap()
}

pub(super) fn world() -> World {
    World::at(WorldPlace::Database(TestDatabase::new()))
}

fn schema(world: &World) -> String {
    match &world.place {
        WorldPlace::Database(database) => database.schema.clone(),
        _ => panic!("a world without a schema"),
    }
}

series_contract!(world, ignore = "needs FIELDLINE_TEST_POSTGRES_URL");

pub(super) fn device(of: u128) -> EntityKey {
    EntityKey::device(TenantId(Uuid::from_u128(7)), DeviceId(Uuid::from_u128(of)))
}

pub(super) async fn save(
    store: &SeriesStore,
    of: u128,
    ts: i64,
    names: &[&str],
) -> Result<(), StoreErrorKind> {
    let mut values = Vec::new();
    for name in names {
        pack(name, KvValue::Long(ts).as_ref(), &mut values);
    }
    let row = TelemetryRow {
        strategy: TelemetrySaveStrategy::ALL,
        subject: device(of),
        ts,
        ttl_seconds: 0,
        values: &values,
    };
    let saved = TimeSeriesStore::save(store, &[row]).await;
    saved.map_err(|error| error.kind())
}

/// Saves a point of `k` for each device and time, all of them together.
pub(super) async fn save_points(store: &SeriesStore, points: impl Iterator<Item = (u128, i64)>) {
    let mut values = Vec::new();
    pack("k", KvValue::Long(1).as_ref(), &mut values);
    let rows: Vec<TelemetryRow<'_>> = points
        .map(|(of, ts)| TelemetryRow {
            strategy: TelemetrySaveStrategy::ALL,
            subject: device(of),
            ts,
            ttl_seconds: 0,
            values: &values,
        })
        .collect();
    TimeSeriesStore::save(store, &rows).await.unwrap();
}

pub(super) async fn times(store: &SeriesStore, of: u128) -> Vec<i64> {
    let points = store.range(device(of), "k", ALL).await.unwrap();
    points.iter().map(|point| point.ts).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn who_has_lost_the_tables_writes_no_more_and_says_so() {
    lost_tables_are_not_written(&world()).await;
}

/// Two stores are opened over the same tables: only the later one writes.
pub(super) async fn lost_tables_are_not_written(world: &World) {
    let first = world.store();
    save(&first, 1, 1, &["k"]).await.unwrap();
    let second = world.place.open(1, &world.clock).unwrap();
    assert_eq!(save(&first, 1, 2, &["k"]).await, Err(StoreErrorKind::Unavailable));
    let refusal = first.refusal().unwrap().to_string();
    assert!(
        refusal.contains("another process has opened the time series"),
        "{refusal}"
    );
    save(&second, 1, 3, &["k"]).await.unwrap();
    assert_eq!(times(&second, 1).await, [1, 3]);
    second.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn what_was_acknowledged_outlives_sessions_that_are_cut_off() {
    let world = Arc::new(world());
    let stop = Arc::new(AtomicBool::new(false));
    let cutter = {
        let (world, stop) = (Arc::clone(&world), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut cut = 0;
            while !stop.load(Ordering::Relaxed) {
                // Only what writes or reads the tables of this test.
                let sql = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'relation' \
                     AND relation = '{}.series_owner'::regclass AND pid <> pg_backend_pid()",
                    schema(&world)
                );
                cut += query(sql, |row| row.get::<bool, _>(0)).len();
            }
            cut
        })
    };
    let store = world.store();
    let mut acknowledged = Vec::new();
    for ts in 1..200 {
        if save(&store, 1, ts, &["k"]).await.is_ok() {
            acknowledged.push(ts);
        }
    }
    stop.store(true, Ordering::Relaxed);
    let cut = cutter.join().unwrap();
    assert!(cut > 0, "no session was cut off");
    assert!(acknowledged.len() > 100, "{} of 199", acknowledged.len());
    let found = times(&store, 1).await;
    assert!(
        acknowledged.iter().all(|ts| found.contains(ts)),
        "lost: {acknowledged:?} {found:?}"
    );
    world.crash();
    assert_eq!(times(&world.store(), 1).await, found);
    world.store().close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn packed_epochs_leave_no_partition_and_readers_miss_nothing() {
    let world = world();
    let store = world.store();
    let stop = Arc::new(AtomicBool::new(false));
    for ts in 0..200 {
        save(&store, 1, ts, &["k"]).await.unwrap();
    }
    let reader = {
        let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut reads = 0;
            while !stop.load(Ordering::Relaxed) || reads == 0 {
                assert!(times(&store, 1).await.len() >= 200, "points were missed");
                reads += 1;
            }
        })
    };
    for round in 0..10 {
        save(&store, 1, 200 + round, &["k"]).await.unwrap();
        let store = Arc::clone(&store);
        tokio::task::spawn_blocking(move || store.compact_now().unwrap())
            .await
            .unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    reader.await.unwrap();
    // With the next epoch that is packed those go whose readers were in the way.
    save(&store, 1, 300, &["k"]).await.unwrap();
    store.compact_now().unwrap();
    let sql = format!(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = '{}.series_block'::regclass",
        schema(&world)
    );
    assert_eq!(query(sql, |row| row.get::<i64, _>(0)), [1]);
    store.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn values_of_many_entities_are_read_from_pages() {
    let world = world();
    many_values_are_read(&world).await;
    let rows = query(
        format!("SELECT count(*) FROM {}.series_latest", schema(&world)),
        |row| row.get::<i64, _>(0),
    );
    assert_eq!(rows, [60], "70 values are three pages");
    world.store().close().unwrap();
}

/// The devices, of some, that have a latest value of `k`, with its time.
pub(super) fn latest_times(store: &SeriesStore, of: Vec<u128>) -> Vec<(u128, i64)> {
    let ids: Vec<Uuid> = of.iter().copied().map(Uuid::from_u128).collect();
    let request = ValueReadRequest {
        tenant: TenantId(Uuid::from_u128(7)),
        kind: EntityType::Device,
        ids: &ids,
        source: ValueSource::Latest,
        names: &["k".to_owned()],
    };
    let mut found = Vec::new();
    let mut visit = |place: usize, _: usize, value: StoredValue<'_>| found.push((of[place], value.ts));
    ValueReader::read(store, request, &mut visit).unwrap();
    found.sort_unstable();
    found
}

/// What sessions that have been closed have told when they ended, which is soon: a second later nothing comes any more.
fn rows_seen(sql: &str) -> i64 {
    let mut known = -1;
    loop {
        let seen = query(sql.to_owned(), |row| row.get::<i64, _>(0))[0];
        if seen == known {
            return seen;
        }
        known = seen;
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn values_of_many_entities_are_looked_up_and_not_searched_for() {
    let world = world();
    let store = world.store();
    save_points(&store, (0..3_000).map(|of| (of, 1))).await;
    store.close().unwrap();
    // What the database knows of the table must not lead it astray.
    administer(format!("ANALYZE {}.series_latest", schema(&world)));
    world.crash();
    let seen = format!(
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relid = '{}.series_latest'::regclass",
        schema(&world)
    );
    let before = rows_seen(&seen);
    let store = world.store();
    let found = latest_times(&store, (0..1_000).collect());
    assert_eq!(found.len(), 1_000);
    store.close().unwrap();
    let looked_at = rows_seen(&seen) - before;
    assert!((1_000..20_000).contains(&looked_at), "{looked_at} rows");
}

/// Values of entities in memory and of others are read at once.
pub(super) async fn many_values_are_read(world: &World) {
    let names: Vec<String> = (0..70).map(|number| format!("key{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for of in 1..=20 {
        save(&world.store(), of, 5, &names).await.unwrap();
        save(&world.store(), of, 6, &names[30..40]).await.unwrap();
    }
    world.crash();
    // Half of them are in memory.
    for of in 1..=10 {
        world.store().latest(device(of), None).await.unwrap();
    }
    let asked: Vec<Uuid> = (0..=20).rev().map(Uuid::from_u128).collect();
    let store = world.store();
    let found = tokio::task::spawn_blocking(move || {
        let mut found = Vec::new();
        let request = ValueReadRequest {
            tenant: TenantId(Uuid::from_u128(7)),
            kind: EntityType::Device,
            source: ValueSource::Latest,
            ids: &asked,
            names: &["key35".to_owned(), "none".to_owned(), "key69".to_owned()],
        };
        store
            .read(request, &mut |place, name, value| {
                found.push((place, name, value.ts));
            })
            .unwrap();
        found.sort_unstable();
        found
    })
    .await
    .unwrap();
    let expected: Vec<_> = (0..20).flat_map(|place| [(place, 0, 6), (place, 2, 5)]).collect();
    assert_eq!(found, expected);
}
