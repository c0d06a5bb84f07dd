//! The registry of all endpoints. Each registration holds everything about its endpoint: roles, effect, audit rule,
//! body limit and error format.
//!
//! Method and path come from the handler's OpenAPI description, so that router, documentation and registry cannot
//! diverge; no endpoint is served without registered roles.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use fieldline_core::reader;
use fieldline_model::entity::Authority;
use futures::FutureExt as _;
use tracing::Instrument as _;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Content, Object, OpenApi, Ref, ResponseBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::audit::{self, AuditRule};
use crate::caller;
use crate::error::{self, ApiError, ErrorCode};
use crate::memory::{self, BodyMemory};
use crate::state::SharedApi;

/// Everyone, without authentication.
pub(crate) const ANYBODY: EndpointAccess = EndpointAccess::Public;
/// System administrators only.
pub(crate) const S: EndpointAccess = EndpointAccess::Roles(&[Authority::SysAdmin]);
/// Tenant administrators only.
pub(crate) const T: EndpointAccess = EndpointAccess::Roles(&[Authority::TenantAdmin]);
/// System and tenant administrators.
pub(crate) const ST: EndpointAccess = EndpointAccess::Roles(&[Authority::SysAdmin, Authority::TenantAdmin]);
/// Tenant administrators and customer users.
pub(crate) const TC: EndpointAccess =
    EndpointAccess::Roles(&[Authority::TenantAdmin, Authority::CustomerUser]);
/// Customer users only.
pub(crate) const C: EndpointAccess = EndpointAccess::Roles(&[Authority::CustomerUser]);
/// All authenticated callers.
pub(crate) const STC: EndpointAccess = EndpointAccess::Roles(&[
    Authority::SysAdmin,
    Authority::TenantAdmin,
    Authority::CustomerUser,
]);

/// Largest body of a request without authentication, bytes.
const MAX_PUBLIC_BODY: usize = 65_536;

/// The callers that may use an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointAccess {
    /// Everyone; a token is ignored.
    Public,
    /// Authenticated callers with one of these authorities.
    Roles(&'static [Authority]),
}

/// An endpoint of the REST API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestEndpoint {
    /// HTTP method in capitals.
    pub method: &'static str,
    /// Path with its parameters in braces.
    pub path: String,
    /// The callers that may use it.
    pub access: EndpointAccess,
}

/// The effect of a request to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointEffect {
    /// Reads, by `GET`.
    Reads,
    /// Reads by `POST`, because the query is too large for a URL. Runs to its end, because a query also updates the tables
    /// that the tenant's other queries use.
    Asks,
    /// Computes a result that is not stored; cancelled if the client disconnects.
    Computes,
    /// Changes something, and runs to its end.
    Changes,
}

/// Limit for the size of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaxUpload {
    /// The setting `max-body`; less for requests without authentication.
    Body,
    /// The setting `max-package`: the data of an OTA package, which is streamed to disk.
    Package,
    /// The setting `max-resource`: a file that people upload, which is streamed to disk.
    Resource,
}

/// Format of error responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorShape {
    /// The JSON body of the API.
    Json,
    /// Plain text, except for errors before the handler runs.
    Text,
}

/// An endpoint before it is built: its handler, and everything about it.
pub(crate) struct Endpoint {
    access: EndpointAccess,
    handler: UtoipaMethodRouter<SharedApi>,
    effect: EndpointEffect,
    audit: AuditRule,
    open_to_public_sessions: bool,
    max_upload: MaxUpload,
    errors: ErrorShape,
}

impl EndpointAccess {
    /// Creates an endpoint that reads by `GET`.
    pub(crate) fn reads(self, handler: UtoipaMethodRouter<SharedApi>) -> Endpoint {
        self.endpoint(handler, EndpointEffect::Reads, AuditRule::Nothing)
    }

    /// Creates an endpoint that reads by `POST`.
    pub(crate) fn asks(self, handler: UtoipaMethodRouter<SharedApi>) -> Endpoint {
        self.endpoint(handler, EndpointEffect::Asks, AuditRule::Nothing)
    }

    /// Creates an endpoint that computes a result by `POST`.
    pub(crate) fn computes(self, handler: UtoipaMethodRouter<SharedApi>) -> Endpoint {
        self.endpoint(handler, EndpointEffect::Computes, AuditRule::Nothing)
    }

    /// Creates an endpoint that changes something, with the audit rule of its requests.
    pub(crate) fn changes(self, handler: UtoipaMethodRouter<SharedApi>, audit: AuditRule) -> Endpoint {
        self.endpoint(handler, EndpointEffect::Changes, audit)
    }

    fn endpoint(
        self,
        handler: UtoipaMethodRouter<SharedApi>,
        effect: EndpointEffect,
        audit: AuditRule,
    ) -> Endpoint {
        Endpoint {
            access: self,
            handler,
            effect,
            audit,
            open_to_public_sessions: matches!(effect, EndpointEffect::Reads | EndpointEffect::Asks),
            max_upload: MaxUpload::Body,
            errors: ErrorShape::Json,
        }
    }
}

impl Endpoint {
    /// Sets whether public sessions may call the endpoint; by default they may call only endpoints that read.
    #[must_use]
    pub(crate) fn open_to_public_sessions(self, open_to_public_sessions: bool) -> Self {
        Self {
            open_to_public_sessions,
            ..self
        }
    }

    /// Sets the limit for the size of the body.
    #[must_use]
    pub(crate) fn max_upload(self, max_upload: MaxUpload) -> Self {
        Self { max_upload, ..self }
    }

    fn registered(&self) -> impl Iterator<Item = RestEndpoint> {
        let (_, paths, _) = &self.handler;
        paths.paths.iter().flat_map(|(path, item)| {
            operations(item).into_iter().map(|(method, _)| RestEndpoint {
                method,
                path: path.clone(),
                access: self.access,
            })
        })
    }

    /// Wraps the handler in the checks and limits of the endpoint, and completes its OpenAPI description.
    fn build(self, api: &SharedApi) -> UtoipaMethodRouter<SharedApi> {
        let (schemas, mut paths, mut handlers) = self.handler;
        for item in paths.paths.values_mut() {
            describe_access(item, self.access);
            describe_errors(item, self.errors);
        }
        handlers = run_as(self.effect, handlers);
        if self.max_upload != MaxUpload::Body {
            handlers = handlers.layer(DefaultBodyLimit::disable());
        }
        if self.access == EndpointAccess::Public {
            handlers = handlers.layer(DefaultBodyLimit::max(MAX_PUBLIC_BODY));
        }
        if self.audit != AuditRule::Nothing {
            let (api, rule) = (SharedApi::clone(api), self.audit);
            handlers = handlers.route_layer(middleware::from_fn_with_state(
                api,
                move |State(api): State<SharedApi>, request: Request, next: Next| {
                    audit::audit_request(api, rule, request, next)
                },
            ));
        }
        if let EndpointAccess::Roles(allowed) = self.access {
            let gate = EndpointGate {
                allowed,
                open_to_public_sessions: self.open_to_public_sessions,
                is_upload: self.max_upload != MaxUpload::Body,
            };
            handlers = handlers.route_layer(middleware::from_fn_with_state(
                SharedApi::clone(api),
                move |State(api): State<SharedApi>, request: Request, next: Next| {
                    gate.check(api, request, next)
                },
            ));
        }
        (schemas, paths, handlers)
    }
}

/// Collects endpoints.
#[derive(Default)]
pub(crate) struct ApiRoutes {
    endpoints: Vec<Endpoint>,
}

impl ApiRoutes {
    /// Adds an endpoint.
    #[must_use]
    pub(crate) fn add(mut self, endpoint: Endpoint) -> Self {
        self.endpoints.push(endpoint);
        self
    }

    /// Adds the endpoints of another area.
    #[must_use]
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.endpoints.extend(other.endpoints);
        self
    }

    /// Sets the error format of all endpoints added so far; the default is JSON.
    #[must_use]
    pub(crate) fn errors(mut self, errors: ErrorShape) -> Self {
        for endpoint in &mut self.endpoints {
            endpoint.errors = errors;
        }
        self
    }

    /// Returns all endpoints, sorted by path and method.
    pub(crate) fn endpoints(&self) -> Vec<RestEndpoint> {
        let mut endpoints: Vec<RestEndpoint> = self.endpoints.iter().flat_map(Endpoint::registered).collect();
        endpoints.sort_by(|a, b| (&a.path, a.method).cmp(&(&b.path, b.method)));
        endpoints
    }

    /// Returns the endpoints that accept more than the body of a request, and what.
    pub(crate) fn uploads(&self) -> Vec<(RestEndpoint, MaxUpload)> {
        let uploads = self.endpoints.iter();
        uploads
            .filter(|endpoint| endpoint.max_upload != MaxUpload::Body)
            .flat_map(|endpoint| endpoint.registered().map(|found| (found, endpoint.max_upload)))
            .collect()
    }

    /// Builds the router that checks each caller before the handler, and its OpenAPI description.
    pub(crate) fn build(self, api: &SharedApi, openapi: OpenApi) -> (axum::Router<SharedApi>, OpenApi) {
        let empty = OpenApiRouter::with_openapi(openapi);
        let endpoints = self.endpoints.into_iter();
        endpoints
            .fold(empty, |router, endpoint| router.routes(endpoint.build(api)))
            .split_for_parts()
    }
}

/// The checks of a request before its handler.
#[derive(Clone, Copy)]
struct EndpointGate {
    allowed: &'static [Authority],
    open_to_public_sessions: bool,
    is_upload: bool,
}

impl EndpointGate {
    /// Passes a request with its caller to the handler, if the caller has one of the authorities.
    async fn check(self, api: SharedApi, mut request: Request, next: Next) -> Result<Response, ApiError> {
        let authenticated = caller::authenticate(&api, request.headers()).await?;
        api.rest_limits.try_acquire(&authenticated.principal).await?;
        if !self.allowed.contains(&authenticated.principal.authority) {
            return Err(ApiError::denied());
        }
        if authenticated.principal.is_public() && !self.open_to_public_sessions {
            return Err(ApiError::denied());
        }
        request.extensions_mut().insert(authenticated);
        let tenant = authenticated.principal.tenant;
        let answer = memory::serve_metered(&api.memory, tenant, self.is_upload, request, next);
        Ok(reader::with_reader(tenant, answer).await)
    }
}

/// Lets handlers run to their end if their effect requires it.
fn run_as<S: Clone + Send + Sync + 'static>(
    effect: EndpointEffect,
    handlers: MethodRouter<S>,
) -> MethodRouter<S> {
    match effect {
        EndpointEffect::Reads | EndpointEffect::Computes => handlers,
        EndpointEffect::Asks | EndpointEffect::Changes => {
            handlers.route_layer(middleware::from_fn(run_to_end))
        }
    }
}

/// Runs a handler to its end, even if the client disconnects: a change must not be stored without the rest of the work,
/// such as notifying listeners. (The server drops the future of a request whose client is gone.)
async fn run_to_end(request: Request, next: Next) -> Response {
    let body = request.extensions().get::<Arc<BodyMemory>>().cloned();
    let person = reader::current_reader();
    let handler = AssertUnwindSafe(next.run(request)).catch_unwind();
    let answer = async move {
        let answer = handler.await.unwrap_or_else(error::answer_panic);
        // The memory of the body counts until the handler ends, even if the client is gone.
        drop(body);
        answer
    };
    let answer = async move {
        match person {
            Some(tenant) => reader::with_reader(tenant, answer).await,
            None => answer.await,
        }
    };
    tokio::spawn(answer.in_current_span())
        .await
        .unwrap_or_else(|_| ApiError::new(ErrorCode::General, "The server is stopping").into_response())
}

fn operations(item: &PathItem) -> Vec<(&'static str, &Operation)> {
    [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("DELETE", &item.delete),
        ("PATCH", &item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
    .collect()
}

fn operations_mut(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        &mut item.get,
        &mut item.post,
        &mut item.put,
        &mut item.delete,
        &mut item.patch,
    ]
    .into_iter()
    .flatten()
}

/// Adds a default error response to the OpenAPI description.
fn describe_errors(item: &mut PathItem, shape: ErrorShape) {
    let json = Content::new(Some(Ref::from_schema_name("ErrorResponse")));
    let mut answer = ResponseBuilder::new()
        .description("What went wrong")
        .content("application/json", json);
    if shape == ErrorShape::Text {
        let text = Object::with_type(Type::String);
        answer = answer.content("text/plain", Content::new(Some(text)));
    }
    let answer = answer.build();
    for operation in operations_mut(item) {
        let described = &mut operation.responses.responses;
        described.insert("default".to_owned(), answer.clone().into());
    }
}

/// Adds `x-authorities` and the security requirement to the OpenAPI description.
fn describe_access(item: &mut PathItem, access: EndpointAccess) {
    let EndpointAccess::Roles(allowed) = access else {
        return;
    };
    let names: Vec<&str> = allowed.iter().map(|authority| authority.name()).collect();
    for operation in operations_mut(item) {
        operation
            .extensions
            .get_or_insert_with(Extensions::default)
            .insert("x-authorities".to_owned(), names.clone().into());
        operation.security = Some(vec![utoipa::openapi::security::SecurityRequirement::new(
            "token",
            Vec::<String>::new(),
        )]);
    }
}

#[cfg(test)]
mod tests;
