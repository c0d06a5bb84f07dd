//! The one registry of endpoints: method, path and who may call it, with the handler behind the check.
//!
//! Method and path are taken from the handler's OpenAPI description, so that router, documentation and registry cannot
//! drift apart; and nothing is served that was not registered with its authorities.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
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
use crate::router::is_package;
use crate::state::SharedApi;

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
/// Everybody who has logged in.
pub(crate) const STC: EndpointAccess = EndpointAccess::Roles(&[
    Authority::SysAdmin,
    Authority::TenantAdmin,
    Authority::CustomerUser,
]);

/// What is read by `POST`, as questions are too large for an address: public sessions, which only read, may ask them, too.
const READ_BY_POST: [&str; 12] = [
    "/api/alarmsQuery/count",
    "/api/alarmsQuery/find",
    "/api/assets",
    "/api/auth/logout",
    "/api/devices",
    "/api/entitiesQuery/count",
    "/api/entitiesQuery/find",
    "/api/entitiesQuery/find/keys",
    "/api/entityViews",
    "/api/relations",
    "/api/relations/info",
    "/api/v2/entitiesQuery/find/keys",
];
/// What is only worked out for whoever asks, and stored nowhere: it ends when the client hangs up.
const COMPUTED_BY_POST: [&str; 3] = [
    "/api/alarm/rule/testScript",
    "/api/calculatedField/testScript",
    "/api/ruleChain/testScript",
];
/// Largest body of a request that nobody has to prove anything for, in bytes.
const MAX_PUBLIC_BODY: usize = 65_536;

/// Who may call an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointAccess {
    /// Anybody; no token is looked at.
    Public,
    /// Those who have logged in and have one of the authorities.
    Roles(&'static [Authority]),
}

/// An endpoint of the REST API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestEndpoint {
    /// HTTP method in capitals.
    pub method: &'static str,
    /// Path with its parameters in braces.
    pub path: String,
    /// Who may call it.
    pub access: EndpointAccess,
}

/// Collects endpoints.
#[derive(Default)]
pub(crate) struct ApiRoutes {
    entries: Vec<(EndpointAccess, UtoipaMethodRouter<SharedApi>)>,
}

impl ApiRoutes {
    /// Adds handlers of one path (`utoipa_axum::routes!(...)`) that `access` may call.
    #[must_use]
    pub(crate) fn add(mut self, access: EndpointAccess, handlers: UtoipaMethodRouter<SharedApi>) -> Self {
        self.entries.push((access, handlers));
        self
    }

    /// Adds the endpoints of another area.
    #[must_use]
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// All endpoints, in the order of their paths and methods.
    pub(crate) fn endpoints(&self) -> Vec<RestEndpoint> {
        let mut endpoints: Vec<RestEndpoint> = self
            .entries
            .iter()
            .flat_map(|(access, (_, paths, _))| {
                paths.paths.iter().flat_map(|(path, item)| {
                    operations(item).into_iter().map(|(method, _)| RestEndpoint {
                        method,
                        path: path.clone(),
                        access: *access,
                    })
                })
            })
            .collect();
        endpoints.sort_by(|a, b| (&a.path, a.method).cmp(&(&b.path, b.method)));
        endpoints
    }

    /// The router that checks each caller before the handler, and its description.
    pub(crate) fn build(self, api: &SharedApi, openapi: OpenApi) -> (axum::Router<SharedApi>, OpenApi) {
        let mut router = OpenApiRouter::with_openapi(openapi);
        for (access, (schemas, mut paths, mut handlers)) in self.entries {
            for (path, item) in &mut paths.paths {
                describe_access(item, access);
                describe_errors(item, path);
            }
            handlers = handlers.route_layer(middleware::from_fn(run_to_end));
            if access == EndpointAccess::Public {
                handlers = handlers.layer(DefaultBodyLimit::max(MAX_PUBLIC_BODY));
            }
            let audited = paths.paths.keys().find_map(|path| AuditRule::of(path));
            if let Some(audited) = audited {
                let api = SharedApi::clone(api);
                handlers = handlers.route_layer(middleware::from_fn_with_state(
                    api,
                    move |State(api): State<SharedApi>, request: Request, next: Next| {
                        audit::audit_request(api, audited, request, next)
                    },
                ));
            }
            if let EndpointAccess::Roles(allowed) = access {
                let api = SharedApi::clone(api);
                handlers = handlers.route_layer(middleware::from_fn_with_state(
                    api,
                    move |State(api): State<SharedApi>, request: Request, next: Next| {
                        check(api, allowed, request, next)
                    },
                ));
            }
            router = router.routes((schemas, paths, handlers));
        }
        router.split_for_parts()
    }
}

/// Lets a request through to its handler with the caller attached, if the caller has one of the authorities.
async fn check(
    api: SharedApi,
    allowed: &'static [Authority],
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let authenticated = caller::authenticate(&api, request.headers()).await?;
    api.rest_limits.try_acquire(&authenticated.principal).await?;
    if !allowed.contains(&authenticated.principal.authority) {
        return Err(ApiError::denied());
    }
    if authenticated.principal.is_public() && !only_reads(&request) {
        return Err(ApiError::denied());
    }
    request.extensions_mut().insert(authenticated);
    let tenant = authenticated.principal.tenant;
    let is_upload = is_package(&request);
    let answer = memory::serve_metered(&api.memory, tenant, is_upload, request, next);
    Ok(reader::with_reader(tenant, answer).await)
}

fn only_reads(request: &Request) -> bool {
    request.method().is_safe() || posts_to(request, &READ_BY_POST)
}

fn posts_to(request: &Request, paths: &[&str]) -> bool {
    let path = request.extensions().get::<MatchedPath>();
    request.method() == Method::POST && path.is_some_and(|path| paths.contains(&path.as_str()))
}

/// Runs a handler that changes something to its end, even if the client hangs up: what is stored must not miss the rest of
/// its work, such as telling those who listen. (The server drops the future of a request whose client is gone.)
async fn run_to_end(request: Request, next: Next) -> Response {
    if request.method().is_safe() || posts_to(&request, &COMPUTED_BY_POST) {
        return next.run(request).await;
    }
    let body = request.extensions().get::<Arc<BodyMemory>>().cloned();
    let person = reader::current_reader();
    let handler = AssertUnwindSafe(next.run(request)).catch_unwind();
    let answer = async move {
        let answer = handler.await.unwrap_or_else(error::answer_panic);
        // What was read of the body counts until then, although the client may be gone.
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

/// Writes into the description what every answer looks like that says no and is not described by itself.
fn describe_errors(item: &mut PathItem, path: &str) {
    let json = Content::new(Some(Ref::from_schema_name("ErrorResponse")));
    let mut answer = ResponseBuilder::new()
        .description("What went wrong")
        .content("application/json", json);
    if ["/api/plugins/", "/api/rpc/"]
        .iter()
        .any(|prefix| path.starts_with(prefix))
    {
        let text = Object::with_type(Type::String);
        answer = answer.content("text/plain", Content::new(Some(text)));
    }
    let answer = answer.build();
    for operation in operations_mut(item) {
        let described = &mut operation.responses.responses;
        described.insert("default".to_owned(), answer.clone().into());
    }
}

/// Writes `x-authorities` and the need for a token into the description.
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
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::http::StatusCode;
    use axum::routing::post;
    use tokio::sync::Semaphore;
    use tower::ServiceExt as _;

    use super::*;

    fn request(path: &str) -> Request {
        Request::post(path).body(Body::empty()).unwrap()
    }

    fn routes<H: Future<Output = ()> + Send + 'static>(
        handler: impl Fn() -> H + Clone + Send + Sync + 'static,
    ) -> Router {
        let handlers = post(handler).route_layer(middleware::from_fn(run_to_end));
        let paths = COMPUTED_BY_POST.into_iter().chain(["/"]);
        paths.fold(Router::new(), |routes, path| routes.route(path, handlers.clone()))
    }

    fn begin(answer: Pin<&mut impl Future>) {
        let polled = answer.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }

    #[tokio::test]
    async fn a_change_that_has_begun_is_finished_although_the_client_hangs_up() {
        let [begun, go_on, finished] = [(); 3].map(|()| Arc::new(Semaphore::new(0)));
        let signals = (begun.clone(), go_on.clone(), finished.clone());
        let routes = routes(move || {
            let (begun, go_on, finished) = signals.clone();
            async move {
                begun.add_permits(1);
                go_on.acquire().await.unwrap().forget();
                finished.add_permits(1);
            }
        });
        let mut answer = Box::pin(routes.oneshot(request("/")));
        begin(answer.as_mut());
        begun.acquire().await.unwrap().forget();
        drop(answer);
        go_on.add_permits(1);
        finished.acquire().await.unwrap().forget();
    }

    #[tokio::test]
    async fn what_is_only_worked_out_ends_with_its_client() {
        for path in COMPUTED_BY_POST {
            let held = Arc::new(());
            let holds = held.clone();
            let routes = routes(move || {
                let held = holds.clone();
                async move {
                    std::future::pending::<()>().await;
                    drop(held);
                }
            });
            let mut answer = Box::pin(routes.oneshot(request(path)));
            begin(answer.as_mut());
            drop(answer);
            assert_eq!(Arc::strong_count(&held), 1, "{path} goes on");
        }
    }

    #[tokio::test]
    async fn a_change_that_panics_is_answered() {
        let routes = routes(|| async { panic!("as it should") });
        let response = routes.oneshot(request("/")).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(response.into_body(), 1_000).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains("Internal error"));
    }
}
