//! A minimal HTTP server that answers as a test defines.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

/// A request of a client.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    /// Value of `X-Authorization`.
    pub(crate) authorization: Option<String>,
    pub(crate) body: Value,
}

impl Request {
    /// Method and path.
    pub(crate) fn what(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// A query parameter; empty if it is absent.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }
}

/// The reply to a request.
pub(crate) enum Reply {
    Json(Value),
    Refusal(u16, String),
    /// Closes the connection without a response.
    HangUp,
}

impl Reply {
    /// An error in the format of the REST API.
    pub(crate) fn error(status: u16, message: &str) -> Self {
        Self::Refusal(status, json!({"status": status, "message": message}).to_string())
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// The server; dropping it stops it.
pub(crate) struct StandIn {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    /// Starts a server on a free port.
    pub(crate) fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let handler: Arc<Handler> = Arc::new(handler);
        let (log, flag) = (Arc::clone(&requests), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(Ordering::Relaxed) {
                    return;
                }
                let (log, handler) = (Arc::clone(&log), Arc::clone(&handler));
                thread::spawn(move || serve(stream.unwrap(), &log, &*handler));
            }
        });
        Self {
            address,
            requests,
            is_over,
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far with that method and path.
    pub(crate) fn requests(&self, what: &str) -> Vec<Request> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|request| request.what() == what)
            .cloned()
            .collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if TcpStream::connect(self.address).is_ok() {
            self.thread.take().unwrap().join().unwrap();
        }
    }
}

/// Answers the requests of a connection until the client closes it.
fn serve(stream: TcpStream, log: &Mutex<Vec<Request>>, handler: &Handler) {
    stream.set_nodelay(true).unwrap();
    let mut output = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    while let Some(request) = read_request(&mut input) {
        let reply = handler(&request);
        log.lock().unwrap().push(request);
        let (status, body) = match reply {
            Reply::Json(body) => (200, body.to_string()),
            Reply::Refusal(status, body) => (status, body),
            Reply::HangUp => return,
        };
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        if output.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(input: &mut impl BufRead) -> Option<Request> {
    let line = |input: &mut dyn BufRead| {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|length| *length > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = line(input)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = HashMap::new();
    loop {
        let header = line(input)?;
        let Some((name, value)) = header.split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        authorization: headers.remove("x-authorization"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
