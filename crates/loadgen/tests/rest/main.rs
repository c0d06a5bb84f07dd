//! The REST client against a server whose answers each test defines.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fieldline_loadgen::error::LoadError;
use fieldline_loadgen::rest::{RestClient, RestTarget};
use serde_json::json;
use socket2::{Domain, Socket, Type};

use fake_server::{Reply, Request, StandIn};

mod devices;
mod fake_server;
mod verify;
mod watch;

const LOGIN: &str = "POST /api/auth/login";

/// A server that accepts every log-in, and answers all other requests by `handler`.
fn open_server(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> StandIn {
    StandIn::start(move |request| match request.what().as_str() {
        LOGIN => Reply::Json(json!({"token": "t"})),
        _ => handler(request),
    })
}

fn client(server: &StandIn) -> RestClient {
    client_of(&server.url())
}

fn client_of(url: &str) -> RestClient {
    RestClient::new(RestTarget {
        url: url.to_owned(),
        username: "tenant@example.org".to_owned(),
        password: "top-secret".to_owned(),
        pool_size: 4,
    })
    .unwrap()
}

#[test]
fn an_expired_login_is_renewed_once_for_all_threads() {
    const THREADS: usize = 8;
    let logins = AtomicUsize::new(0);
    // No request is refused before every thread has sent one with the expired log-in.
    let everybody = Barrier::new(THREADS);
    let server = StandIn::start(move |request| match request.what().as_str() {
        LOGIN => Reply::Json(json!({"token": format!("t{}", logins.fetch_add(1, Ordering::SeqCst))})),
        _ if request.authorization.as_deref() == Some("Bearer t0") => {
            everybody.wait();
            Reply::error(401, "Token has expired")
        }
        _ => Reply::Json(json!({"is": request.authorization})),
    });
    let client = client(&server);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| assert_eq!(client.get("/api/x", &[]).unwrap(), json!({"is": "Bearer t1"})));
        }
    });
    assert_eq!(server.requests(LOGIN).len(), 2);
    let login = &server.requests(LOGIN)[0];
    assert_eq!(
        login.body,
        json!({"username": "tenant@example.org", "password": "top-secret"})
    );
    assert_eq!(login.authorization, None);
}

#[test]
fn a_login_that_stays_refused_is_an_error() {
    let server = open_server(|_| Reply::error(401, "Authentication failed"));
    let error = client(&server).get("/api/x", &[]).unwrap_err();
    assert_eq!(error.status(), Some(401));
    assert_eq!(
        (server.requests(LOGIN).len(), server.requests("GET /api/x").len()),
        (2, 2)
    );
}

#[test]
fn a_wrong_password_is_tried_once_and_never_shown() {
    let server = StandIn::start(|_| Reply::error(401, "Invalid username or password"));
    let client = client(&server);
    for _ in 0..3 {
        let error = client.get("/api/x", &[]).unwrap_err();
        let text = error.to_string();
        assert_eq!(
            text,
            "POST /api/auth/login was refused with 401: Invalid username or password"
        );
        assert!(!format!("{error:?}").contains("top-secret"));
    }
    assert_eq!(server.requests(LOGIN).len(), 1);
}

#[test]
fn errors_say_what_was_refused_and_why() {
    let server = open_server(|request| match request.path.as_str() {
        "/json" => Reply::error(400, "Device with such name already exists!"),
        "/text" => Reply::Refusal(400, "Invalid interval\n".to_owned()),
        "/empty" => Reply::Refusal(503, String::new()),
        "/html" => Reply::Refusal(200, "<html>".to_owned()),
        _ => Reply::HangUp,
    });
    let client = client(&server);
    for (path, text) in [
        (
            "/json",
            "GET /json?a=b%20c was refused with 400: Device with such name already exists!",
        ),
        (
            "/text",
            "GET /text?a=b%20c was refused with 400: Invalid interval",
        ),
        (
            "/empty",
            "GET /empty?a=b%20c was refused with 503: no reason given",
        ),
        ("/html", "GET /html?a=b%20c gave a bad answer: it is not JSON: "),
        ("/gone", &format!("{} cannot be reached: ", server.url())),
    ] {
        let error = client.get(path, &[("a", "b c")]).unwrap_err();
        assert!(error.to_string().starts_with(text), "{error}");
        assert_eq!(
            error.is_transient(),
            matches!(path, "/empty" | "/gone"),
            "{error:?}"
        );
    }
    assert!(matches!(
        client.get_optional("/json", &[]),
        Err(LoadError::Refused { status: 400, .. })
    ));
}

#[test]
fn a_server_that_is_starting_is_waited_for() {
    let tries = AtomicUsize::new(0);
    let server = StandIn::start(move |_| match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::HangUp,
        1 => Reply::error(503, "starting"),
        _ => Reply::Json(json!({"token": "t"})),
    });
    client(&server).wait_until_up(Duration::from_secs(60)).unwrap();
    assert_eq!(server.requests(LOGIN).len(), 3);
}

#[test]
fn a_server_that_does_not_come_up_is_unreachable() {
    // A port that is bound but not listened on refuses connections.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    let port = socket.local_addr().unwrap().as_socket().unwrap().port();
    let refusing = client_of(&format!("http://127.0.0.1:{port}"));
    let server = StandIn::start(|_| Reply::HangUp);
    for client in [refusing, client(&server)] {
        let error = client.wait_until_up(Duration::from_millis(120)).unwrap_err();
        assert!(matches!(error, LoadError::Unreachable { .. }), "{error}");
    }
    assert!(server.requests(LOGIN).len() > 1, "it gave up at once");
}
