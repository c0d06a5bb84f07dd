//! Records in the audit log what the services do not report: failed requests, calls that change no entity, logins.
//! Successful changes of an entity are recorded where the rule engine is notified of them
//! ([`fieldline_entities::services::EntityActionService`]).

use std::net::IpAddr;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, MatchedPath, Request};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use fieldline_entities::access::Principal;
use fieldline_entities::audit::raw;
use fieldline_model::entity::{ActionType, AuditLog, User};
use fieldline_model::{AuditLogId, EntityId, EntityType, NULL_UUID, new_uuid};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::caller::AuthenticatedCaller;
use crate::error::{ApiError, ErrorCode};
use crate::state::SharedApi;
use crate::user_agent::UserAgent;

mod rule;

pub(crate) use rule::AuditRule;

/// Most bytes of a body that is parsed for the audit log.
const MAX_BODY: usize = 65_536;

/// Why a request failed, for the audit log. Error responses carry it as an extension.
#[derive(Debug, Clone)]
pub(crate) struct FailureText(pub(crate) String);

/// Runs a request and records its outcome if the rule of its endpoint says so.
pub(crate) async fn audit_request(api: SharedApi, rule: AuditRule, request: Request, next: Next) -> Response {
    let Some(caller) = request.extensions().get::<AuthenticatedCaller>().copied() else {
        return next.run(request).await;
    };
    let (parts, body) = request.into_parts();
    let about = AuditedRequest {
        pattern: parts
            .extensions
            .get::<MatchedPath>()
            .map(|path| path.as_str().to_owned())
            .unwrap_or_default(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        agent: UserAgent::of(&parts.headers),
        peer: crate::caller::peer(&parts.extensions),
        body: Bytes::new(),
    };
    if let AuditRule::Upload(_) | AuditRule::File(_) = rule {
        let response = next.run(Request::from_parts(parts, body)).await;
        return about
            .record_outcome(&api, &caller.principal, rule, response)
            .await;
    }
    // Read here, within the limit for bodies, and passed on without a copy.
    let bytes = match Bytes::from_request(Request::from_parts(parts.clone(), body), &()).await {
        Ok(bytes) => bytes,
        Err(rejection) => {
            let status = rejection.status();
            return ApiError::with_status(status, ErrorCode::BadRequestParams, rejection.body_text())
                .into_response();
        }
    };
    let request = Request::from_parts(parts, Body::from(bytes.clone()));
    let about = AuditedRequest { body: bytes, ..about };
    let response = next.run(request).await;
    about
        .record_outcome(&api, &caller.principal, rule, response)
        .await
}

/// The parts of a request that the audit log needs.
struct AuditedRequest {
    pattern: String,
    path: String,
    query: String,
    agent: UserAgent,
    peer: Option<IpAddr>,
    body: Bytes,
}

impl AuditedRequest {
    async fn record_outcome(
        &self,
        api: &SharedApi,
        who: &Principal,
        rule: AuditRule,
        response: Response,
    ) -> Response {
        let succeeded = response.status().is_success();
        if succeeded && !rule.keeps_success() {
            return response;
        }
        let details = match response.extensions().get::<FailureText>() {
            Some(FailureText(text)) => text.clone(),
            None if succeeded => String::new(),
            None => response.status().to_string(),
        };
        if let Some(entry) = self.entry(api, who, rule, succeeded, details) {
            api.audit.record(entry).await;
        }
        response
    }

    fn entry(
        &self,
        api: &SharedApi,
        who: &Principal,
        rule: AuditRule,
        succeeded: bool,
        details: String,
    ) -> Option<AuditLog> {
        // The JSON tree of a large body would take many times its size.
        let body: Value = match self.body.len() {
            0..=MAX_BODY => serde_json::from_slice(&self.body).unwrap_or_default(),
            _ => Value::Null,
        };
        let params = RequestParams {
            pattern: &self.pattern,
            path: &self.path,
            query: &self.query,
        };
        let found = rule.describe(&params, &body, who)?;
        let data = match found.action {
            ActionType::Logout => self.agent.data(self.peer),
            _ => found.data,
        };
        let name = match found.action {
            // Users have no name: their e-mail address identifies them.
            ActionType::Added | ActionType::Updated => ["name", "title", "email"]
                .into_iter()
                .find_map(|field| body.get(field)?.as_str())
                .map(str::to_owned),
            _ => None,
        };
        Some(AuditLog {
            id: AuditLogId(new_uuid()),
            created_time: api.clock.now_ms(),
            tenant_id: who.tenant,
            customer_id: who.customer,
            entity_id: found.entity,
            entity_name: name,
            user_id: who.user,
            user_name: None,
            action_type: found.action,
            action_data: raw(data.to_string()),
            succeeded,
            action_failure_details: details,
        })
    }
}

/// The parameters of a request.
pub(crate) struct RequestParams<'a> {
    pattern: &'a str,
    path: &'a str,
    query: &'a str,
}

impl<'a> RequestParams<'a> {
    /// Returns the segment of the path that stands for a name in braces.
    fn path(&self, name: &str) -> Option<&'a str> {
        let wanted =
            |segment: &str| segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) == Some(name);
        let index = self.pattern.split('/').position(wanted)?;
        self.path.split('/').nth(index)
    }

    fn id(&self, name: &str) -> Option<Uuid> {
        self.path(name)?.parse().ok()
    }

    fn query(&self, name: &str) -> Option<&'a str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    }
}

/// Records a login attempt, successful or not, of a known user; `failure` is why it failed.
pub(crate) async fn record_login_action(
    api: &SharedApi,
    user: &User,
    action: ActionType,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
    failure: Option<&str>,
) {
    let id = user.id;
    let entry = AuditLog {
        id: AuditLogId(new_uuid()),
        created_time: api.clock.now_ms(),
        tenant_id: user.tenant_id,
        customer_id: user.customer_id,
        entity_id: id.into(),
        entity_name: Some(user.email.clone()),
        user_id: id,
        user_name: Some(user.email.clone()),
        action_type: action,
        action_data: raw(UserAgent::of(headers).data(peer).to_string()),
        succeeded: failure.is_none(),
        action_failure_details: failure.unwrap_or_default().to_owned(),
    };
    api.audit.record(entry).await;
}

impl UserAgent {
    fn data(&self, peer: Option<IpAddr>) -> Value {
        let address = peer.map_or_else(|| "Unknown".to_owned(), |peer| peer.to_string());
        json!({ "clientAddress": address, "browser": self.browser, "os": self.os, "device": self.device })
    }
}

/// Returns the id for an entity that does not exist (yet).
fn nothing(kind: EntityType) -> EntityId {
    EntityId::new(kind, NULL_UUID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_their_names() {
        let params = RequestParams {
            pattern: "/api/customer/{customerId}/device/{deviceId}",
            path: "/api/customer/a/device/13814000-1dd2-11b2-8080-808080808080",
            query: "keys=a,b&scope=X",
        };
        assert_eq!(params.path("customerId"), Some("a"));
        assert_eq!(params.id("customerId"), None);
        assert_eq!(params.id("deviceId"), Some(NULL_UUID));
        assert_eq!(params.path("nothing"), None);
        assert_eq!(params.query("keys"), Some("a,b"));
        assert_eq!(params.query("none"), None);
    }
}
