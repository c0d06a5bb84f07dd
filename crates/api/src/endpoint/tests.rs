//! Tests of the registered endpoints, and of how their handlers end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::routing::post;
use fieldline_model::EntityType;
use fieldline_model::entity::ActionType;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use super::*;

fn request() -> Request {
    Request::post("/").body(Body::empty()).unwrap()
}

fn routes<H: Future<Output = ()> + Send + 'static>(
    effect: EndpointEffect,
    handler: impl Fn() -> H + Clone + Send + Sync + 'static,
) -> Router {
    Router::new().route("/", run_as(effect, post(handler)))
}

fn begin(answer: Pin<&mut impl Future>) {
    let polled = answer.poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
}

#[tokio::test]
async fn a_change_that_has_begun_is_finished_although_the_client_hangs_up() {
    let [begun, go_on, finished] = [(); 3].map(|()| Arc::new(Semaphore::new(0)));
    let signals = (begun.clone(), go_on.clone(), finished.clone());
    let routes = routes(EndpointEffect::Changes, move || {
        let (begun, go_on, finished) = signals.clone();
        async move {
            begun.add_permits(1);
            go_on.acquire().await.unwrap().forget();
            finished.add_permits(1);
        }
    });
    let mut answer = Box::pin(routes.oneshot(request()));
    begin(answer.as_mut());
    begun.acquire().await.unwrap().forget();
    drop(answer);
    go_on.add_permits(1);
    finished.acquire().await.unwrap().forget();
}

#[tokio::test]
async fn what_is_only_worked_out_ends_with_its_client() {
    let held = Arc::new(());
    let holds = held.clone();
    let routes = routes(EndpointEffect::Computes, move || {
        let held = holds.clone();
        async move {
            std::future::pending::<()>().await;
            drop(held);
        }
    });
    let mut answer = Box::pin(routes.oneshot(request()));
    begin(answer.as_mut());
    drop(answer);
    assert_eq!(Arc::strong_count(&held), 1, "it goes on");
}

#[tokio::test]
async fn a_change_that_panics_is_answered() {
    let routes = routes(EndpointEffect::Changes, || async { panic!("as it should") });
    let response = routes.oneshot(request()).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let body = to_bytes(response.into_body(), 1_000).await.unwrap();
    assert!(String::from_utf8_lossy(&body).contains("Internal error"));
}

fn is_declared(effect: EndpointEffect, rule: AuditRule, method: &str, path: &str) -> bool {
    let needs: &[&str] = match rule {
        AuditRule::Delete(_) | AuditRule::Upload(_) | AuditRule::Assign(_) | AuditRule::Unassign(_) => &["}"],
        AuditRule::Alarm(_) => &["{alarmId}"],
        AuditRule::Rpc { .. } => &["{deviceId}"],
        AuditRule::Data(_) => &["{entityId}", "{deviceId}"],
        AuditRule::SetEnabled => &["{userId}"],
        _ => &[],
    };
    let is_found = match needs {
        [] => true,
        ["}"] => path.ends_with('}'),
        names => names.iter().any(|name| path.contains(name)),
    };
    let is_meant = match effect {
        EndpointEffect::Reads => method == "GET",
        EndpointEffect::Asks | EndpointEffect::Computes => method == "POST",
        EndpointEffect::Changes => matches!(method, "POST" | "PUT" | "PATCH" | "DELETE"),
    };
    is_found && is_meant
}

#[test]
fn every_endpoint_says_of_itself_what_its_method_and_path_allow() {
    let routes = crate::router::routes();
    let mut found = Vec::new();
    for endpoint in &routes.endpoints {
        let registered: Vec<_> = endpoint.registered().collect();
        let [RestEndpoint { method, path, .. }] = registered.as_slice() else {
            panic!("each handler is registered by itself: {registered:?}");
        };
        assert!(
            is_declared(endpoint.effect, endpoint.audit, method, path),
            "{method} {path}: {:?}, {:?}",
            endpoint.effect,
            endpoint.audit
        );
        if endpoint.effect == EndpointEffect::Computes {
            found.push(path.clone());
        }
    }
    found.sort();
    let scripts = ["alarm/rule", "calculatedField", "ruleChain"];
    assert_eq!(found, scripts.map(|of| format!("/api/{of}/testScript")));
}

/// Describes an endpoint in one line: method, path, roles, effect, audit rule, and the other settings.
fn described(endpoint: &Endpoint) -> String {
    let registered = endpoint.registered().next().unwrap();
    let roles = match endpoint.access {
        EndpointAccess::Public => "anybody".to_owned(),
        EndpointAccess::Roles(allowed) => {
            let roles = allowed.iter().map(|role| format!("{role:?}"));
            roles.collect::<Vec<_>>().join("+")
        }
    };
    let mut line = format!(
        "{} {} {roles} {:?} {:?}",
        registered.method, registered.path, endpoint.effect, endpoint.audit
    );
    let extras = [
        (endpoint.open_to_public_sessions, " public-sessions"),
        (endpoint.max_upload == MaxUpload::Package, " package"),
        (endpoint.max_upload == MaxUpload::Resource, " resource"),
        (endpoint.errors == ErrorShape::Text, " text-errors"),
    ];
    line.extend(extras.iter().filter(|(is_so, _)| *is_so).map(|(_, word)| *word));
    line
}

/// Catches mistakes in a registration (a change registered as a read, a missing audit rule, wrong roles). After an
/// intended change, copy the list from the failure message.
#[test]
fn endpoints_are_what_the_list_says() {
    let routes = crate::router::routes();
    let mut lines: Vec<_> = routes.endpoints.iter().map(described).collect();
    lines.sort();
    let listed: Vec<_> = include_str!("../../tests/endpoints.txt").lines().collect();
    let new: Vec<_> = lines
        .iter()
        .filter(|line| !listed.contains(&line.as_str()))
        .collect();
    let gone: Vec<_> = listed
        .iter()
        .filter(|line| !lines.iter().any(|it| it == *line))
        .collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new: {new:#?}, gone: {gone:#?}"
    );
    assert_eq!(lines.len(), listed.len(), "an endpoint is registered twice");
}

#[test]
fn the_audit_log_keeps_what_endpoints_say() {
    let routes = crate::router::routes();
    let rule = |method: &str, path: &str| {
        let mut endpoints = routes.endpoints.iter();
        let found = endpoints.find(|endpoint| {
            endpoint
                .registered()
                .any(|registered| (registered.method, registered.path.as_str()) == (method, path))
        });
        found.map(|endpoint| endpoint.audit)
    };
    for (method, path, kept) in [
        ("POST", "/api/device", AuditRule::Save(EntityType::Device)),
        (
            "DELETE",
            "/api/device/{deviceId}",
            AuditRule::Delete(EntityType::Device),
        ),
        (
            "POST",
            "/api/customer/{customerId}/asset/{assetId}",
            AuditRule::Assign(EntityType::Asset),
        ),
        (
            "DELETE",
            "/api/customer/public/dashboard/{dashboardId}",
            AuditRule::Unassign(EntityType::Dashboard),
        ),
        (
            "DELETE",
            "/api/customer/entityView/{entityViewId}",
            AuditRule::Unassign(EntityType::EntityView),
        ),
        (
            "POST",
            "/api/plugins/telemetry/{deviceId}/{scope}",
            AuditRule::Data(ActionType::AttributesUpdated),
        ),
        (
            "POST",
            "/api/rpc/twoway/{deviceId}",
            AuditRule::Rpc { oneway: false },
        ),
        ("GET", "/api/tenant/devices", AuditRule::Nothing),
        ("POST", "/api/devices", AuditRule::Nothing),
        ("POST", "/api/auth/login", AuditRule::Nothing),
        ("GET", "/api/device/info/{deviceId}", AuditRule::Nothing),
        ("POST", "/api/queues", AuditRule::Nothing),
    ] {
        assert_eq!(rule(method, path), Some(kept), "{method} {path}");
    }
}
