//! On the PostgreSQL server that `FIELDLINE_TEST_POSTGRES_URL` names, in a schema of each test's own.

use fieldline_core::clock::{Clock as _, SystemClock};
use fieldline_core::ports::{EntityStores, StoreErrorKind};
use fieldline_model::entity::{EntityEvent, EventBody, EventKind};
use fieldline_model::{EntityId, EntityType, TenantId};
use fieldline_testkit::contract::entities::fixture::EntityFixture;
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

use crate::sql::query::SqlQuery;
use crate::sql::{EntityDatabase, Options, open_postgres, schema};

struct Fixture {
    stores: EntityStores,
    database: EntityDatabase,
    url: String,
    schema: String,
}

impl Fixture {
    /// The stores of another program on the same database.
    async fn beside(&self) -> EntityStores {
        let database = EntityDatabase::postgres(&self.url, &options(4)).await.unwrap();
        database.entity_stores()
    }

    async fn close(self) {
        self.database.close().await;
        administer(&format!("DROP SCHEMA {} CASCADE", self.schema)).await;
    }
}

fn server() -> String {
    std::env::var("FIELDLINE_TEST_POSTGRES_URL").expect(
        "FIELDLINE_TEST_POSTGRES_URL names the server to test on; see tests/services/with-postgres.sh",
    )
}

async fn administer(sql: &str) {
    administer_at(&server(), sql).await;
}

async fn administer_at(url: &str, sql: &str) {
    use sqlx::{AssertSqlSafe, Connection, PgConnection};

    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

fn options(connections: u32) -> Options {
    Options {
        connections,
        ..Options::default()
    }
}

async fn open() -> Fixture {
    let schema = format!("test_{}", Uuid::now_v7().simple());
    administer(&format!("CREATE SCHEMA {schema}")).await;
    let server = server();
    let separator = if server.contains('?') { '&' } else { '?' };
    let url = format!("{server}{separator}options[search_path]={schema}");
    let database = EntityDatabase::postgres(&url, &options(4)).await.unwrap();
    Fixture {
        stores: database.entity_stores(),
        database,
        url,
        schema,
    }
}

fieldline_testkit::entity_contract!(open, ignore = "needs FIELDLINE_TEST_POSTGRES_URL");
fieldline_testkit::two_writer_contract!(open, ignore = "needs FIELDLINE_TEST_POSTGRES_URL");

#[tokio::test]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn whole_kinds_are_read_page_by_page() {
    let fixture = open().await;
    let rows = fixture.database.entity_rows();
    super::entity_rows::are_read_page_by_page(&fixture.stores, &rows).await;
    fixture.close().await;
}

#[tokio::test]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn programs_that_start_together_migrate_once() {
    let fixture = open().await;
    administer(&format!(
        "DROP SCHEMA {0} CASCADE; CREATE SCHEMA {0}",
        fixture.schema
    ))
    .await;
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let url = fixture.url.clone();
            tokio::spawn(async move { open_postgres(&url, &options(1)).await.map(drop) })
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    fixture.close().await;
}

#[tokio::test]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn a_database_of_a_newer_program_is_refused() {
    let fixture = open().await;
    let newer = SqlQuery::new("INSERT INTO schema_version (version) VALUES (999)");
    fixture.database.execute(newer).await.unwrap();
    let error = open_postgres(&fixture.url, &options(1)).await.err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
    assert!(error.message().contains("999"), "{error}");
    fixture.close().await;
}

#[tokio::test]
async fn a_malformed_url_is_refused_as_the_callers_mistake() {
    let error = open_postgres("not a url", &options(1)).await.err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
}

/// How many indexes of texts there are.
async fn indexes(database: &EntityDatabase) -> i64 {
    let query =
        "SELECT COUNT(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexname LIKE '%_by_text'";
    let rows = database.read(SqlQuery::new(query)).await.unwrap();
    rows[0].columns().next().unwrap()
}

#[tokio::test]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn texts_are_indexed_as_soon_as_the_database_can() {
    use sqlx::ConnectOptions as _;

    let fixture = open().await;
    assert_eq!(indexes(&fixture.database).await, 7);
    fixture.close().await;

    // A database in which the program may not create extensions.
    let name = format!("limited_{}", Uuid::now_v7().simple());
    administer(&format!("CREATE ROLE {name} LOGIN")).await;
    administer(&format!("CREATE DATABASE {name}")).await;
    let there: PgConnectOptions = server().parse().unwrap();
    let there = there.database(&name);
    let administrator = there.to_url_lossy().to_string();
    let limited = there.username(&name).to_url_lossy().to_string();
    administer_at(
        &administrator,
        &format!("CREATE SCHEMA {name} AUTHORIZATION {name}"),
    )
    .await;
    for (expected, afterwards) in [(0, "CREATE EXTENSION pg_trgm"), (7, "SELECT 1")] {
        let database = EntityDatabase::postgres(&limited, &options(2)).await.unwrap();
        assert_eq!(indexes(&database).await, expected);
        fieldline_testkit::contract::entities::text_search_looks_where_it_promises(&database.entity_stores())
            .await;
        database
            .execute(SqlQuery::new("DELETE FROM tenant"))
            .await
            .unwrap();
        database
            .execute(SqlQuery::new("DELETE FROM tenant_profile"))
            .await
            .unwrap();
        database.close().await;
        administer_at(&administrator, afterwards).await;
    }
    administer(&format!("DROP DATABASE {name}")).await;
    administer(&format!("DROP ROLE {name}")).await;
}

/// The version before the audit log and events had parts.
const WITHOUT_MONTHS: usize = 21;

fn happened(tenant: TenantId, created_time: i64) -> EntityEvent {
    let body = EventBody::Error {
        method: "test".to_owned(),
        error: Some("none".to_owned()),
    };
    let entity = EntityId::new(EntityType::Tenant, tenant.0);
    EntityEvent::new(tenant, entity, "here".to_owned(), created_time, body)
}

/// The parts of the events, each with how many there are.
async fn parts(database: &EntityDatabase) -> Vec<(String, i64)> {
    let query = "SELECT relname::text, (SELECT COUNT(*) FROM event WHERE event.tableoid = pg_class.oid) \
        FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = to_regclass('event') ORDER BY 1";
    let rows = database.read(SqlQuery::new(query)).await.unwrap();
    rows.iter()
        .map(|row| {
            let mut columns = row.columns();
            (columns.next().unwrap(), columns.next().unwrap())
        })
        .collect()
}

fn now_ms() -> i64 {
    SystemClock.now_ms()
}

const DAY_MS: i64 = 86_400_000;

#[tokio::test]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn events_of_a_month_are_dropped_together_once_all_are_past() {
    let fixture = open().await;
    let events = &fixture.stores.events;
    let (none, now) = (TenantId::NULL, now_ms());
    let before: Vec<_> = parts(&fixture.database).await;
    assert_eq!(
        before.len(),
        3,
        "this month, the next one and all others: {before:?}"
    );
    events
        .append(&[happened(none, now), happened(none, now)])
        .await
        .unwrap();
    let held: Vec<i64> = parts(&fixture.database)
        .await
        .into_iter()
        .map(|part| part.1)
        .collect();
    assert_eq!(held, [2, 0, 0]);

    // The month is not over yet by the time up to which is deleted, then it is, but something of another kind is left.
    let kind = EventKind::Error;
    assert_eq!(events.delete_before(kind, now).await.unwrap(), 0);
    let mut started = happened(none, now);
    started.body = EventBody::Lifecycle {
        event: "STARTED".to_owned(),
        success: true,
        error: None,
    };
    events.append(&[started]).await.unwrap();
    let later = now + 70 * DAY_MS;
    assert_eq!(events.delete_before(kind, later).await.unwrap(), 2);
    assert_eq!(parts(&fixture.database).await[0].1, 1);
    assert_eq!(events.delete_before(EventKind::LcEvent, later).await.unwrap(), 1);
    let left: Vec<String> = parts(&fixture.database)
        .await
        .into_iter()
        .map(|part| part.0)
        .collect();
    assert_eq!(left, ["event_rest"]);
    // What comes without a part is kept all the same.
    events.append(&[happened(none, now)]).await.unwrap();
    assert_eq!(parts(&fixture.database).await, [("event_rest".to_owned(), 1)]);
    assert_eq!(events.delete_before(kind, later).await.unwrap(), 1);
    fixture.close().await;
}

#[tokio::test]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn events_from_before_there_were_months_are_kept() {
    let fixture = open().await;
    let (url, schema) = (&fixture.url, &fixture.schema);
    administer(&format!("DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}")).await;
    let old = EntityDatabase::postgres_unprepared(url, &options(2))
        .await
        .unwrap();
    schema::migrate_to(&old, WITHOUT_MONTHS).await.unwrap();
    let (none, now) = (TenantId::NULL, now_ms());
    let ahead = EntityEvent {
        id: Uuid::new_v7(uuid::Timestamp::from_unix(
            uuid::NoContext,
            u64::try_from(now / 1_000).unwrap() + 90 * 86_400,
            0,
        )),
        ..happened(none, now)
    };
    let odd = EntityEvent {
        id: Uuid::nil(),
        ..happened(none, now)
    };
    let all = [happened(none, now), ahead, odd];
    old.entity_stores().events.append(&all).await.unwrap();
    old.close().await;

    let upgraded = EntityDatabase::postgres(url, &options(2)).await.unwrap();
    let found = parts(&upgraded).await;
    let held: Vec<(&str, i64)> = found.iter().map(|(name, rows)| (&**name, *rows)).collect();
    assert!(held.contains(&("event_before", 2)), "{held:?}");
    assert!(held.contains(&("event_rest", 1)), "{held:?}");
    let events = upgraded.entity_stores().events;
    events
        .append(&[happened(none, now), all[0].clone()])
        .await
        .unwrap();
    let total: i64 = parts(&upgraded).await.into_iter().map(|part| part.1).sum();
    assert_eq!(total, 4, "one of them was there before");
    assert_eq!(events.delete_before(EventKind::Error, now + 1).await.unwrap(), 4);
    upgraded.close().await;
    fixture.close().await;
}

#[tokio::test]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn a_tenant_that_goes_leaves_the_events_of_others() {
    let fixture = open().await;
    let stores = &fixture.stores;
    let gone = EntityFixture::new(stores, "gone").await.tenant;
    let stays = EntityFixture::new(stores, "stays").await.tenant;
    // Rows at the same places of two parts.
    let at = |tenant, seconds: u64| {
        let timestamp = uuid::Timestamp::from_unix(uuid::NoContext, seconds, 0);
        EntityEvent {
            id: Uuid::new_v7(timestamp),
            ..happened(tenant, now_ms())
        }
    };
    let this_month = u64::try_from(now_ms() / 1_000).unwrap();
    for _ in 0..300 {
        stores
            .events
            .append(&[at(gone, this_month), at(stays, 1)])
            .await
            .unwrap();
    }
    assert!(stores.tenants.delete(gone).await.unwrap());
    let left: i64 = parts(&fixture.database)
        .await
        .into_iter()
        .map(|part| part.1)
        .sum();
    assert_eq!(left, 300);
    fixture.close().await;
}

#[tokio::test]
#[ignore = "needs FIELDLINE_TEST_POSTGRES_URL"]
async fn what_a_customer_has_got_meanwhile_is_not_taken_from_it() {
    use sqlx::Connection as _;

    let fixture = open().await;
    let world = EntityFixture::new(&fixture.stores, "T").await;
    let (former, next) = (world.customer("former").await.id, world.customer("next").await.id);
    let mut device = world.device("device").await;
    device.customer_id = former;
    let device = fixture.stores.devices.update(device).await.unwrap();

    // Another process gives the device to the next customer while this one is about to take it from the former.
    let mut other = sqlx::PgConnection::connect(&fixture.url).await.unwrap();
    let mut transaction = other.begin().await.unwrap();
    sqlx::query("UPDATE device SET customer_id = $1, version = version + 1 WHERE id = $2")
        .bind(next.0)
        .bind(device.id.0)
        .execute(&mut *transaction)
        .await
        .unwrap();
    let (stores, tenant) = (fixture.stores.clone(), world.tenant);
    let deletion = tokio::spawn(async move { stores.customers.delete(tenant, former).await });
    let waits = SqlQuery::new("SELECT COUNT(*) FROM pg_locks WHERE NOT granted");
    loop {
        let rows = fixture.database.read(waits.clone()).await.unwrap();
        if rows[0].columns().next::<i64>().unwrap() > 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    transaction.commit().await.unwrap();
    assert!(deletion.await.unwrap().unwrap());
    let found = fixture.stores.devices.get(tenant, device.id).await.unwrap();
    assert_eq!(found.map(|device| device.customer_id), Some(next));
    drop(other);
    fixture.close().await;
}
