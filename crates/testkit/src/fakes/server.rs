//! An HTTP server that keeps what it is sent and answers what it is told.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, Uri};
use serde_json::Value;
use tokio::net::TcpListener;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// Method, in capitals.
    pub method: String,
    /// Path and query, as they were encoded.
    pub target: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, which is text.
    pub body: String,
}

impl RecordedRequest {
    /// A header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The decoded fields of a form.
    pub fn form(&self) -> Vec<(String, String)> {
        reqwest::Url::parse(&format!("http://h/?{}", self.body))
            .unwrap()
            .query_pairs()
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect()
    }
}

/// A server, which runs as long as the test.
#[derive(Debug)]
pub struct FakeHttpServer {
    /// Its base URL, without a slash at the end.
    pub url: String,
    received: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl FakeHttpServer {
    /// Starts a server that answers as `answer` says.
    pub async fn start(
        answer: impl Fn(&RecordedRequest) -> Response<Body> + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&received);
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let request = RecordedRequest {
                method: method.to_string(),
                target: uri.to_string(),
                headers,
                body: String::from_utf8(body.to_vec()).unwrap(),
            };
            let response = answer(&request);
            keep.lock().unwrap().push(request);
            async move { response }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
        Self { url, received }
    }

    /// Starts a server that always gives this JSON.
    pub async fn always(status: u16, body: Value) -> Self {
        Self::start(move |_| answer(status, &[], &body.to_string())).await
    }

    /// Starts a server that takes connections and requests, and never answers.
    pub async fn silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.push(stream);
            }
        });
        Self {
            url,
            received: Arc::default(),
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.url.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// The last request.
    pub fn last(&self) -> RecordedRequest {
        self.received
            .lock()
            .unwrap()
            .last()
            .cloned()
            .expect("no request came")
    }

    /// How many requests came.
    pub fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

/// An answer.
pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body.to_owned())).unwrap()
}
