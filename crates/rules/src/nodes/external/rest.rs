//! "REST API call".

use std::sync::Arc;

use fieldline_connectors::rest::{RestBody, RestClient, RestConfig, RestRequest};
use serde_json::{Value, json};

use super::outside::{External, Outside, Sending, body, read, way_out, wrong};
use super::pairs::Pairs;
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError};
use crate::nodes::pattern::Pattern;
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Invokes REST API calls to an external server.",
    version: 4,
    default_configuration: || {
        json!({
            "restEndpointUrlPattern": "http://localhost/api", "requestMethod": "POST",
            "headers": {"Content-Type": "application/json"}, "queryParams": [], "readTimeoutMs": 0,
            "maxParallelRequestsCount": 0, "parseToPlainText": false, "enableProxy": false,
            "useSystemProxyProperties": false, "proxyHost": null, "proxyPort": 0, "proxyUser": null,
            "proxyPassword": null, "credentials": {"type": "anonymous"}, "ignoreRequestBody": false,
            "requestBodyTemplate": null, "maxInMemoryBufferSizeInKb": 256,
        })
    },
    upgrade,
    ..NodeType::new(
        "rest.TbRestApiCallNode",
        "rest api call",
        ComponentType::External,
        make,
    )
}];

/// What a configuration of version 3 may hold.
const KNOWN: [&str; 16] = [
    "restEndpointUrlPattern",
    "requestMethod",
    "headers",
    "readTimeoutMs",
    "maxParallelRequestsCount",
    "parseToPlainText",
    "enableProxy",
    "useSystemProxyProperties",
    "proxyHost",
    "proxyPort",
    "proxyUser",
    "proxyPassword",
    "credentials",
    "ignoreRequestBody",
    "requestBodyTemplate",
    "maxInMemoryBufferSizeInKb",
];

fn upgrade(from: i32, mut configuration: Value) -> Value {
    let Some(fields) = configuration.as_object_mut() else {
        return configuration;
    };
    if from < 1
        && !fields.contains_key("parseToPlainText")
        && let Some(trims) = fields.remove("trimDoubleQuotes")
    {
        fields.insert("parseToPlainText".to_owned(), (trims == Value::Bool(true)).into());
    }
    if from < 3 {
        fields
            .entry("maxInMemoryBufferSizeInKb")
            .or_insert_with(|| 256.into());
    }
    if from < 4 {
        fields.entry("requestBodyTemplate").or_insert(Value::Null);
        fields.retain(|name, _| KNOWN.contains(&name.as_str()));
    }
    configuration
}

struct Rest {
    client: Arc<RestClient>,
    url: Pattern,
    query: Option<Pairs>,
    headers: Pairs,
    template: Option<Pattern>,
    /// Values stand between the quotes of JSON texts in the template.
    escapes: bool,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let rest: RestConfig = read(config)?;
    let client = RestClient::new(&rest, &config.services.external.rest, &way_out(config)).map_err(wrong)?;
    let template = rest
        .request_body_template
        .filter(|template| !template.trim().is_empty());
    let query = rest.query_params.as_ref();
    let outside = Rest {
        client: Arc::new(client),
        url: Pattern::new(&rest.rest_endpoint_url_pattern),
        query: query.map(|all| Pairs::new(all.iter().map(|it| (it.key.as_str(), it.value.as_str())))),
        headers: Pairs::of(&rest.headers),
        template: template.as_deref().map(Pattern::new),
        escapes: !rest.parse_to_plain_text,
    };
    Ok(External::node(config, false, outside))
}

impl Outside for Rest {
    fn send(&self, _: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        let url = self.url.resolve(msg)?.into_owned();
        let query = self.query.as_ref().map(|query| query.resolve(msg)).transpose()?;
        let headers = self.headers.resolve(msg)?;
        let (text, is_template) = match &self.template {
            Some(template) if self.escapes => (template.resolve_escaped(msg)?.into_owned(), true),
            Some(template) => (template.resolve(msg)?.into_owned(), true),
            None => (body(msg), false),
        };
        let client = Arc::clone(&self.client);
        Ok(Box::pin(async move {
            let body = match is_template {
                true => RestBody::Template(&text),
                false => RestBody::Message(&text),
            };
            let request = RestRequest {
                url: &url,
                query: query.as_deref(),
                headers: &headers,
                body,
            };
            client.send(&request).await
        }))
    }
}
