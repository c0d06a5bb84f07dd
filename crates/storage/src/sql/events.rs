//! Events of all kinds, in one table.

use async_trait::async_trait;
use fieldline_core::ports::{EventFilter, EventStore, EventText, StoreResult};
use fieldline_model::entity::{CalculatedFieldDebug, EntityEvent, EventBody, EventKind, RuleNodeDebug};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey, TenantId};
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::months::{self, MonthlyTable};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record;
use super::statement_error::StatementError;

const COLUMNS: &str = "id, created_time, tenant_id, entity_type, entity_id, kind, server, name, field_id, about_type, \
    about_id, msg_id, msg_type, data_type, relation_type, data, metadata, success, messages, errors, error";

/// Events in one statement: twenty-one values each, and well under the parameters that either database takes.
const EVENTS_A_STATEMENT: usize = 200;
/// Events deleted in one statement, so that writers in between do not wait long.
const DELETED_A_STATEMENT: i64 = 10_000;

const LISTING: ListDefinition = ListDefinition {
    table: "event",
    select: COLUMNS,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("ts", "created_time"),
        ("id", "event.id"),
    ],
};

/// Events in a database.
pub(super) struct SqlEvents(pub(super) EntityDatabase);

#[async_trait]
impl EventStore for SqlEvents {
    async fn append(&self, events: &[EntityEvent]) -> StoreResult<()> {
        months::prepare(&self.0).await;
        match self.insert(&events.iter().collect::<Vec<_>>()).await {
            // A tenant is gone, and what happened in it does not matter any more.
            Err(StatementError::BrokenReference) => {
                let known = self.known_tenants(events).await?;
                let kept: Vec<&EntityEvent> = events
                    .iter()
                    .filter(|event| event.tenant_id.is_null() || known.contains(&event.tenant_id.0))
                    .collect();
                Ok(self.insert(&kept).await?)
            }
            stored => Ok(stored?),
        }
    }

    async fn list(
        &self,
        tenant: TenantId,
        entity: EntityId,
        filter: &EventFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<EntityEvent>> {
        let page = PageLink {
            text_search: None,
            ..page.clone()
        };
        let condition = |query: SqlQuery| matching(query, tenant, entity, filter);
        let no_search = |query: SqlQuery, _: &str| query.push("TRUE");
        list::page(&self.0, &LISTING, &page, condition, no_search, read).await
    }

    async fn delete(&self, tenant: TenantId, entity: EntityId, filter: &EventFilter) -> StoreResult<u64> {
        self.delete_all(|query| matching(query, tenant, entity, filter))
            .await
    }

    async fn delete_subject(&self, subject: EntityKey) -> StoreResult<()> {
        let condition = |query: SqlQuery| {
            query
                .push(" AND entity_id = ")
                .bind(subject.entity.id)
                .owned_by(owner(subject.tenant))
        };
        self.delete_all(condition).await.map(drop)
    }

    async fn delete_before(&self, kind: EventKind, time_ms: i64) -> StoreResult<u64> {
        let condition = |query: SqlQuery| {
            query
                .push(" AND kind = ")
                .bind(kind.name())
                .push(" AND created_time < ")
                .bind(time_ms)
        };
        let dropped = months::drop_before(&self.0, MonthlyTable::Event, time_ms, Some(kind.name())).await?;
        Ok(dropped + self.delete_all(condition).await?)
    }
}

impl SqlEvents {
    /// Inserts in one transaction.
    async fn insert(&self, events: &[&EntityEvent]) -> Result<(), StatementError> {
        if events.is_empty() {
            return Ok(());
        }
        let mut changes = self.0.begin().await?;
        for some in events.chunks(EVENTS_A_STATEMENT) {
            let mut query = SqlQuery::new("INSERT INTO event (")
                .push(COLUMNS)
                .push(") VALUES ");
            for (index, event) in some.iter().enumerate() {
                query = query
                    .push(if index == 0 { "(" } else { ", (" })
                    .bind_list(values(event))
                    .push(")");
            }
            changes
                .execute(query.push(" ON CONFLICT (id) DO NOTHING"))
                .await?;
        }
        changes.commit().await
    }

    async fn known_tenants(&self, events: &[EntityEvent]) -> StoreResult<Vec<Uuid>> {
        let mut tenants: Vec<Uuid> = events.iter().map(|event| event.tenant_id.0).collect();
        tenants.sort_unstable();
        tenants.dedup();
        let mut known = Vec::new();
        for some in tenants.chunks(record::IDS_A_STATEMENT) {
            let query = SqlQuery::new("SELECT id FROM tenant WHERE id IN (")
                .bind_list(some.iter().copied())
                .push(")");
            for row in &self.0.read(query).await? {
                known.push(row.columns().next()?);
            }
        }
        Ok(known)
    }

    async fn delete_all(&self, condition: impl Fn(SqlQuery) -> SqlQuery) -> StoreResult<u64> {
        let mut deleted = 0;
        loop {
            let query = SqlQuery::new("DELETE FROM event WHERE id IN (SELECT id FROM event WHERE TRUE");
            let query = condition(query)
                .push(" LIMIT ")
                .bind(DELETED_A_STATEMENT)
                .push(")");
            let some = self.0.execute(query).await?;
            deleted += some;
            if i64::try_from(some).unwrap_or(i64::MAX) < DELETED_A_STATEMENT {
                return Ok(deleted);
            }
        }
    }
}

fn owner(tenant: TenantId) -> RowOwner {
    if tenant.is_null() {
        RowOwner::NoTenant
    } else {
        RowOwner::Tenant(tenant.0)
    }
}

/// The events of an entity that a filter lets through.
fn matching(query: SqlQuery, tenant: TenantId, entity: EntityId, filter: &EventFilter) -> SqlQuery {
    let mut query = query
        .push(" AND entity_id = ")
        .bind(entity.id)
        .push(" AND kind = ")
        .bind(filter.kind.name())
        .owned_by(owner(tenant));
    for (condition, number) in [
        (" AND created_time >= ", filter.start_time),
        (" AND created_time <= ", filter.end_time),
        (" AND messages >= ", filter.min_messages),
        (" AND messages < ", filter.max_messages),
        (" AND errors >= ", filter.min_errors),
        (" AND errors < ", filter.max_errors),
    ] {
        if let Some(number) = number {
            query = query.push(condition).bind(number);
        }
    }
    if let Some(entity) = filter.entity {
        query = query.push(" AND about_id = ").bind(entity);
    }
    if let Some(id) = filter.msg_id {
        query = query.push(" AND msg_id = ").bind(id);
    }
    if let Some(success) = filter.success {
        query = query.push(" AND success = ").bind(success);
    }
    if filter.only_errors {
        query = query.push(" AND error IS NOT NULL");
    }
    for (text, part) in &filter.texts {
        // SQLite ignores the case of ASCII letters by itself, and PostgreSQL none.
        query = query
            .push(" AND (LOWER(")
            .push(column(*text))
            .push(") LIKE ")
            .bind(list::containing(&part.to_lowercase()))
            .push(" ESCAPE '\\' OR ")
            .push(column(*text))
            .push(" LIKE ")
            .bind(list::containing(part))
            .push(" ESCAPE '\\')");
    }
    query
}

const fn column(text: EventText) -> &'static str {
    match text {
        EventText::Server => "server",
        EventText::Name => "name",
        EventText::EntityType => "about_type",
        EventText::MsgType => "msg_type",
        EventText::RelationType => "relation_type",
        EventText::Data => "data",
        EventText::Metadata => "metadata",
        EventText::Error => "error",
    }
}

/// What the columns hold, besides those that every event has.
#[derive(Default)]
struct EventColumns<'e> {
    name: Option<&'e str>,
    field: Option<Uuid>,
    about: Option<EntityId>,
    msg_id: Option<Uuid>,
    msg_type: Option<&'e str>,
    data_type: Option<&'e str>,
    relation_type: Option<&'e str>,
    data: Option<&'e str>,
    metadata: Option<&'e str>,
    success: bool,
    messages: i64,
    errors: i64,
    error: Option<&'e str>,
}

impl<'e> EventColumns<'e> {
    fn of(body: &'e EventBody) -> Self {
        match body {
            EventBody::RuleNode(debug) => Self {
                name: Some(&debug.direction),
                about: debug.originator,
                msg_id: debug.msg_id,
                msg_type: debug.msg_type.as_deref(),
                data_type: debug.data_type.as_deref(),
                relation_type: debug.relation_type.as_deref(),
                data: debug.data.as_deref(),
                metadata: debug.metadata.as_deref(),
                error: debug.error.as_deref(),
                ..Self::default()
            },
            EventBody::RuleChain { message, error } => Self {
                data: message.as_deref(),
                error: error.as_deref(),
                ..Self::default()
            },
            EventBody::CalculatedField(debug) => Self {
                field: Some(debug.calculated_field.0),
                about: debug.subject,
                msg_id: debug.msg_id,
                msg_type: debug.msg_type.as_deref(),
                data: debug.arguments.as_deref(),
                metadata: debug.result.as_deref(),
                error: debug.error.as_deref(),
                ..Self::default()
            },
            EventBody::Lifecycle {
                event,
                success,
                error,
            } => Self {
                name: Some(event),
                success: *success,
                error: error.as_deref(),
                ..Self::default()
            },
            EventBody::Error { method, error } => Self {
                name: Some(method),
                error: error.as_deref(),
                ..Self::default()
            },
            EventBody::Stats {
                messages_processed,
                errors_occurred,
            } => Self {
                messages: *messages_processed,
                errors: *errors_occurred,
                ..Self::default()
            },
        }
    }
}

/// A text of a message, which may hold anything: PostgreSQL cannot store the null character.
fn text(text: &str) -> SqlArg {
    text.replace('\0', "\u{fffd}").into()
}

fn maybe(value: Option<&str>) -> SqlArg {
    value.map_or(SqlArg::Text(None), text)
}

/// The values of [`COLUMNS`].
fn values(event: &EntityEvent) -> [SqlArg; 21] {
    let details = EventColumns::of(&event.body);
    [
        event.id.into(),
        event.created_time.into(),
        (!event.tenant_id.is_null()).then_some(event.tenant_id.0).into(),
        event.entity_id.entity_type.name().into(),
        event.entity_id.id.into(),
        event.body.kind().name().into(),
        text(&event.server),
        maybe(details.name),
        details.field.into(),
        maybe(details.about.map(|about| about.entity_type.name())),
        details.about.map(|about| about.id).into(),
        details.msg_id.into(),
        maybe(details.msg_type),
        maybe(details.data_type),
        maybe(details.relation_type),
        maybe(details.data),
        maybe(details.metadata),
        details.success.into(),
        details.messages.into(),
        details.errors.into(),
        maybe(details.error),
    ]
}

fn entity_type(name: &str) -> StoreResult<fieldline_model::EntityType> {
    name.parse().map_err(unreadable)
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<EntityEvent> {
    let id = columns.next()?;
    let created_time = columns.next()?;
    let tenant: Option<Uuid> = columns.next()?;
    let of_type: String = columns.next()?;
    let entity_id = EntityId::new(entity_type(&of_type)?, columns.next()?);
    let kind: String = columns.next()?;
    let server = columns.next()?;
    let name: Option<String> = columns.next()?;
    let field: Option<Uuid> = columns.next()?;
    let about_type: Option<String> = columns.next()?;
    let about_id: Option<Uuid> = columns.next()?;
    let msg_id = columns.next()?;
    let msg_type = columns.next()?;
    let data_type = columns.next()?;
    let relation_type = columns.next()?;
    let data = columns.next()?;
    let metadata = columns.next()?;
    let success = columns.next()?;
    let messages_processed = columns.next()?;
    let errors_occurred = columns.next()?;
    let error = columns.next()?;
    let about = match (about_type, about_id) {
        (Some(about_type), Some(id)) => Some(EntityId::new(entity_type(&about_type)?, id)),
        _ => None,
    };
    let kind = EventKind::from_name(&kind).ok_or_else(|| unreadable("unknown kind of event"))?;
    let body = match kind {
        EventKind::DebugRuleNode => EventBody::RuleNode(RuleNodeDebug {
            direction: name.unwrap_or_default(),
            originator: about,
            msg_id,
            msg_type,
            data_type,
            relation_type,
            data,
            metadata,
            error,
        }),
        EventKind::DebugRuleChain => EventBody::RuleChain { message: data, error },
        EventKind::DebugCalculatedField => EventBody::CalculatedField(CalculatedFieldDebug {
            calculated_field: field.map(CalculatedFieldId).unwrap_or_default(),
            subject: about,
            msg_id,
            msg_type,
            arguments: data,
            result: metadata,
            error,
        }),
        EventKind::LcEvent => EventBody::Lifecycle {
            event: name.unwrap_or_default(),
            success,
            error,
        },
        EventKind::Error => EventBody::Error {
            method: name.unwrap_or_default(),
            error,
        },
        EventKind::Stats => EventBody::Stats {
            messages_processed,
            errors_occurred,
        },
    };
    Ok(EntityEvent {
        id,
        created_time,
        tenant_id: tenant.map_or(TenantId::NULL, TenantId),
        entity_id,
        server,
        body,
    })
}
