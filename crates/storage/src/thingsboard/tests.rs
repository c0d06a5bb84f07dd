//! Values of all types; and the tables in Cassandra, on the nodes that `FIELDLINE_TEST_CASSANDRA_NODES` names, beside those in
//! PostgreSQL, on the server that `FIELDLINE_TEST_POSTGRES_URL` names.

use scylla::client::session::Session;
use scylla::value::CqlTimeuuid;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::*;
use crate::cql_session;

const NONE: FiveColumns = FiveColumns {
    bool_v: None,
    str_v: None,
    long_v: None,
    dbl_v: None,
    json_v: None,
};

#[test]
fn a_value_keeps_its_type_and_what_is_none_is_left_out() {
    let value = |columns: FiveColumns| columns.value();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(value(NONE), None);
    assert_eq!(
        value(FiveColumns {
            bool_v: Some(false),
            ..NONE
        }),
        Some(KvValue::Bool(false))
    );
    assert_eq!(
        value(FiveColumns {
            long_v: Some(i64::MIN),
            ..NONE
        }),
        Some(KvValue::Long(i64::MIN))
    );
    assert_eq!(
        value(FiveColumns {
            dbl_v: Some(f64::NAN),
            ..NONE
        }),
        None
    );
    assert_eq!(
        value(FiveColumns {
            str_v: text("5"),
            ..NONE
        }),
        Some(KvValue::Text("5".into()))
    );
    let json = value(FiveColumns {
        json_v: text(" {\"a\" : [1, 2.50]}"),
        ..NONE
    });
    assert_eq!(json, Some(KvValue::Json("{\"a\":[1,2.50]}".into())));
    assert_eq!(
        value(FiveColumns {
            json_v: text("\"word\""),
            ..NONE
        }),
        Some(KvValue::Text("\"word\"".into()))
    );
}

/// Both databases of a ThingsBoard with one device.
struct Installation {
    url: String,
    options: CassandraOptions,
    session: Session,
    device: EntityId,
}

const TENANT: Uuid = Uuid::from_u128(0x1380_0000_1dd2_11b2_8080_8080_8080_8080);
const DEVICE: Uuid = Uuid::from_u128(0x1380_0001_1dd2_11b2_8080_8080_8080_8080);

impl Installation {
    async fn new() -> Self {
        let named = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} names the servers"));
        let name = format!("thingsboard_{}", Uuid::now_v7().simple());
        let server = named("FIELDLINE_TEST_POSTGRES_URL");
        let separator = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{separator}options[search_path]={name}");
        let mut postgres = PgConnection::connect(&server).await.unwrap();
        let tables = format!(
            "CREATE SCHEMA {name}; SET search_path TO {name};
             CREATE TABLE device (id uuid, tenant_id uuid, name varchar);
             INSERT INTO device VALUES ('{DEVICE}', '{TENANT}', 'Meter');
             CREATE TABLE key_dictionary (key varchar, key_id int);
             INSERT INTO key_dictionary VALUES ('old', 1);
             CREATE TABLE attribute_kv (entity_id uuid, attribute_type int, attribute_key int, bool_v boolean,
                 str_v varchar, long_v bigint, dbl_v double precision, json_v json, last_update_ts bigint);
             CREATE TABLE ts_kv_latest (entity_id uuid, key int, ts bigint, bool_v boolean, str_v varchar,
                 long_v bigint, dbl_v double precision, json_v json);
             INSERT INTO ts_kv_latest VALUES ('{DEVICE}', 1, 5, NULL, NULL, 7, NULL, NULL);"
        );
        sqlx::raw_sql(AssertSqlSafe(tables))
            .execute(&mut postgres)
            .await
            .unwrap();
        let options = CassandraOptions {
            nodes: named("FIELDLINE_TEST_CASSANDRA_NODES"),
            keyspace: name.clone(),
            ..CassandraOptions::default()
        };
        let session = cql_session::connect(&options).await.unwrap();
        for statement in [
            "CREATE KEYSPACE {} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE {}.ts_kv_cf (entity_type text, entity_id timeuuid, key text, partition bigint, ts bigint, \
             bool_v boolean, str_v text, long_v bigint, dbl_v double, json_v text, \
             PRIMARY KEY ((entity_type, entity_id, key, partition), ts))",
            "CREATE TABLE {}.ts_kv_partitions_cf (entity_type text, entity_id timeuuid, key text, partition bigint, \
             PRIMARY KEY ((entity_type, entity_id, key), partition))",
            "CREATE TABLE {}.ts_kv_latest_cf (entity_type text, entity_id timeuuid, key text, ts bigint, \
             bool_v boolean, str_v text, long_v bigint, dbl_v double, json_v text, \
             PRIMARY KEY ((entity_type, entity_id), key))",
        ] {
            let statement = statement.replacen("{}", &name, 1);
            session.query_unpaged(statement, ()).await.unwrap();
        }
        Self {
            url,
            options,
            session,
            device: EntityId::new(EntityType::Device, DEVICE),
        }
    }

    async fn put(&self, partition: i64, key: &str, points: impl Iterator<Item = i64>) {
        let keyspace = &self.options.keyspace;
        let id = CqlTimeuuid::from(DEVICE);
        let of_period = format!(
            "INSERT INTO {keyspace}.ts_kv_partitions_cf (entity_type, entity_id, key, partition) VALUES (?, ?, ?, ?)"
        );
        if partition != 0 {
            let values = ("DEVICE", id, key, partition);
            self.session.query_unpaged(of_period, values).await.unwrap();
        }
        let point = self
            .session
            .prepare(format!(
                "INSERT INTO {keyspace}.ts_kv_cf (entity_type, entity_id, key, partition, ts, long_v) VALUES (?, ?, ?, ?, ?, ?)"
            ))
            .await
            .unwrap();
        for ts in points {
            let values = ("DEVICE", id, key, partition, ts, ts * 2);
            self.session.execute_unpaged(&point, values).await.unwrap();
        }
    }

    async fn latest(&self, key: &str) {
        let statement = format!(
            "INSERT INTO {}.ts_kv_latest_cf (entity_type, entity_id, key, ts, str_v) VALUES (?, ?, ?, 9, 'now')",
            self.options.keyspace
        );
        let values = ("DEVICE", CqlTimeuuid::from(DEVICE), key);
        self.session.query_unpaged(statement, values).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs Cassandra and PostgreSQL"]
async fn series_in_cassandra_are_read_whole_and_from_a_time_on() {
    let installation = Installation::new().await;
    // Two periods, of more rows than a page has; one that is not divided; one whose latest value is in PostgreSQL.
    installation.put(1_000, "level", 1_000..2_200).await;
    installation.put(5_000, "level", 5_000..5_003).await;
    installation.put(0, "undivided", 1..3).await;
    // Without periods at first, and by longer ones later.
    installation.put(0, "changed", 10..12).await;
    installation.put(1_000, "changed", 1_000..1_002).await;
    installation.put(900, "changed", 1_005..1_007).await;
    installation.latest("changed").await;
    installation.put(1, "old", 5..6).await;
    installation.latest("level").await;
    installation.latest("undivided").await;

    let database = ThingsBoardDatabase::open(&installation.url, Some(&installation.options))
        .await
        .unwrap();
    let device = installation.device;
    let entities = database.entities(EntityType::Device, None, 10).await.unwrap();
    assert_eq!(entities.len(), 1);
    let series = database.series(device).await.unwrap();
    let names: Vec<&str> = series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["changed", "level", "old", "undivided"]);

    let times = async |name: &str, after| {
        let series = series.iter().find(|series| series.name == name).unwrap();
        let points = database.points(device, series, after);
        let points: Vec<DataPoint> = points.map(Result::unwrap).collect().await;
        assert!(
            points
                .iter()
                .all(|point| point.value == KvValue::Long(point.ts * 2))
        );
        let mut times: Vec<i64> = points.into_iter().map(|point| point.ts).collect();
        times.sort_unstable();
        times
    };
    let all: Vec<i64> = (1_000..2_200).chain(5_000..5_003).collect();
    assert_eq!(times("level", None).await, all);
    assert_eq!(times("level", Some(2_198)).await, [2_199, 5_000, 5_001, 5_002]);
    assert_eq!(times("level", Some(5_001)).await, [5_002]);
    assert_eq!(times("undivided", Some(1)).await, [2]);
    assert_eq!(times("old", None).await, [5]);
    assert_eq!(times("changed", None).await, [10, 11, 1_000, 1_001, 1_005, 1_006]);
    assert_eq!(times("changed", Some(1_001)).await, [1_005, 1_006]);
    assert!(!database.comes_in_order());

    let mut latest = database.latest(device).await.unwrap();
    latest.sort_by(|one, other| one.key.cmp(&other.key));
    let latest: Vec<(String, i64)> = latest
        .into_iter()
        .map(|latest| (latest.key, latest.point.ts))
        .collect();
    let expected = [("changed", 9), ("level", 9), ("old", 5), ("undivided", 9)];
    assert_eq!(latest, expected.map(|(key, ts)| (key.to_owned(), ts)));
    database.close().await;
    let drop = format!("DROP KEYSPACE {}", installation.options.keyspace);
    installation.session.query_unpaged(drop, ()).await.unwrap();
}
