use axum::body::Bytes;
use axum::routing::{get, post};
use fieldline_core::options::HumanDuration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn start(options: HttpOptions) -> HttpServer {
    let routes = Router::new()
        .route("/echo", post(async |body: Bytes| body))
        .route("/large", get(async || vec![7_u8; 64 << 20]))
        .route("/upgrade", get(upgrade));
    HttpServer::start("127.0.0.1:0".parse().unwrap(), routes, HttpLimits::of(&options)).unwrap()
}

/// Upgrades to a protocol in which neither side sends anything.
async fn upgrade(request: axum::extract::Request) -> axum::response::Response {
    tokio::spawn(async move {
        if let Ok(connection) = hyper::upgrade::on(request).await {
            let _ = TokioIo::new(connection).read_to_end(&mut Vec::new()).await;
        }
    });
    axum::response::Response::builder()
        .status(101)
        .header("Connection", "Upgrade")
        .header("Upgrade", "silence")
        .body(axum::body::Body::empty())
        .unwrap()
}

/// Returns everything the server sends until it closes the connection.
async fn answer(mut connection: TcpStream) -> String {
    let mut said = Vec::new();
    let _ = connection.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn a_body_that_drips_without_end_is_refused_when_the_whole_takes_too_long() {
    runtime().block_on(async {
        let server = start(HttpOptions {
            request_timeout: HumanDuration::millis(200),
            header_timeout: HumanDuration::millis(200),
            ..HttpOptions::default()
        });
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        connection
            .write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
            .await
            .unwrap();
        let (mut reading, mut writing) = connection.into_split();
        let dripping = tokio::spawn(async move {
            // The silence never lasts as long as `body-timeout`.
            while writing.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let mut head = [0; 12];
        reading.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 400");
        // The server has closed the connection, so that writing the next bytes fails.
        dripping.await.unwrap();
    });
}

#[test]
fn a_body_in_time_is_served_and_a_head_beyond_the_limit_is_not() {
    runtime().block_on(async {
        let server = start(HttpOptions::default());
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        let request = "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
        connection.write_all(request.as_bytes()).await.unwrap();
        let said = answer(connection).await;
        assert!(
            said.starts_with("HTTP/1.1 200") && said.ends_with("hello"),
            "{said}"
        );

        let mut connection = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "GET /{} HTTP/1.1\r\nHost: x\r\n\r\n",
            "x".repeat(CONNECTION_BUFFER)
        );
        // The server may refuse it before all of it is sent.
        let _ = connection.write_all(head.as_bytes()).await;
        let said = answer(connection).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    });
}

#[test]
fn a_connection_is_used_again_after_a_request_that_was_answered_without_its_body() {
    runtime().block_on(async {
        let server = start(HttpOptions::default());
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        let head = "POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n";
        connection.write_all(head.as_bytes()).await.unwrap();
        // Like clients that send head and body one after the other.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let next = "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\nnext";
        connection.write_all(b"hello").await.unwrap();
        connection.write_all(next.as_bytes()).await.unwrap();
        let said = answer(connection).await;
        assert!(
            said.starts_with("HTTP/1.1 404") && said.contains("HTTP/1.1 200") && said.ends_with("next"),
            "{said}"
        );

        // The server does not read a very long body to its end, and it tells the client to close.
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        let head = "POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
        connection.write_all(head.as_bytes()).await.unwrap();
        let said = answer(connection).await;
        assert!(
            said.starts_with("HTTP/1.1 404") && said.contains("connection: close"),
            "{said}"
        );
    });
}

#[test]
fn a_peer_that_does_not_read_its_answer_loses_its_connection() {
    runtime().block_on(async {
        let server = start(HttpOptions {
            write_timeout: HumanDuration::millis(100),
            max_connections: 1,
            ..HttpOptions::default()
        });
        let mut stuck = TcpStream::connect(server.address).await.unwrap();
        stuck
            .write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        // The only connection slot becomes free again although the first peer does nothing.
        let mut next = TcpStream::connect(server.address).await.unwrap();
        next.write_all(b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        assert!(answer(next).await.starts_with("HTTP/1.1 404"));
        drop(stuck);
    });
}

#[test]
fn what_was_upgraded_is_an_open_connection_until_it_ends() {
    runtime().block_on(async {
        let server = start(HttpOptions {
            max_connections: 1,
            ..HttpOptions::default()
        });
        let mut upgraded = TcpStream::connect(server.address).await.unwrap();
        let head = "GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: silence\r\n\r\n";
        upgraded.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        upgraded.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 101");

        let mut next = TcpStream::connect(server.address).await.unwrap();
        let head = b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        next.write_all(head).await.unwrap();
        let mut answered = std::pin::pin!(answer(next));
        let early = tokio::time::timeout(Duration::from_millis(200), answered.as_mut()).await;
        assert!(early.is_err(), "{early:?}");
        drop(upgraded);
        assert!(answered.await.starts_with("HTTP/1.1 404"));
    });
}
