//! Classes of rule nodes, and trying their scripts out.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use fieldline_core::ports::{ScriptLanguage, ScriptTest, ScriptTestError, ScriptUse};
use fieldline_entities::services::{ServiceError, ServiceErrorKind};
use fieldline_model::TenantId;
use fieldline_model::entity::{ComponentDescriptor, ComponentType, RuleChainType};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa_axum::routes;

use super::rule_chain::chain_type;
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, ST, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, QueryParams, missing};
use crate::state::{ApiState, SharedApi};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ST, routes!(by_class))
        .add(ST, routes!(by_type))
        .add(ST, routes!(by_types))
        .add(T, routes!(tbel_enabled))
        .add(T, routes!(test_script))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ChainTypeParams {
    /// `CORE` or `EDGE`; `CORE` where absent.
    rule_chain_type: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ComponentTypesParams {
    /// Comma-joined types.
    component_types: Option<String>,
}

fn component_type(name: &str) -> ApiResult<ComponentType> {
    ComponentType::from_name(name)
        .ok_or_else(|| ApiError::bad_request(format!("Unknown component type '{name}'")))
}

fn of_types(api: &ApiState, types: &[ComponentType], chain: RuleChainType) -> Vec<ComponentDescriptor> {
    api.rule_nodes
        .descriptors()
        .iter()
        .filter(|class| types.contains(&class.component_type) && class.rule_chain_types.contains(&chain))
        .cloned()
        .collect()
}

/// The class of rule nodes of a name.
#[utoipa::path(get, path = "/api/component/{componentDescriptorClazz}", tag = "component-descriptor",
    operation_id = "getComponentDescriptorByClazz", params(("componentDescriptorClazz" = String, Path)),
    responses((status = 200, body = ComponentDescriptor)))]
async fn by_class(
    State(api): State<SharedApi>,
    Path(class): Path<String>,
) -> ApiResult<Json<ComponentDescriptor>> {
    let found = api.rule_nodes.descriptor(&class).cloned();
    found
        .map(Json)
        .ok_or_else(|| ApiError::not_found("Requested item wasn't found!"))
}

/// The classes of rule nodes of a type.
#[utoipa::path(get, path = "/api/components/{componentType}", tag = "component-descriptor",
    operation_id = "getComponentDescriptorsByType", params(("componentType" = String, Path), ChainTypeParams),
    responses((status = 200, body = Vec<ComponentDescriptor>)))]
async fn by_type(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    QueryParams(params): QueryParams<ChainTypeParams>,
) -> ApiResult<Json<Vec<ComponentDescriptor>>> {
    let chain = chain_type(params.rule_chain_type.as_deref())?;
    Ok(Json(of_types(&api, &[component_type(&name)?], chain)))
}

/// The classes of rule nodes of some types.
#[utoipa::path(get, path = "/api/components", tag = "component-descriptor",
    operation_id = "getComponentDescriptorsByTypes", params(ComponentTypesParams, ChainTypeParams),
    responses((status = 200, body = Vec<ComponentDescriptor>)))]
async fn by_types(
    State(api): State<SharedApi>,
    QueryParams(types): QueryParams<ComponentTypesParams>,
    QueryParams(params): QueryParams<ChainTypeParams>,
) -> ApiResult<Json<Vec<ComponentDescriptor>>> {
    let names = types.component_types.filter(|names| !names.is_empty());
    let names = names.ok_or_else(|| missing("componentTypes"))?;
    let types = names
        .split(',')
        .map(|name| component_type(name.trim()))
        .collect::<ApiResult<Vec<_>>>()?;
    let chain = chain_type(params.rule_chain_type.as_deref())?;
    Ok(Json(of_types(&api, &types, chain)))
}

/// Whether scripts may be written in TBEL: always.
#[utoipa::path(get, path = "/api/ruleChain/tbelEnabled", tag = "rule-chain", operation_id = "isTbelEnabled",
    responses((status = 200, body = bool, content_type = "application/json")))]
async fn tbel_enabled() -> Json<bool> {
    Json(true)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ScriptLanguageParams {
    /// `JS` or `TBEL`; `JS` where absent.
    script_lang: Option<String>,
}

/// A script and the message it is tried on.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ScriptTestRequest {
    /// Body of the function.
    script: Option<String>,
    /// `update`, `generate`, `filter`, `switch`, `json` or `string`.
    script_type: Option<String>,
    /// Names of the arguments: message, metadata, type.
    arg_names: Option<Vec<String>>,
    /// Body of the message, JSON text.
    msg: Option<Value>,
    /// Metadata of the message.
    metadata: Option<BTreeMap<String, Value>>,
    /// Type of the message.
    msg_type: Option<String>,
}

/// What a script has returned.
#[derive(Serialize, utoipa::ToSchema)]
struct ScriptTestResponse {
    /// What it returned, as text; empty where it failed.
    output: String,
    /// Why it failed; empty where it did not.
    error: String,
}

impl ScriptTestRequest {
    fn into_test(self, tenant: TenantId, language: ScriptLanguage) -> ApiResult<Result<ScriptTest, String>> {
        let script = self.script.ok_or_else(|| missing("script"))?;
        let name = self.script_type.ok_or_else(|| missing("scriptType"))?;
        let script_use = match name.as_str() {
            "update" => ScriptUse::Update,
            "generate" => ScriptUse::Generate,
            "filter" => ScriptUse::Filter,
            "switch" => ScriptUse::Switch,
            "json" => ScriptUse::Json,
            "string" => ScriptUse::String,
            _ => return Ok(Err(format!("Unsupported script type: {name}"))),
        };
        let text = |value: Value| match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let metadata = self.metadata.unwrap_or_default();
        Ok(Ok(ScriptTest {
            tenant,
            language,
            script_use,
            script,
            arg_names: self.arg_names.ok_or_else(|| missing("argNames"))?,
            msg: self.msg.map(text).unwrap_or_default(),
            metadata: metadata
                .into_iter()
                .map(|(key, value)| (key, text(value)))
                .collect(),
            msg_type: self.msg_type.unwrap_or_default(),
        }))
    }
}

/// What a test came to, the script's own fault included.
///
/// # Errors
/// It was not made: the tenant tries out too much at a time, or there is no room for it.
pub(super) fn tried_out<T>(tested: Result<T, ScriptTestError>) -> ApiResult<Result<T, String>> {
    match tested {
        Ok(output) => Ok(Ok(output)),
        Err(ScriptTestError::Script(error)) => Ok(Err(error)),
        Err(ScriptTestError::TooMany(error)) => {
            Err(ServiceError::new(ServiceErrorKind::TooManyRequests, error).into())
        }
        Err(ScriptTestError::Unavailable(error)) => {
            Err(ServiceError::new(ServiceErrorKind::Unavailable, error).into())
        }
    }
}

/// Runs a script once, and says what it returned.
#[utoipa::path(post, path = "/api/ruleChain/testScript", tag = "rule-chain", operation_id = "testRuleChainScript",
    params(ScriptLanguageParams), request_body = ScriptTestRequest,
    responses((status = 200, body = ScriptTestResponse)))]
async fn test_script(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(params): QueryParams<ScriptLanguageParams>,
    JsonBody(request): JsonBody<ScriptTestRequest>,
) -> ApiResult<Json<ScriptTestResponse>> {
    let language = match params.script_lang.as_deref() {
        None | Some("" | "JS") => ScriptLanguage::Js,
        Some("TBEL") => ScriptLanguage::Tbel,
        Some(other) => {
            return Err(ApiError::bad_request(format!(
                "Parameter 'scriptLang' must be JS or TBEL, not '{other}'"
            )));
        }
    };
    let result = match request.into_test(caller.tenant, language)? {
        Ok(test) => tried_out(api.scripts.test(test).await)?,
        Err(error) => Err(error),
    };
    let (output, error) = match result {
        Ok(output) => (output, String::new()),
        Err(error) => (String::new(), error),
    };
    Ok(Json(ScriptTestResponse { output, error }))
}
