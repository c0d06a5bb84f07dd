//! Credentials of clients of the publish/subscribe broker, as TBMQ has them.

use axum::Json;
use axum::extract::State;
use fieldline_core::ports::MqttCredentialsFilter;
use fieldline_entities::broker_access::{CredentialsColumn, CredentialsImport, PasswordChange};
use fieldline_model::entity::{
    ImportResult, MqttClientCredentials, MqttClientType, MqttCredentialsType, ShortMqttClientCredentials,
};
use fieldline_model::page::PageData;
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use super::Either;
use crate::audit::AuditRule;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, missing};
use crate::state::SharedApi;

/// Longest list of names in a query, bytes.
const MAX_NAMES: usize = 1_024;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.changes(routes!(save), AuditRule::Nothing))
        .add(S.reads(routes!(list)))
        .add(S.reads(routes!(filtered)))
        .add(S.reads(routes!(info)))
        .add(S.reads(routes!(get)))
        .add(S.changes(routes!(change_password), AuditRule::Nothing))
        .add(S.changes(routes!(delete), AuditRule::Nothing))
        .add(S.changes(routes!(import), AuditRule::Nothing))
}

/// Reads a comma-joined list of names, such as those of client types.
pub(super) fn named<T>(
    parameter: &str,
    list: Option<&str>,
    named: impl Fn(&str) -> Option<T>,
) -> ApiResult<Vec<T>> {
    let list = list.unwrap_or_default();
    if list.len() > MAX_NAMES {
        return Err(ApiError::bad_request(format!(
            "Parameter '{parameter}' is too long!"
        )));
    }
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            named(name).ok_or_else(|| {
                ApiError::bad_request(format!("Parameter '{parameter}': \"{name}\" is not supported!"))
            })
        })
        .collect()
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct CredentialsName {
    /// Name of the credentials, instead of a page.
    name: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct CredentialsQuery {
    /// Comma-joined kinds of clients: `DEVICE`, `APPLICATION`.
    client_type_list: Option<String>,
    /// Comma-joined types: `MQTT_BASIC`, `X_509`, `SCRAM`.
    credentials_type_list: Option<String>,
    /// Text that the user name contains.
    username: Option<String>,
    /// Text that the client identifier contains.
    client_id: Option<String>,
    /// Text that the common name contains, or the expression for it.
    certificate_cn: Option<String>,
}

/// How many credentials there are.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct MqttCredentialsInfo {
    /// Of clients of the type `DEVICE`.
    device_credentials_count: u64,
    /// Of clients of the type `APPLICATION`.
    application_credentials_count: u64,
    /// All.
    total_count: u64,
}

/// A change of a password.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct MqttPasswordChange {
    /// The password that counts now; absent or empty where there is none.
    current_password: Option<String>,
    /// The new password; absent or empty for none.
    new_password: Option<String>,
}

/// A column of the text.
#[derive(Deserialize, utoipa::ToSchema)]
struct MqttCredentialsColumn {
    /// `NAME`, `DESCRIPTION`, `CLIENT_TYPE`, `CLIENT_ID`, `USERNAME`, `PASSWORD`, `SUB_AUTH_RULE_PATTERNS` or
    /// `PUB_AUTH_RULE_PATTERNS`.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: CredentialsColumn,
}

/// How the text is read.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct MqttCredentialsMapping {
    /// Its columns in their order.
    columns: Vec<MqttCredentialsColumn>,
    /// What stands between two cells; a comma where absent.
    #[schema(value_type = Option<String>)]
    delimiter: Option<char>,
    /// What stands between two rules of a cell; a semicolon where absent.
    #[schema(value_type = Option<String>)]
    auth_rules_delimiter: Option<char>,
    /// Whether the first line has names of columns.
    header: Option<bool>,
}

/// Many credentials.
#[derive(Deserialize, utoipa::ToSchema)]
struct MqttCredentialsImport {
    /// The whole CSV text.
    file: String,
    /// How it is read.
    mapping: MqttCredentialsMapping,
}

/// Creates credentials, or changes those with the given id. Their password stays then.
#[utoipa::path(post, path = "/api/mqtt/client/credentials", tag = "mqtt-client-credentials",
    operation_id = "saveMqttClientCredentials", request_body = MqttClientCredentials,
    responses((status = 200, body = MqttClientCredentials)))]
async fn save(
    State(api): State<SharedApi>,
    JsonBody(credentials): JsonBody<MqttClientCredentials>,
) -> ApiResult<Json<MqttClientCredentials>> {
    Ok(Json(api.services.broker_access.save(credentials).await?))
}

/// Returns a page of credentials without their values, or with `name` the credentials of that name.
#[utoipa::path(get, path = "/api/mqtt/client/credentials", tag = "mqtt-client-credentials",
    operation_id = "getMqttClientCredentials", params(PageParams, CredentialsName),
    responses((status = 200, body = inline(Either<PageData<ShortMqttClientCredentials>, MqttClientCredentials>))))]
async fn list(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<CredentialsName>,
) -> ApiResult<Json<Either<PageData<ShortMqttClientCredentials>, MqttClientCredentials>>> {
    let access = &api.services.broker_access;
    if let Some(name) = params.name {
        if name.trim().is_empty() {
            return Err(missing("name"));
        }
        return Ok(Json(Either::Right(access.by_name(&name).await?)));
    }
    let all = MqttCredentialsFilter::default();
    Ok(Json(Either::Left(access.list(&all, &page.link()?).await?)))
}

/// Returns a page of credentials without their values, of those that the filters choose.
#[utoipa::path(get, path = "/api/v2/mqtt/client/credentials", tag = "mqtt-client-credentials",
    operation_id = "getMqttClientCredentialsV2", params(PageParams, CredentialsQuery),
    responses((status = 200, body = PageData<ShortMqttClientCredentials>)))]
async fn filtered(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(query): QueryParams<CredentialsQuery>,
) -> ApiResult<Json<PageData<ShortMqttClientCredentials>>> {
    let present = |text: Option<String>| text.filter(|text| !text.is_empty());
    let filter = MqttCredentialsFilter {
        client_types: named(
            "clientTypeList",
            query.client_type_list.as_deref(),
            MqttClientType::named,
        )?,
        credentials_types: named(
            "credentialsTypeList",
            query.credentials_type_list.as_deref(),
            MqttCredentialsType::named,
        )?,
        username: present(query.username),
        client_id: present(query.client_id),
        common_name: present(query.certificate_cn),
    };
    let found = api.services.broker_access.list(&filter, &page.link()?).await?;
    Ok(Json(found))
}

/// Counts the credentials.
#[utoipa::path(get, path = "/api/mqtt/client/credentials/info", tag = "mqtt-client-credentials",
    operation_id = "getMqttClientCredentialsInfo", responses((status = 200, body = MqttCredentialsInfo)))]
async fn info(State(api): State<SharedApi>) -> ApiResult<Json<MqttCredentialsInfo>> {
    let count = api.services.broker_access.count().await?;
    Ok(Json(MqttCredentialsInfo {
        device_credentials_count: count.devices,
        application_credentials_count: count.applications,
        total_count: count.devices + count.applications,
    }))
}

/// Returns credentials, without their password.
#[utoipa::path(get, path = "/api/mqtt/client/credentials/{credentialsId}", tag = "mqtt-client-credentials",
    operation_id = "getMqttClientCredentialsById", params(("credentialsId" = Uuid, Path)),
    responses((status = 200, body = MqttClientCredentials)))]
async fn get(
    State(api): State<SharedApi>,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<MqttClientCredentials>> {
    Ok(Json(api.services.broker_access.get(id).await?))
}

/// Changes the password of `MQTT_BASIC` credentials.
#[utoipa::path(post, path = "/api/mqtt/client/credentials/{credentialsId}", tag = "mqtt-client-credentials",
    operation_id = "changeMqttClientCredentialsPassword", params(("credentialsId" = Uuid, Path)),
    request_body = MqttPasswordChange, responses((status = 200, body = MqttClientCredentials)))]
async fn change_password(
    State(api): State<SharedApi>,
    PathIds([id]): PathIds<1>,
    JsonBody(body): JsonBody<MqttPasswordChange>,
) -> ApiResult<Json<MqttClientCredentials>> {
    let change = PasswordChange {
        current: body.current_password.as_deref(),
        new: body.new_password.as_deref(),
    };
    let changed = api.services.broker_access.change_password(id, change).await?;
    Ok(Json(changed))
}

/// Deletes credentials. Clients that are connected with them stay connected.
#[utoipa::path(delete, path = "/api/mqtt/client/credentials/{credentialsId}", tag = "mqtt-client-credentials",
    operation_id = "deleteMqttClientCredentials", params(("credentialsId" = Uuid, Path)), responses((status = 200)))]
async fn delete(State(api): State<SharedApi>, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    Ok(api.services.broker_access.delete(id).await?)
}

/// Creates and updates `MQTT_BASIC` credentials, one per line. Invalid lines are reported, and the rest is stored.
#[utoipa::path(post, path = "/api/mqtt/client/credentials/bulk_import", tag = "mqtt-client-credentials",
    operation_id = "importMqttClientCredentials", request_body = MqttCredentialsImport,
    responses((status = 200, body = ImportResult)))]
async fn import(
    State(api): State<SharedApi>,
    JsonBody(request): JsonBody<MqttCredentialsImport>,
) -> ApiResult<Json<ImportResult>> {
    let mapping = &request.mapping;
    let columns: Vec<_> = mapping.columns.iter().map(|column| column.kind).collect();
    let import = CredentialsImport {
        file: &request.file,
        columns: &columns,
        delimiter: mapping.delimiter.unwrap_or(','),
        rules_delimiter: mapping.auth_rules_delimiter.unwrap_or(';'),
        has_header: mapping.header == Some(true),
    };
    Ok(Json(api.services.broker_access.import(import).await?))
}
