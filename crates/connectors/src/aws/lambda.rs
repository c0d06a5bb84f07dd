//! Lambda.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::client::{AwsClient, AwsRequest, AwsService, check, request_id};
use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::egress::Egress;
use crate::lenient;
use crate::outcome::{ConnectorError, ConnectorOutcome, entry};
use crate::percent;
use crate::secret::Secret;

/// The configuration of `TbAwsLambdaNode`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LambdaConfig {
    /// The access key.
    #[serde(deserialize_with = "lenient::string")]
    pub access_key: String,
    /// Its secret.
    pub secret_key: Secret,
    /// The region.
    #[serde(deserialize_with = "lenient::string")]
    pub region: String,
    /// Pattern of the name of the function.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "template"))]
    pub function_name: String,
    /// Pattern of the version or alias; `$LATEST` if it is blank.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "template"))]
    pub qualifier: String,
    /// How long a connection may take to come about, in seconds; 0 leaves it to the platform.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(extend("x-unit" = "s"))]
    pub connection_timeout: u32,
    /// How long a request may take, in seconds; 0 leaves it to the platform.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(extend("x-unit" = "s"))]
    pub request_timeout: u32,
    /// Whether an exception of the function is a failure.
    #[serde(deserialize_with = "lenient::boolean")]
    pub tell_failure_if_func_throws_exc: bool,
}

impl Default for LambdaConfig {
    fn default() -> Self {
        Self {
            access_key: String::new(),
            secret_key: Secret::default(),
            region: "us-east-1".to_owned(),
            function_name: String::new(),
            qualifier: Self::LATEST.to_owned(),
            connection_timeout: 10,
            request_timeout: 5,
            tell_failure_if_func_throws_exc: false,
        }
    }
}

impl LambdaConfig {
    /// The version that is meant where none is named.
    pub const LATEST: &str = "$LATEST";
}

impl ConnectorConfig for LambdaConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("functionName", &self.function_name)?;
        let fields = ["accessKey", "secretKey", "region"];
        check(fields, &self.access_key, &self.secret_key, &self.region)
    }
}

const SERVICE: AwsService = AwsService {
    host: "lambda",
    signed: "lambda",
    name: "AWSLambda",
};
/// The longest that a function may run.
const LONGEST_SECS: u32 = 900;

/// Calls functions and waits for their results.
#[derive(Debug)]
pub struct LambdaClient {
    client: AwsClient,
    fails_on_exception: bool,
}

impl LambdaClient {
    /// Makes a client.
    pub fn new(config: &LambdaConfig, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        Self::with_endpoint(config, None, egress)
    }

    /// Like [`Self::new`], with another base URL than that of the region.
    pub fn with_endpoint(
        config: &LambdaConfig,
        endpoint: Option<&str>,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        let bounded = |secs: u32| match secs {
            0 => Duration::from_secs(LONGEST_SECS.into()),
            secs => Duration::from_secs(secs.min(LONGEST_SECS).into()),
        };
        let timeouts = (
            bounded(config.connection_timeout),
            bounded(config.request_timeout),
        );
        let credentials = (config.access_key.as_str(), &config.secret_key);
        Ok(Self {
            client: AwsClient::new(SERVICE, credentials, &config.region, endpoint, timeouts, egress)?,
            fails_on_exception: config.tell_failure_if_func_throws_exc,
        })
    }

    /// Calls a function; its result becomes the body of the message. A blank qualifier means the latest version.
    pub async fn send(
        &self,
        function: &str,
        qualifier: &str,
        body: &str,
    ) -> Result<ConnectorOutcome, ConnectorError> {
        let qualifier = if qualifier.trim().is_empty() {
            LambdaConfig::LATEST
        } else {
            qualifier
        };
        let target = format!(
            "/2015-03-31/functions/{}/invocations?Qualifier={}",
            percent::encode(function),
            percent::encode(qualifier)
        );
        let headers = [
            ("content-type", "application/json"),
            ("x-amz-invocation-type", "RequestResponse"),
        ];
        let call = AwsRequest {
            target: &target,
            endpoint: None,
            headers: &headers,
            body: body.to_owned(),
        };
        let answer = self.client.call(call).await.map_err(ConnectorError::bare)?;
        let request_id = entry("requestId", request_id(&answer));
        if self.fails_on_exception && !answer.header("x-amz-function-error").is_empty() {
            let mut error = ConnectorError::with_error_metadata(answer.body);
            error.metadata.push(request_id);
            return Err(error);
        }
        Ok(ConnectorOutcome {
            body: Some(answer.body),
            metadata: vec![request_id],
        })
    }
}
