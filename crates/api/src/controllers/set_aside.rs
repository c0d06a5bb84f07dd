//! Records that were set aside: listing, replaying and deleting them.

use axum::Json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_entities::access::Principal;
use fieldline_model::entity::{Authority, SetAsideInfo};
use fieldline_model::kv::unpack;
use fieldline_model::page::PageData;
use fieldline_model::record::{JournalRecord, RecordBody, diverted, message, rows};
use fieldline_model::{SetAsideId, TenantId};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, PathIds, QueryParams};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ST.reads(routes!(list)))
        .add(ST.reads(routes!(get)))
        .add(ST.changes(routes!(replay), AuditRule::Nothing))
        .add(ST.changes(routes!(delete), AuditRule::Nothing))
}

/// A record that was set aside, with its bytes.
#[derive(Serialize, ToSchema)]
struct SetAsideRecord {
    #[serde(flatten)]
    info: SetAsideInfo,
    /// The bytes of the record as they were in the queue, in base64.
    payload: String,
    /// The decoded record; absent if it cannot be decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    content: Option<Value>,
}

/// Returns the tenant whose records the caller sees; `None` for system administrators, who see all.
fn tenant_of(caller: &Principal) -> Option<TenantId> {
    (caller.authority != Authority::SysAdmin).then_some(caller.tenant)
}

fn unknown(id: SetAsideId) -> ApiError {
    ApiError::not_found(format!("Record with id [{}] is not set aside", id.0))
}

/// Returns a page of the records that were set aside, without their bytes.
#[utoipa::path(get, path = "/api/setAside", tag = "set-aside", operation_id = "getSetAsideRecords",
    params(PageParams), responses((status = 200, body = PageData<SetAsideInfo>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<SetAsideInfo>>> {
    let store = api.set_aside.store();
    Ok(Json(store.list(tenant_of(&caller), &page.link()?).await?))
}

/// Returns a record that was set aside, with its bytes and decoded content.
#[utoipa::path(get, path = "/api/setAside/{setAsideId}", tag = "set-aside", operation_id = "getSetAsideRecord",
    params(("setAsideId" = Uuid, Path)), responses((status = 200, body = SetAsideRecord)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<SetAsideRecord>> {
    let id = SetAsideId(id);
    let found = api.set_aside.store().get(tenant_of(&caller), id).await?;
    let record = found.ok_or_else(|| unknown(id))?;
    Ok(Json(SetAsideRecord {
        payload: STANDARD.encode(&record.bytes),
        content: content_of(&record.bytes),
        info: record.info,
    }))
}

/// Appends a record to its queue again. If it crashes the server again, it is set aside again.
#[utoipa::path(post, path = "/api/setAside/{setAsideId}/replay", tag = "set-aside",
    operation_id = "replaySetAsideRecord", params(("setAsideId" = Uuid, Path)), responses((status = 200)))]
async fn replay(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let id = SetAsideId(id);
    match api.set_aside.replay(tenant_of(&caller), id).await? {
        true => Ok(()),
        false => Err(unknown(id)),
    }
}

/// Deletes a record that was set aside.
#[utoipa::path(delete, path = "/api/setAside/{setAsideId}", tag = "set-aside",
    operation_id = "deleteSetAsideRecord", params(("setAsideId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let id = SetAsideId(id);
    match api.set_aside.store().delete(tenant_of(&caller), id).await? {
        true => Ok(()),
        false => Err(unknown(id)),
    }
}

/// Decodes a record into the JSON of the API.
fn content_of(bytes: &[u8]) -> Option<Value> {
    content_of_record(&JournalRecord::decode(bytes).ok()?)
}

fn content_of_record(record: &JournalRecord<'_>) -> Option<Value> {
    match record.body {
        RecordBody::Telemetry {
            ttl_seconds,
            rows: bytes,
        } => {
            let rows: Option<Vec<Value>> = rows(bytes)
                .map(|row| {
                    let row = row.ok()?;
                    Some(json!({"ts": row.ts, "values": values_of(row.values)?}))
                })
                .collect();
            Some(json!({"type": "TELEMETRY", "ttlSeconds": ttl_seconds, "rows": rows?}))
        }
        RecordBody::Attributes { scope, values } => {
            let values = values_of(values)?;
            Some(json!({"type": "ATTRIBUTES", "scope": scope.name(), "values": values}))
        }
        RecordBody::Message(bytes) => {
            let message = message::decode(record.subject.entity, record.received_ms, bytes).ok()?;
            let metadata: Map<String, Value> = message
                .metadata
                .iter()
                .map(|(name, value)| (name.to_owned(), Value::from(value)))
                .collect();
            Some(json!({
                "type": "MESSAGE",
                "id": message.id,
                "messageType": message.msg_type.name(),
                "metadata": metadata,
                "data": message.data,
            }))
        }
        // A record diverted to another queue is shown as the original record.
        RecordBody::Diverted(bytes) => {
            let was = diverted::decode(record.subject, record.received_ms, bytes).ok()?;
            content_of_record(&was.record)
        }
    }
}

fn values_of(packed: &[u8]) -> Option<Map<String, Value>> {
    unpack(packed)
        .map(|value| {
            let (key, value) = value.ok()?;
            Some((key.to_owned(), value.to_value().to_json()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use fieldline_model::kv::{KvValueRef, pack};
    use fieldline_model::message::{MsgType, QueueMessage};
    use fieldline_model::record::{RecordBatch, split};
    use fieldline_model::timeseries::AttributeScope;
    use fieldline_model::{DeviceId, EntityKey};

    use super::*;

    #[test]
    fn records_of_all_kinds_are_told_in_json() {
        let subject = EntityKey::device(TenantId::new(), DeviceId::new());
        let mut batch = RecordBatch::new();
        let mut telemetry = batch.begin_telemetry(subject, 17, 60);
        telemetry.begin_row(5);
        pack("a", KvValueRef::Long(1), telemetry.buffer());
        telemetry.count_point();
        telemetry.finish();
        let mut attributes = batch.begin_attributes(subject, 18, AttributeScope::Client);
        pack("v", KvValueRef::Text("x"), attributes.buffer());
        attributes.finish();
        let mut message = QueueMessage::new(
            MsgType::from("my type"),
            subject.entity,
            17,
            [("a", "1")].into_iter().collect(),
            "{\"x\":1}".to_owned(),
        );
        message.id = fieldline_model::new_uuid();
        batch.push_message(subject.tenant, &message);

        let told: Vec<_> = split(batch.as_bytes())
            .map(|record| content_of(record.unwrap()).unwrap())
            .collect();
        let rows = json!([{"ts": 5, "values": {"a": 1}}]);
        assert_eq!(
            told[0],
            json!({"type": "TELEMETRY", "ttlSeconds": 60, "rows": rows})
        );
        let scope = AttributeScope::Client.name();
        assert_eq!(
            told[1],
            json!({"type": "ATTRIBUTES", "scope": scope, "values": {"v": "x"}})
        );
        assert_eq!(told[2]["messageType"], "my type");
        assert_eq!(
            (&told[2]["metadata"]["a"], &told[2]["data"]),
            (&json!("1"), &json!("{\"x\":1}"))
        );
        assert_eq!(content_of(b"\x01"), None);
    }
}
