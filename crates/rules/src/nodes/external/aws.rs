//! "AWS SQS", "AWS SNS" and "AWS Lambda".

use std::sync::Arc;

use fieldline_connectors::aws::{
    LambdaClient, LambdaConfig, SnsClient, SnsConfig, SqsClient, SqsConfig, SqsMessage,
};
use serde_json::json;

use super::external_node::{
    ExternalNode, OutboundSender, SendFuture, body, endpoint, node_egress, read, wrong,
};
use super::pairs::TemplatePairs;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "aws.sqs.TbSqsNode",
        name: "aws sqs",
        description: "Publishes messages to AWS SQS.",
        default_configuration: || {
            json!({
                "queueType": "STANDARD",
                "queueUrlPattern": "https://sqs.us-east-1.amazonaws.com/123456789012/my-queue-name", "delaySeconds": 0,
                "messageAttributes": {}, "accessKeyId": null, "secretAccessKey": null, "region": "us-east-1",
            })
        },
        schema: config_schema::of_connector::<SqsConfig>,
        make: make_sqs,
        ..NodeType::EXTERNAL
    },
    NodeType {
        class: "aws.sns.TbSnsNode",
        name: "aws sns",
        description: "Publishes messages to AWS SNS.",
        default_configuration: || {
            json!({
                "topicArnPattern": "arn:aws:sns:us-east-1:123456789012:MyNewTopic", "accessKeyId": null,
                "secretAccessKey": null, "region": "us-east-1",
            })
        },
        schema: config_schema::of_connector::<SnsConfig>,
        make: make_sns,
        ..NodeType::EXTERNAL
    },
    NodeType {
        class: "aws.lambda.TbAwsLambdaNode",
        name: "aws lambda",
        description: "Calls a function of AWS Lambda with messages.",
        default_configuration: || {
            json!({
                "accessKey": null, "secretKey": null, "region": "us-east-1", "functionName": null,
                "qualifier": "$LATEST", "connectionTimeout": 10, "requestTimeout": 5,
                "tellFailureIfFuncThrowsExc": false,
            })
        },
        schema: config_schema::of_connector::<LambdaConfig>,
        make: make_lambda,
        ..NodeType::EXTERNAL
    },
];

struct SqsNode {
    client: Arc<SqsClient>,
    queue: TextTemplate,
    attributes: TemplatePairs,
}

fn make_sqs(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let sqs: SqsConfig = read(config)?;
    let outside = SqsNode {
        client: Arc::new(SqsClient::new(&sqs, &node_egress(config)).map_err(wrong)?),
        queue: TextTemplate::new(&sqs.queue_url_pattern),
        attributes: TemplatePairs::of(&sqs.message_attributes),
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for SqsNode {
    fn send(&self, _: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let queue = self.queue.resolve(msg)?.into_owned();
        let attributes = self.attributes.resolve(msg)?;
        let (client, body) = (Arc::clone(&self.client), body(msg));
        let (id, originator) = (msg.id.to_string(), msg.originator.id.to_string());
        Ok(Box::pin(async move {
            let message = SqsMessage {
                queue_url: &queue,
                body: &body,
                attributes: &attributes,
                deduplication_id: &id,
                group_id: &originator,
            };
            client.send(&message).await
        }))
    }
}

struct SnsNode {
    client: Arc<SnsClient>,
    topic: TextTemplate,
}

fn make_sns(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let sns: SnsConfig = read(config)?;
    let outside = SnsNode {
        client: Arc::new(
            SnsClient::with_endpoint(&sns, endpoint(config), &node_egress(config)).map_err(wrong)?,
        ),
        topic: TextTemplate::new(&sns.topic_arn_pattern),
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for SnsNode {
    fn send(&self, _: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let topic = self.topic.resolve(msg)?.into_owned();
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move { client.send(&topic, &body).await }))
    }
}

struct AwsLambdaNode {
    client: Arc<LambdaClient>,
    function: TextTemplate,
    qualifier: TextTemplate,
}

fn make_lambda(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let lambda: LambdaConfig = read(config)?;
    let outside = AwsLambdaNode {
        client: Arc::new(
            LambdaClient::with_endpoint(&lambda, endpoint(config), &node_egress(config)).map_err(wrong)?,
        ),
        function: TextTemplate::new(&lambda.function_name),
        qualifier: TextTemplate::new(&lambda.qualifier),
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for AwsLambdaNode {
    fn send(&self, _: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let function = self.function.resolve(msg)?.into_owned();
        let qualifier = self.qualifier.resolve(msg)?.into_owned();
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move {
            client.send(&function, &qualifier, &body).await
        }))
    }
}
