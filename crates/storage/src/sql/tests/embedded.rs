//! On SQLite, in a directory of each test's own.

use std::path::Path;
use std::time::Duration;

use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{EntityStores, MAX_RELATIONS, RelationEnds, StoreErrorKind, UserFilter};
use fieldline_core::reader;
use fieldline_model::entity::{
    RelationTypeGroup, RelationsQuery, RelationsSearchParameters, SearchDirection, Tenant,
};
use fieldline_model::page::PageLink;
use fieldline_model::{AssetId, EntityType, TenantId};

use crate::sql::query::SqlQuery;
use crate::sql::{EntityDatabase, Options, open_sqlite};

struct Fixture {
    stores: EntityStores,
    database: EntityDatabase,
    directory: tempfile::TempDir,
}

impl Fixture {
    /// One program has the file, so that what it does at once with itself is tried.
    async fn beside(&self) -> EntityStores {
        self.stores.clone()
    }

    async fn close(self) {
        self.database.close().await;
    }
}

async fn open() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("entities.db");
    let database = EntityDatabase::sqlite(&path, &Options::default()).await.unwrap();
    Fixture {
        stores: database.entity_stores(),
        database,
        directory,
    }
}

fieldline_testkit::entity_contract!(open);
fieldline_testkit::two_writer_contract!(open);

#[tokio::test]
async fn whole_kinds_are_read_page_by_page() {
    let fixture = open().await;
    let rows = fixture.database.entity_rows();
    super::entity_rows::are_read_page_by_page(&fixture.stores, &rows).await;
    fixture.close().await;
}

fn tenant(title: &str) -> Tenant {
    Tenant {
        id: TenantId::new(),
        title: title.into(),
        ..Tenant::default()
    }
}

async fn reopened(path: &Path) -> EntityStores {
    open_sqlite(path, &Options::default()).await.unwrap()
}

#[tokio::test]
async fn what_was_saved_is_there_after_reopening() {
    let fixture = open().await;
    let path = fixture.directory.path().join("entities.db");
    let saved = fixture.stores.tenants.insert(tenant("first")).await.unwrap();
    // Not closed: as after a crash, the log has to be read again.
    let stores = reopened(&path).await;
    assert_eq!(stores.tenants.get(saved.id).await.unwrap(), Some(saved.clone()));
    fixture.database.close().await;
    assert!(fixture.stores.tenants.get(saved.id).await.is_err());
    assert!(
        reopened(&path)
            .await
            .tenants
            .get(saved.id)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let fixture = open().await;
    let path = fixture.directory.path().join("entities.db");
    let newer = SqlQuery::new("INSERT INTO schema_version (version) VALUES (999)");
    fixture.database.execute(newer).await.unwrap();
    fixture.database.close().await;
    let error = open_sqlite(&path, &Options::default()).await.err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.message().contains("999"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_reported_as_corrupt() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("entities.db");
    std::fs::write(&path, vec![b'x'; 8192]).unwrap();
    let error = open_sqlite(&path, &Options::default()).await.err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
}

#[tokio::test]
async fn a_full_database_refuses_changes_serves_reads_and_recovers() {
    let fixture = open().await;
    let saved = fixture.stores.tenants.insert(tenant("first")).await.unwrap();
    // The limit of pages stands in for the limit of the disk: SQLite reports both as SQLITE_FULL.
    let limit = |pages: &'static str| {
        fixture
            .database
            .write(SqlQuery::new("PRAGMA max_page_count = ").push(pages))
    };
    limit("1").await.unwrap();
    let mut full = None;
    for index in 0..10_000 {
        if let Err(error) = fixture.stores.tenants.insert(tenant(&index.to_string())).await {
            full = Some(error);
            break;
        }
    }
    let full = full.unwrap();
    assert_eq!(full.kind(), StoreErrorKind::DiskFull, "{full}");
    assert_eq!(fixture.stores.tenants.get(saved.id).await.unwrap(), Some(saved));
    limit("1000000").await.unwrap();
    fixture.stores.tenants.insert(tenant("after")).await.unwrap();
    fixture.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let fixture = open().await;
    for file in std::fs::read_dir(fixture.directory.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", file.path().display());
    }
    fixture.close().await;
}

#[tokio::test]
async fn impossible_settings_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("entities.db");
    let options = Options {
        readers: 0,
        ..Options::default()
    };
    let error = open_sqlite(&path, &options).await.err().unwrap();
    assert!(error.message().contains("readers"), "{error}");
    assert!(serde_json::from_str::<Options>(r#"{"reader": 3}"#).is_err());
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_to_date() {
    use fieldline_model::entity::{DeviceProfile, RuleChain};
    use fieldline_model::{DeviceProfileId, RuleChainId};
    use sqlx::{AssertSqlSafe, ConnectOptions as _};

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("entities.db");
    let (tenant, profile) = (TenantId::new(), DeviceProfileId::new());
    let (tenant_hex, profile_hex) = (tenant.0.simple(), profile.0.simple());
    let tables = include_str!("../migrations/0001_entities.sql").replace("KEYTEXT", "TEXT");
    let rows = format!(
        "CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY);
         INSERT INTO schema_version VALUES (1);
         INSERT INTO tenant VALUES (x'{tenant_hex}', 1, 'T', NULL, 't', '', '', '', '', 1, '{{}}');
         INSERT INTO device_profile VALUES (x'{profile_hex}', 1, x'{tenant_hex}', 'default', TRUE, NULL, 'default',
             '', 'DEFAULT', '', 1, '{{\"defaultQueueName\":\"Main\"}}');
         INSERT INTO customer VALUES (randomblob(16), 1, x'{tenant_hex}', 'Wasserwerk', FALSE, 'wasserwerk', '', '', '', 1, '{{}}');
         INSERT INTO user_account VALUES (randomblob(16), 1, NULL, NULL, 'root@x.org', 'root@x.org', 'SYS_ADMIN', 'root@x.org', '',
             '', 1, '{{}}');
         INSERT INTO device SELECT randomblob(16), 1, x'{tenant_hex}', NULL, x'{profile_hex}', column1, lower(column1), '', FALSE, 1,
             '{{}}' FROM (VALUES ('Pump 1'), ('Pump 2'), ('Valve'));"
    );
    let connect = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut connection = connect.connect().await.unwrap();
    for statements in [tables, rows] {
        sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    sqlx::Connection::close(connection).await.unwrap();

    let stores = reopened(&path).await;
    assert_eq!(stores.tenants.get(tenant).await.unwrap().unwrap().title, "T");
    let wanted = |text: &str| PageLink {
        text_search: Some(text.into()),
        ..PageLink::first(1)
    };
    let devices = &stores.devices;
    for (text, count) in [("PUMP", 2), ("valve", 1), ("um", 2), ("nothing", 0)] {
        let found = devices.list(tenant, &Default::default(), &wanted(text)).await;
        assert_eq!(found.unwrap().total_elements, count, "{text}");
    }
    let found = stores.customers.list(tenant, &wanted("wasser")).await.unwrap();
    assert_eq!(found.total_elements, 1);
    let found = stores
        .users
        .list(UserFilter::SysAdmins, &wanted("root@"))
        .await
        .unwrap();
    assert_eq!(found.total_elements, 1);
    let found = stores
        .device_profiles
        .get(tenant, profile)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.default_queue_name.as_deref(), Some("Main"));
    let chain = RuleChain {
        id: RuleChainId::new(),
        tenant_id: tenant,
        ..RuleChain::default()
    };
    let chain = stores.rule_chains.insert(chain).await.unwrap();
    let with_chain = DeviceProfile {
        default_rule_chain_id: Some(chain.id.into()),
        ..found
    };
    let saved = stores.device_profiles.update(with_chain).await.unwrap();
    assert_eq!(saved.default_rule_chain_id, Some(chain.id.into()));
}

#[tokio::test]
async fn more_relations_than_one_answer_may_have_are_refused_and_not_cut() {
    let fixture = open().await;
    let tenant = fixture.stores.tenants.insert(tenant("first")).await.unwrap();
    let (tenant, root) = (tenant.id, AssetId::new());
    let most = i64::try_from(MAX_RELATIONS).unwrap();
    let fill = |count: i64| {
        SqlQuery::new("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ")
            .bind(count)
            .push(
                ") INSERT INTO relation (tenant_id, from_type, from_id, to_type, to_id, type_group, type, version) \
                 SELECT ",
            )
            .bind(tenant.0)
            .push(", ")
            .bind(i64::from(EntityType::Asset as u8))
            .push(", ")
            .bind(root.0)
            .push(", ")
            .bind(i64::from(EntityType::Asset as u8))
            .push(", randomblob(16), 'COMMON', 'Contains', 1 FROM n")
    };
    let relations = &fixture.stores.relations;
    let ends = RelationEnds::from(root);
    let query = RelationsQuery {
        parameters: RelationsSearchParameters {
            root_id: root.0,
            root_type: EntityType::Asset,
            direction: SearchDirection::From,
            relation_type_group: RelationTypeGroup::Common,
            max_level: 1,
            fetch_last_level_only: false,
        },
        filters: Vec::new(),
    };
    fixture.database.execute(fill(most)).await.unwrap();
    assert_eq!(relations.find(tenant, &ends).await.unwrap().len(), MAX_RELATIONS);
    fixture.database.execute(fill(1)).await.unwrap();
    for refused in [
        relations.find(tenant, &ends).await,
        relations.search(tenant, &query).await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        assert!(error.message().contains("narrow the search"), "{error}");
    }
    fixture.close().await;
}

/// What of the index of texts is left.
async fn indexed(database: &EntityDatabase) -> Vec<i64> {
    let mut counts = Vec::new();
    for query in [
        "SELECT COUNT(*) FROM text_part",
        "SELECT COUNT(*) FROM text_row",
        "SELECT COUNT(*) FROM text_index WHERE text_index MATCH 'fir OR sec'",
    ] {
        let rows = database.read(SqlQuery::new(query)).await.unwrap();
        counts.push(rows[0].columns().next().unwrap());
    }
    counts
}

#[tokio::test]
async fn nothing_of_what_is_gone_stays_in_the_index_of_texts() {
    let fixture = open().await;
    let tenants = &fixture.stores.tenants;
    let first = tenants.insert(tenant("first")).await.unwrap();
    tenants.insert(tenant("second")).await.unwrap();
    // So many of each that all but the last ones are in the index.
    for statement in [
        "INSERT INTO asset_profile SELECT id, 1, id, title, TRUE, NULL, search, '', 1, '{}' FROM tenant",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 128) INSERT INTO asset \
         SELECT randomblob(16), 1, id, NULL, id, title || i, search || i, '', 1, '{}' FROM tenant, n",
    ] {
        fixture.database.execute(SqlQuery::new(statement)).await.unwrap();
    }
    assert_eq!(indexed(&fixture.database).await, [2, 256, 256]);
    let rename =
        "UPDATE asset SET search = 'third' || search WHERE search LIKE 'second%' AND search > 'second9'";
    let renamed = fixture.database.execute(SqlQuery::new(rename)).await.unwrap() as i64;
    let left = 256 - renamed;
    assert_eq!(indexed(&fixture.database).await, [2, left, left]);
    assert!(tenants.delete(first.id).await.unwrap());
    assert_eq!(indexed(&fixture.database).await, [1, left - 128, left - 128]);
    fixture.close().await;
}

/// A statement that runs for a very long time.
fn endless() -> SqlQuery {
    SqlQuery::new(
        "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted) SELECT COUNT(*) FROM counted",
    )
}

async fn impatient(list_readers: u32, list_timeout: HumanDuration) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("entities.db");
    let options = Options {
        list_readers,
        list_timeout,
        ..Options::default()
    };
    let database = EntityDatabase::sqlite(&path, &options).await.unwrap();
    Fixture {
        stores: database.entity_stores(),
        database,
        directory,
    }
}

#[tokio::test]
async fn a_list_that_takes_too_long_is_ended_and_its_reader_serves_again() {
    let fixture = impatient(1, HumanDuration::millis(200)).await;
    for _ in 0..3 {
        let late = reader::with_reader(TenantId::new(), fixture.database.read_list(endless())).await;
        let error = late.map(|_| ()).unwrap_err().into_error();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("200ms"), "{error}");
        let short = fixture.database.read_list(SqlQuery::new("SELECT 1"));
        assert_eq!(
            reader::with_reader(TenantId::new(), short).await.unwrap().len(),
            1
        );
    }
    fixture.close().await;
}

#[tokio::test]
async fn lists_of_people_leave_the_readers_of_devices_alone() {
    let fixture = impatient(2, HumanDuration::secs(60)).await;
    let lists: Vec<_> = (0..8)
        .map(|_| {
            let database = fixture.database.clone();
            let list = async move { database.read_list(endless()).await.is_ok() };
            tokio::spawn(reader::with_reader(TenantId::new(), list))
        })
        .collect();
    // As many look-ups as there are readers, and more.
    for _ in 0..50 {
        let found = tokio::time::timeout(
            Duration::from_secs(30),
            fixture.database.read(SqlQuery::new("SELECT 1")),
        );
        assert_eq!(found.await.unwrap().unwrap().len(), 1);
    }
    // Whoever goes ends what was read for it: the readers are free at once, and not after a minute.
    for list in &lists {
        list.abort();
    }
    let short = fixture.database.read_list(SqlQuery::new("SELECT 1"));
    let short = reader::with_reader(TenantId::new(), short);
    let found = tokio::time::timeout(Duration::from_secs(30), short).await;
    assert_eq!(found.unwrap().unwrap().len(), 1);
    fixture.close().await;
}

#[tokio::test]
async fn a_page_of_too_many_bytes_is_refused() {
    let fixture = impatient(2, HumanDuration::secs(60)).await;
    let rows = "SELECT zeroblob(4000000) FROM (WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM \
                counted) SELECT n FROM counted LIMIT ";
    let read = |count: i64| {
        let query = SqlQuery::new(rows).bind(count).push(")");
        reader::with_reader(TenantId::new(), fixture.database.read_list(query))
    };
    assert_eq!(read(8).await.unwrap().len(), 8);
    let error = read(1_000_000).await.map(|_| ()).unwrap_err().into_error();
    assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
    assert!(error.message().contains("32MiB"), "{error}");
    fixture.close().await;
}
