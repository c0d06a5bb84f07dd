//! Clients of the publish/subscribe broker.

use async_trait::async_trait;
use fieldline_core::ports::{
    MqttClientStore, MqttCredentialsCount, MqttCredentialsFilter, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::entity::{
    BlockedClient, BlockedClientType, MqttClientCredentials, MqttClientType, MqttCredentialsType,
    RegexMatchTarget,
};
use fieldline_model::page::{PageData, PageLink};
use serde_json::Value;
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, SqlArg, SqlQuery, SqlRow, unreadable};
use super::record;
use super::statement_error::StatementError;

const COLUMNS: &str = "id, created_time, name, client_type, credentials_type, credentials_id, \
                       credentials_value, additional_info";

const LISTING: ListDefinition = ListDefinition {
    table: "mqtt_credentials",
    select: COLUMNS,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("name", "search"),
        ("clientType", "client_type"),
        ("credentialsType", "credentials_type"),
    ],
};

/// Clients of the broker in a database.
pub(super) struct SqlMqttClients(pub(super) EntityDatabase);

/// What a list is filtered by, which stands in the JSON of the value.
struct Filtered {
    username: SqlArg,
    client_id: SqlArg,
    common_name: SqlArg,
    has_pattern: SqlArg,
}

impl Filtered {
    fn of(credentials: &MqttClientCredentials) -> StoreResult<Self> {
        let value: Value = serde_json::from_str(&credentials.credentials_value)
            .map_err(|error| record::invalid("The value of credentials must be JSON!").caused_by(error))?;
        let text = |name: &str| {
            let text = value.get(name).and_then(Value::as_str);
            SqlArg::from(text.filter(|text| !text.is_empty()).map(str::to_lowercase))
        };
        Ok(Self {
            username: text("userName"),
            client_id: text("clientId"),
            common_name: text("certCnPattern"),
            has_pattern: value
                .get("certCnIsRegex")
                .and_then(Value::as_bool)
                .unwrap_or_default()
                .into(),
        })
    }
}

/// Says what is taken where a statement found a value that has to be unique.
fn words(failure: StatementError) -> StoreError {
    match failure {
        StatementError::Taken(constraint) => {
            let message = if constraint.ends_with("_name_key") {
                "MQTT Client credentials with such name are already created!"
            } else {
                "Specified credentials are already registered!"
            };
            StoreError::new(StoreErrorKind::Conflict, message).caused_by(constraint)
        }
        failure => failure.into_error(),
    }
}

/// Appends a condition that a column contains a text.
fn containing(query: SqlQuery, column: &'static str, text: Option<&String>) -> SqlQuery {
    match text {
        Some(text) => query
            .push(" AND ")
            .push(column)
            .push(" LIKE ")
            .bind(list::containing(&text.to_lowercase()))
            .push(" ESCAPE '\\'"),
        None => query,
    }
}

/// Appends a condition that a column has one of these values, if there are any.
fn one_of(query: SqlQuery, column: &'static str, names: &[&'static str]) -> SqlQuery {
    if names.is_empty() {
        return query;
    }
    query
        .push(" AND ")
        .push(column)
        .push(" IN (")
        .bind_list(names.iter().copied())
        .push(")")
}

fn target_name(target: Option<RegexMatchTarget>) -> &'static str {
    target.map_or("", RegexMatchTarget::name)
}

#[async_trait]
impl MqttClientStore for SqlMqttClients {
    async fn insert(&self, credentials: &MqttClientCredentials) -> StoreResult<()> {
        let filtered = Filtered::of(credentials)?;
        let query = SqlQuery::new("INSERT INTO mqtt_credentials (")
            .push(COLUMNS)
            .push(", username, client_id, common_name, has_pattern, search) VALUES (")
            .bind_list([
                SqlArg::from(credentials.id),
                credentials.created_time.into(),
                record::bounded("name", &credentials.name)?,
                credentials.client_type.name().into(),
                credentials.credentials_type.name().into(),
                credentials.credentials_id.as_str().into(),
                credentials.credentials_value.as_str().into(),
                credentials.additional_info.to_string().into(),
                filtered.username,
                filtered.client_id,
                filtered.common_name,
                filtered.has_pattern,
                record::search_text(&[Some(&credentials.name)]),
            ])
            .push(")");
        self.0.execute(query).await.map(|_| ()).map_err(words)
    }

    async fn update(&self, credentials: &MqttClientCredentials, read: &str) -> StoreResult<bool> {
        let filtered = Filtered::of(credentials)?;
        let query = SqlQuery::new("UPDATE mqtt_credentials SET name = ")
            .bind(record::bounded("name", &credentials.name)?)
            .push(", client_type = ")
            .bind(credentials.client_type.name())
            .push(", credentials_type = ")
            .bind(credentials.credentials_type.name())
            .push(", credentials_id = ")
            .bind(credentials.credentials_id.as_str())
            .push(", credentials_value = ")
            .bind(credentials.credentials_value.as_str())
            .push(", additional_info = ")
            .bind(credentials.additional_info.to_string())
            .push(", username = ")
            .bind(filtered.username)
            .push(", client_id = ")
            .bind(filtered.client_id)
            .push(", common_name = ")
            .bind(filtered.common_name)
            .push(", has_pattern = ")
            .bind(filtered.has_pattern)
            .push(", search = ")
            .bind(record::search_text(&[Some(&credentials.name)]))
            .push(" WHERE id = ")
            .bind(credentials.id)
            .push(" AND credentials_value = ")
            .bind(read);
        self.0
            .execute(query)
            .await
            .map(|changed| changed > 0)
            .map_err(words)
    }

    async fn get(&self, id: Uuid) -> StoreResult<Option<MqttClientCredentials>> {
        let query = selected().push("id = ").bind(id);
        first(&self.0.read(query).await?)
    }

    async fn by_name(&self, name: &str) -> StoreResult<Option<MqttClientCredentials>> {
        let query = selected().push("name = ").bind(name);
        first(&self.0.read(query).await?)
    }

    async fn by_credentials_ids(&self, ids: &[String]) -> StoreResult<Vec<MqttClientCredentials>> {
        // A text with the null character is never stored, and PostgreSQL would refuse to look for it.
        let ids: Vec<&str> = ids
            .iter()
            .map(String::as_str)
            .filter(|id| !id.contains('\0'))
            .collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = selected().push("credentials_id IN (").bind_list(ids).push(")");
        read_all(&self.0.read(query).await?)
    }

    async fn certificate_patterns(&self, limit: u32) -> StoreResult<Vec<MqttClientCredentials>> {
        let query = selected()
            .push("has_pattern ORDER BY created_time, id LIMIT ")
            .bind(i64::from(limit));
        read_all(&self.0.read(query).await?)
    }

    async fn list(
        &self,
        filter: &MqttCredentialsFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<MqttClientCredentials>> {
        let clients: Vec<_> = filter.client_types.iter().map(|kind| kind.name()).collect();
        let types: Vec<_> = filter.credentials_types.iter().map(|kind| kind.name()).collect();
        let condition = |query: SqlQuery| {
            let query = one_of(query, "client_type", &clients);
            let query = one_of(query, "credentials_type", &types);
            let query = containing(query, "username", filter.username.as_ref());
            let query = containing(query, "client_id", filter.client_id.as_ref());
            containing(query, "common_name", filter.common_name.as_ref())
        };
        list::page(&self.0, &LISTING, page, condition, list::own_text, read).await
    }

    async fn count(&self) -> StoreResult<MqttCredentialsCount> {
        let query = SqlQuery::new("SELECT client_type, COUNT(*) FROM mqtt_credentials GROUP BY client_type");
        let mut count = MqttCredentialsCount::default();
        for row in self.0.read(query).await? {
            let mut columns = row.columns();
            let kind: String = columns.next()?;
            let number: i64 = columns.next()?;
            let number = number.unsigned_abs();
            match MqttClientType::named(&kind) {
                Some(MqttClientType::Application) => count.applications += number,
                _ => count.devices += number,
            }
        }
        Ok(count)
    }

    async fn delete(&self, id: Uuid) -> StoreResult<bool> {
        let query = SqlQuery::new("DELETE FROM mqtt_credentials WHERE id = ").bind(id);
        Ok(self.0.execute(query).await? > 0)
    }

    async fn block(&self, client: &BlockedClient) -> StoreResult<()> {
        let query = SqlQuery::new(
            "INSERT INTO blocked_client (type, value, target, expiration, description) VALUES (",
        )
        .bind_list([
            SqlArg::from(client.kind.name()),
            record::bounded("value", &client.value)?,
            target_name(client.target).into(),
            client.expiration_time.into(),
            client.description.clone().into(),
        ])
        .push(")");
        match self.0.execute(query).await {
            Ok(_) => Ok(()),
            Err(StatementError::Taken(constraint)) => Err(StoreError::new(
                StoreErrorKind::Conflict,
                "Such blocked client already exists!",
            )
            .caused_by(constraint)),
            Err(failure) => Err(failure.into_error()),
        }
    }

    async fn unblock(
        &self,
        kind: BlockedClientType,
        value: &str,
        target: Option<RegexMatchTarget>,
    ) -> StoreResult<bool> {
        let query = SqlQuery::new("DELETE FROM blocked_client WHERE type = ")
            .bind(kind.name())
            .push(" AND value = ")
            .bind(value)
            .push(" AND target = ")
            .bind(target_name(target));
        Ok(self.0.execute(query).await? > 0)
    }

    async fn blocked(&self, limit: u32) -> StoreResult<Vec<BlockedClient>> {
        let query = SqlQuery::new(
            "SELECT type, value, target, expiration, description FROM blocked_client \
             ORDER BY type, value, target LIMIT ",
        )
        .bind(i64::from(limit));
        let rows = self.0.read(query).await?;
        rows.iter()
            .map(|row| {
                let mut columns = row.columns();
                let kind: String = columns.next()?;
                let value = columns.next()?;
                let target: String = columns.next()?;
                let kind = BlockedClientType::named(&kind)
                    .ok_or_else(|| unreadable("unknown type of a blocked client"))?;
                Ok(BlockedClient {
                    kind,
                    value,
                    target: RegexMatchTarget::named(&target),
                    expiration_time: columns.next()?,
                    description: columns.next()?,
                })
            })
            .collect()
    }

    async fn forget_blocked(&self, before_ms: i64) -> StoreResult<u64> {
        let query = SqlQuery::new("DELETE FROM blocked_client WHERE expiration > 0 AND expiration < ")
            .bind(before_ms);
        Ok(self.0.execute(query).await?)
    }
}

/// `SELECT … WHERE `, to be continued with a condition.
fn selected() -> SqlQuery {
    SqlQuery::new("SELECT ")
        .push(COLUMNS)
        .push(" FROM mqtt_credentials WHERE ")
}

fn first(rows: &[SqlRow]) -> StoreResult<Option<MqttClientCredentials>> {
    rows.first().map(|row| read(&mut row.columns())).transpose()
}

fn read_all(rows: &[SqlRow]) -> StoreResult<Vec<MqttClientCredentials>> {
    rows.iter().map(|row| read(&mut row.columns())).collect()
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<MqttClientCredentials> {
    let id: Uuid = columns.next()?;
    let created_time = columns.next()?;
    let name = columns.next()?;
    let client_type: String = columns.next()?;
    let credentials_type: String = columns.next()?;
    let credentials_id = columns.next()?;
    let credentials_value = columns.next()?;
    let additional_info: String = columns.next()?;
    Ok(MqttClientCredentials {
        id,
        created_time,
        name,
        client_type: MqttClientType::named(&client_type)
            .ok_or_else(|| unreadable("unknown type of an MQTT client"))?,
        credentials_type: MqttCredentialsType::named(&credentials_type)
            .ok_or_else(|| unreadable("unknown type of MQTT credentials"))?,
        credentials_id,
        credentials_value,
        additional_info: serde_json::from_str(&additional_info).map_err(unreadable)?,
    })
}
