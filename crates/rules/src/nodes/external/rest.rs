//! "REST API call".

use std::sync::Arc;

use fieldline_connectors::rest::{RestBody, RestCallClient, RestConfig, RestRequest};
use serde_json::{Value, json};

use super::external_node::{ExternalNode, OutboundSender, SendFuture, body, node_egress, read, wrong};
use super::pairs::TemplatePairs;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "rest.TbRestApiCallNode",
    name: "rest api call",
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
    schema: config_schema::of_connector::<RestConfig>,
    upgrade,
    make,
    ..NodeType::EXTERNAL
}];

/// What a configuration of version 3 may hold.
const CONFIG_FIELDS: [&str; 16] = [
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
        fields.retain(|name, _| CONFIG_FIELDS.contains(&name.as_str()));
    }
    configuration
}

struct RestApiCallNode {
    client: Arc<RestCallClient>,
    url: TextTemplate,
    query: Option<TemplatePairs>,
    headers: TemplatePairs,
    template: Option<TextTemplate>,
    /// Values stand between the quotes of JSON texts in the template.
    escapes: bool,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let rest: RestConfig = read(config)?;
    let client =
        RestCallClient::new(&rest, &config.services.external.rest, &node_egress(config)).map_err(wrong)?;
    let template = rest
        .request_body_template
        .filter(|template| !template.trim().is_empty());
    let query = rest.query_params.as_ref();
    let outside = RestApiCallNode {
        client: Arc::new(client),
        url: TextTemplate::new(&rest.rest_endpoint_url_pattern),
        query: query.map(|all| TemplatePairs::new(all.iter().map(|it| (it.key.as_str(), it.value.as_str())))),
        headers: TemplatePairs::of(&rest.headers),
        template: template.as_deref().map(TextTemplate::new),
        escapes: !rest.parse_to_plain_text,
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for RestApiCallNode {
    fn send(&self, _: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
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
