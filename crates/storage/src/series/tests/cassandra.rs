//! The store over Cassandra, on the nodes that `FIELDLINE_TEST_CASSANDRA_NODES` names, in a keyspace of each test's own. The
//! positions are on the server that `FIELDLINE_TEST_POSTGRES_URL` names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fieldline_core::ports::TimeSeriesStore as _;
use fieldline_model::timeseries::{PointOrder, RangeQuery};
use uuid::Uuid;

use super::postgres::{
    TestDatabase, device, latest_times, lost_tables_are_not_written, many_values_are_read, save, save_points,
    times,
};
use super::{World, WorldPlace, series_contract};
use crate::series::{CassandraOptions, SeriesStore, SqlSeriesOptions};

/// A keyspace, dropped with the test.
pub(super) struct TestKeyspace {
    owner: TestDatabase,
    tables: CassandraOptions,
}

impl TestKeyspace {
    fn new() -> Self {
        let nodes = std::env::var("FIELDLINE_TEST_CASSANDRA_NODES").expect(
            "FIELDLINE_TEST_CASSANDRA_NODES names the nodes to test on; see tests/services/with-cassandra.sh",
        );
        Self {
            owner: TestDatabase::new(),
            tables: CassandraOptions {
                nodes,
                keyspace: format!("series_{}", Uuid::now_v7().simple()),
                replication: Some("SimpleStrategy:1".to_owned()),
                ..CassandraOptions::default()
            },
        }
    }

    pub(super) fn options(&self) -> (SqlSeriesOptions, CassandraOptions) {
        (self.owner.options(), self.tables.clone())
    }
}

impl Drop for TestKeyspace {
    fn drop(&mut self) {
        let tables = self.tables.clone();
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let builder = scylla::client::session_builder::SessionBuilder::new();
                let session = builder.known_nodes(tables.node_list()).build().await.unwrap();
                let cql = format!("DROP KEYSPACE {}", tables.keyspace);
                session.query_unpaged(cql, ()).await.unwrap();
            });
        };
        std::thread::spawn(work).join().unwrap();
    }
}

fn world() -> World {
    World::at(WorldPlace::Keyspace(Box::new(TestKeyspace::new())))
}

series_contract!(world, ignore = "needs FIELDLINE_TEST_CASSANDRA_NODES");

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_CASSANDRA_NODES"]
async fn who_has_lost_the_cassandra_tables_writes_no_more_and_says_so() {
    lost_tables_are_not_written(&world()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_CASSANDRA_NODES"]
async fn values_of_many_entities_are_read_from_cassandra() {
    let world = world();
    many_values_are_read(&world).await;
    world.store().close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_CASSANDRA_NODES"]
async fn values_of_many_neighbours_and_of_few_far_apart_are_read_from_cassandra() {
    let world = world();
    save_points(&world.store(), (0..3_000).map(|of| (of, of as i64))).await;
    for step in [1, 7, 300] {
        world.crash();
        let found = latest_times(&world.store(), (0..3_010).step_by(step).collect());
        let expected: Vec<_> = (0..3_000_u128).step_by(step).map(|of| (of, of as i64)).collect();
        assert_eq!(found, expected, "each {step}th");
    }
    world.store().close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_CASSANDRA_NODES"]
async fn a_series_of_many_pages_is_read_from_both_ends() {
    const APART_MS: i64 = 60_000;
    let world = world();
    save_points(&world.store(), (0..2_000).map(|number| (1, number * APART_MS))).await;
    // Each minute is a block of its own.
    world.crash();
    let expected: Vec<i64> = (0..2_000).map(|number| number * APART_MS).collect();
    for order in [PointOrder::Ascending, PointOrder::Descending] {
        let query = RangeQuery {
            start: 0,
            end: i64::MAX,
            limit: 10_000,
            order,
        };
        let found = world.store().range(device(1), "k", query).await.unwrap();
        let mut found: Vec<i64> = found.iter().map(|point| point.ts).collect();
        if order == PointOrder::Descending {
            found.reverse();
        }
        assert_eq!(found, expected, "{order:?}");
    }
    world.store().close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_CASSANDRA_NODES"]
async fn positions_are_not_taken_for_those_of_values_elsewhere() {
    let world = world();
    save(&world.store(), 1, 1, &["k"]).await.unwrap();
    world.store().close().unwrap();
    let WorldPlace::Keyspace(keyspace) = &world.place else {
        unreachable!("a world of Cassandra");
    };
    let (owner, mut tables) = keyspace.options();
    let clock = || world.clock.clone();
    let refused = SeriesStore::open_sql(&owner, &super::quiet(), clock())
        .err()
        .unwrap();
    let place = format!("in the keyspace {} of Cassandra", tables.keyspace);
    assert!(refused.to_string().contains(&place), "{refused}");
    tables.keyspace.push_str("_b");
    let refused = SeriesStore::open_cassandra(&owner, &tables, &super::quiet(), clock());
    assert!(refused.err().unwrap().to_string().contains(&place));

    let beside = TestDatabase::new();
    let store = SeriesStore::open_sql(&beside.options(), &super::quiet(), clock()).unwrap();
    store.close().unwrap();
    let refused =
        SeriesStore::open_cassandra(&beside.options(), &keyspace.options().1, &super::quiet(), clock());
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("in its own tables"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FIELDLINE_TEST_CASSANDRA_NODES"]
async fn readers_miss_nothing_while_epochs_are_packed_into_cassandra() {
    let world = world();
    let store = world.store();
    let stop = Arc::new(AtomicBool::new(false));
    for of in 1..=4 {
        for ts in 0..100 {
            save(&store, of, ts, &["k"]).await.unwrap();
        }
    }
    let readers: Vec<_> = (1..=4)
        .map(|of| {
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut reads = 0;
                while !stop.load(Ordering::Relaxed) || reads == 0 {
                    let found = times(&store, of).await;
                    assert!(found.len() >= 100, "points were missed: {}", found.len());
                    assert!(
                        found.is_sorted_by(|a, b| a < b),
                        "points are there twice: {found:?}"
                    );
                    reads += 1;
                }
            })
        })
        .collect();
    for round in 0..6 {
        for of in 1..=4 {
            save(&store, of, 100 + round, &["k"]).await.unwrap();
        }
        let store = Arc::clone(&store);
        tokio::task::spawn_blocking(move || store.compact_now().unwrap())
            .await
            .unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    world.crash();
    for of in 1..=4 {
        assert_eq!(times(&world.store(), of).await, (0..106).collect::<Vec<_>>());
    }
    world.store().close().unwrap();
}
