//! On the PostgreSQL server that `FIELDLINE_TEST_POSTGRES_URL` names, in a schema of each test's own.

use fieldline_core::ports::{EntityStores, StoreErrorKind};
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

use crate::sql::query::SqlQuery;
use crate::sql::{EntityDatabase, Options, open_postgres};

struct Fixture {
    stores: EntityStores,
    database: EntityDatabase,
    url: String,
    schema: String,
}

impl Fixture {
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
