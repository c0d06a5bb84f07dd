//! Scripts of nodes that work by themselves. Those of messages run on the threads of the workers; nodes without messages
//! share one thread, which is as far as they can hold each other up.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use fieldline_script::{Arg, Host, Limits, Parts, Script};
use tokio::sync::oneshot;

use crate::node::NodeError;

/// Calls that wait for the thread; each node has one at a time.
const WAITING: usize = 1024;

struct Call {
    script: Script,
    body: String,
    metadata: Vec<(String, String)>,
    kind: String,
    answer: oneshot::Sender<Called>,
}

/// What has come of a call.
pub(super) struct Called {
    pub(super) result: Result<Vec<Parts>, NodeError>,
    /// How long the script is switched off because of this call.
    pub(super) blocked: Option<Duration>,
}

impl From<NodeError> for Called {
    fn from(error: NodeError) -> Self {
        Self {
            result: Err(error),
            blocked: None,
        }
    }
}

static THREAD: OnceLock<Option<SyncSender<Call>>> = OnceLock::new();

fn thread() -> Option<&'static SyncSender<Call>> {
    let start = || {
        let (sender, calls) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("scripts".to_owned());
        thread.spawn(move || work(&calls)).ok().map(|_| sender)
    };
    THREAD.get_or_init(start).as_ref()
}

fn work(calls: &Receiver<Call>) {
    let mut host = Host::new(Limits::default());
    while let Ok(call) = calls.recv() {
        let args = [
            Arg::Json(&call.body),
            Arg::Map(&call.metadata),
            Arg::Text(&call.kind),
        ];
        let called = Called {
            result: host.transform(&call.script, &args).map_err(NodeError::from),
            blocked: host.take_blocked(),
        };
        // Whoever asked may be gone.
        let _ = call.answer.send(called);
    }
}

/// Calls a script with body, metadata and type of a message; it has to return `{msg, metadata, msgType}`.
pub(super) async fn transform(
    script: &Script,
    body: String,
    metadata: Vec<(String, String)>,
    kind: String,
) -> Called {
    let (answer, answered) = oneshot::channel();
    let call = Call {
        script: script.clone(),
        body,
        metadata,
        kind,
        answer,
    };
    let Some(sender) = thread() else {
        return NodeError::new("there is no thread for scripts").into();
    };
    if sender.try_send(call).is_err() {
        return NodeError::new("too many scripts wait to be run").into();
    }
    answered
        .await
        .unwrap_or_else(|_| NodeError::new("the thread of scripts has ended").into())
}
