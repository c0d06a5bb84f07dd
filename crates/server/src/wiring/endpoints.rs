//! Servers of the operator's own that are asked over HTTP, as rule nodes ask those of tenants.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::rest::{RestBody, RestCallClient, RestConfig, RestRequest, RestSettings};
use fieldline_core::ports::{
    RestEndpoint, RestEndpointCall, RestEndpointError, RestEndpointSettings, RestEndpoints,
};
use serde::Deserialize as _;
use serde_json::json;

/// Makes connections to whatever the operator names.
pub(super) struct OperatorEndpoints;

struct OperatorEndpoint(RestCallClient);

impl RestEndpoints for OperatorEndpoints {
    fn open(&self, settings: &RestEndpointSettings) -> Result<Arc<dyn RestEndpoint>, String> {
        let config = json!({
            "requestMethod": settings.method,
            "credentials": settings.credentials,
            "readTimeoutMs": settings.read_timeout.as_millis() as u64,
            "maxParallelRequestsCount": settings.max_parallel,
            "maxInMemoryBufferSizeInKb": settings.max_answer_kib,
            // A body is sent as it is, whatever it is.
            "parseToPlainText": true,
            "ignoreRequestBody": settings.method == "DELETE",
        });
        let limits = RestSettings {
            max_parallel_requests: RestEndpointSettings::MOST_PARALLEL as usize,
            ..RestSettings::default()
        };
        let config = RestConfig::deserialize(&config).map_err(|error| error.to_string())?;
        let client = RestCallClient::new(&config, &limits, &Egress::open());
        let client = client.map_err(|error| error.to_string())?;
        Ok(Arc::new(OperatorEndpoint(client)))
    }
}

fn request(call: RestEndpointCall<'_>) -> RestRequest<'_> {
    RestRequest {
        url: call.url,
        query: Some(call.query),
        headers: call.headers,
        body: RestBody::Template(call.body),
    }
}

#[async_trait]
impl RestEndpoint for OperatorEndpoint {
    fn check(&self, call: RestEndpointCall<'_>) -> Result<(), String> {
        self.0.check(&request(call))
    }

    async fn call(&self, call: RestEndpointCall<'_>) -> Result<String, RestEndpointError> {
        let outcome = self
            .0
            .send(&request(call))
            .await
            .map_err(|error| RestEndpointError {
                status: error
                    .metadata
                    .iter()
                    .find_map(|(name, value)| {
                        (name == "statusCode")
                            .then(|| value.parse::<u16>().ok())
                            .flatten()
                    })
                    // With one of 2xx, the rest of the answer is what went wrong.
                    .filter(|status| !(200..300).contains(status)),
                message: error.message,
            })?;
        Ok(outcome.body.unwrap_or_default())
    }
}
