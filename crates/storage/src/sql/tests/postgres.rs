//! On the PostgreSQL server that `FIELDLINE_TEST_POSTGRES_URL` names, in a schema of each test's own.

use fieldline_core::ports::{EntityStores, StoreErrorKind};
use uuid::Uuid;

use crate::sql::query::Query;
use crate::sql::{Database, open_postgres};

struct Fixture {
    stores: EntityStores,
    database: Database,
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
    use sqlx::{AssertSqlSafe, Connection, PgConnection};

    let mut connection = PgConnection::connect(&server()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

async fn open() -> Fixture {
    let schema = format!("test_{}", Uuid::now_v7().simple());
    administer(&format!("CREATE SCHEMA {schema}")).await;
    let server = server();
    let separator = if server.contains('?') { '&' } else { '?' };
    let url = format!("{server}{separator}options[search_path]={schema}");
    let database = Database::postgres(&url, 4).await.unwrap();
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
            tokio::spawn(async move { open_postgres(&url, 1).await.map(drop) })
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
    let newer = Query::new("INSERT INTO schema_version (version) VALUES (999)");
    fixture.database.execute(newer).await.unwrap();
    let error = open_postgres(&fixture.url, 1).await.err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
    assert!(error.message().contains("999"), "{error}");
    fixture.close().await;
}

#[tokio::test]
async fn a_malformed_url_is_refused_as_the_callers_mistake() {
    let error = open_postgres("not a url", 1).await.err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
}
