//! A server that answers as a test says.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::ports::{
    RestEndpoint, RestEndpointCall, RestEndpointError, RestEndpointSettings, RestEndpoints,
};
use parking_lot::Mutex;

/// One that no request can be sent to.
pub(super) const UNUSABLE_URL: &str = "http://[::1";

/// How the server answers.
#[derive(Debug, Clone, Default)]
pub(super) enum FakeAnswer {
    /// With a status of 2xx and this body.
    Body(String),
    /// With the status 503.
    #[default]
    Failure,
    /// Not at all.
    Silence,
}

/// A request that the server got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FakeCall {
    pub(super) query: Vec<(String, String)>,
    pub(super) body: String,
}

#[derive(Default)]
struct FakeServerState {
    answer: Mutex<FakeAnswer>,
    calls: Mutex<Vec<FakeCall>>,
    opened: Mutex<Vec<RestEndpointSettings>>,
}

/// See the module. Clones are the same server.
#[derive(Clone, Default)]
pub(super) struct FakeServer(Arc<FakeServerState>);

impl FakeServer {
    pub(super) fn answering(body: impl Into<String>) -> Self {
        let server = Self::default();
        server.set_answer(FakeAnswer::Body(body.into()));
        server
    }

    pub(super) fn set_answer(&self, answer: FakeAnswer) {
        *self.0.answer.lock() = answer;
    }

    pub(super) fn calls(&self) -> Vec<FakeCall> {
        self.0.calls.lock().clone()
    }

    /// The settings that it was opened with.
    pub(super) fn opened(&self) -> Vec<RestEndpointSettings> {
        self.0.opened.lock().clone()
    }
}

impl RestEndpoints for FakeServer {
    fn open(&self, settings: &RestEndpointSettings) -> Result<Arc<dyn RestEndpoint>, String> {
        self.0.opened.lock().push(settings.clone());
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl RestEndpoint for FakeServer {
    fn check(&self, call: RestEndpointCall<'_>) -> Result<(), String> {
        match call.url {
            UNUSABLE_URL => Err("the URL is none".to_owned()),
            _ => Ok(()),
        }
    }

    async fn call(&self, call: RestEndpointCall<'_>) -> Result<String, RestEndpointError> {
        self.0.calls.lock().push(FakeCall {
            query: call.query.to_vec(),
            body: call.body.to_owned(),
        });
        let answer = self.0.answer.lock().clone();
        // Others ask meanwhile.
        tokio::task::yield_now().await;
        match answer {
            FakeAnswer::Body(body) => Ok(body),
            FakeAnswer::Failure => Err(RestEndpointError {
                status: Some(503),
                message: "503 from the server".to_owned(),
            }),
            FakeAnswer::Silence => std::future::pending().await,
        }
    }
}
