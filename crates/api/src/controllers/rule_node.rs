//! Component descriptors of rule nodes, and tests of their scripts.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use fieldline_core::ports::{ScriptLanguage, ScriptTest, ScriptTestError, ScriptUse};
use fieldline_entities::services::{ServiceError, ServiceErrorKind};
use fieldline_model::entity::{ComponentDescriptor, ComponentType, RuleChainType};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa_axum::routes;

use super::rule_chain::chain_type;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ST, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, QueryParams, missing};
use crate::state::{ApiState, SharedApi};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ST.reads(routes!(by_class)))
        .add(ST.reads(routes!(by_type)))
        .add(ST.reads(routes!(by_types)))
        .add(T.reads(routes!(tbel_enabled)))
        .add(T.computes(routes!(test_script)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ChainTypeParams {
    /// `CORE` or `EDGE`; `CORE` by default.
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

/// Returns the component descriptor of a class of rule nodes.
#[utoipa::path(get, path = "/api/component/{componentDescriptorClazz}", tag = "component-descriptor",
    operation_id = "getComponentDescriptorByClazz", params(("componentDescriptorClazz" = String, Path)),
    responses((status = 200, body = ComponentDescriptor)))]
async fn by_class(
    State(api): State<SharedApi>,
    Path(class): Path<String>,
) -> ApiResult<Json<ComponentDescriptor>> {
    let found = api.rule_nodes.descriptor(&class).cloned();
    found.map(Json).ok_or_else(ApiError::item_not_found)
}

/// Returns the component descriptors of a type.
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

/// Returns the component descriptors of some types.
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

/// Returns whether scripts can be written in TBEL: always true.
#[utoipa::path(get, path = "/api/ruleChain/tbelEnabled", tag = "rule-chain", operation_id = "isTbelEnabled",
    responses((status = 200, body = bool, content_type = "application/json")))]
async fn tbel_enabled() -> Json<bool> {
    Json(true)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ScriptLanguageParams {
    /// `JS` or `TBEL`; `JS` by default.
    script_lang: Option<String>,
}

/// A script and the message to test it with.
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

/// Result of a script.
#[derive(Serialize, utoipa::ToSchema)]
struct ScriptTestResponse {
    /// The returned value as text; empty after an error.
    output: String,
    /// The error message; empty otherwise.
    error: String,
}

impl ScriptTestResponse {
    fn failed(error: String) -> Self {
        let output = String::new();
        Self { output, error }
    }
}

fn script_use(name: &str) -> Option<ScriptUse> {
    Some(match name {
        "update" => ScriptUse::Update,
        "generate" => ScriptUse::Generate,
        "filter" => ScriptUse::Filter,
        "switch" => ScriptUse::Switch,
        "json" => ScriptUse::Json,
        "string" => ScriptUse::String,
        _ => return None,
    })
}

/// Returns the error of the script itself, which belongs into the result of a test.
///
/// # Errors
/// The test did not run: the tenant runs too many at a time, or there is no capacity for it.
pub(super) fn own_fault(error: ScriptTestError) -> ApiResult<String> {
    let (kind, error) = match error {
        ScriptTestError::Script(error) => return Ok(error),
        ScriptTestError::TooMany(error) => (ServiceErrorKind::TooManyRequests, error),
        ScriptTestError::Unavailable(error) => (ServiceErrorKind::Unavailable, error),
    };
    Err(ServiceError::new(kind, error).into())
}

/// Runs a script once, and returns its result.
#[utoipa::path(post, path = "/api/ruleChain/testScript", tag = "rule-chain", operation_id = "testRuleChainScript",
    params(ScriptLanguageParams), request_body = ScriptTestRequest,
    responses((status = 200, body = ScriptTestResponse)))]
async fn test_script(
    ApiCall { api, caller }: ApiCall,
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
    let script = request.script.ok_or_else(|| missing("script"))?;
    let name = request.script_type.ok_or_else(|| missing("scriptType"))?;
    let Some(script_use) = script_use(&name) else {
        let error = format!("Unsupported script type: {name}");
        return Ok(Json(ScriptTestResponse::failed(error)));
    };
    let text = |value: Value| match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let metadata = request.metadata.unwrap_or_default().into_iter();
    let test = ScriptTest {
        tenant: caller.tenant,
        language,
        script_use,
        script,
        arg_names: request.arg_names.ok_or_else(|| missing("argNames"))?,
        msg: request.msg.map(text).unwrap_or_default(),
        metadata: metadata.map(|(key, value)| (key, text(value))).collect(),
        msg_type: request.msg_type.unwrap_or_default(),
    };
    Ok(Json(match api.scripts.test(test).await {
        Ok(output) => ScriptTestResponse {
            output,
            error: String::new(),
        },
        Err(error) => ScriptTestResponse::failed(own_fault(error)?),
    }))
}
