//! "AWS SQS", "AWS SNS" and "AWS Lambda".

use std::sync::Arc;

use fieldline_connectors::aws::{
    LambdaClient, LambdaConfig, SnsClient, SnsConfig, SqsClient, SqsConfig, SqsMessage,
};
use serde_json::json;

use super::outside::{External, Outside, Sending, body, endpoint, read, way_out, wrong};
use super::pairs::Pairs;
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError};
use crate::nodes::pattern::Pattern;
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        description: "Publishes messages to AWS SQS.",
        default_configuration: || {
            json!({
                "queueType": "STANDARD",
                "queueUrlPattern": "https://sqs.us-east-1.amazonaws.com/123456789012/my-queue-name", "delaySeconds": 0,
                "messageAttributes": {}, "accessKeyId": null, "secretAccessKey": null, "region": "us-east-1",
            })
        },
        ..NodeType::new("aws.sqs.TbSqsNode", "aws sqs", ComponentType::External, make_sqs)
    },
    NodeType {
        description: "Publishes messages to AWS SNS.",
        default_configuration: || {
            json!({
                "topicArnPattern": "arn:aws:sns:us-east-1:123456789012:MyNewTopic", "accessKeyId": null,
                "secretAccessKey": null, "region": "us-east-1",
            })
        },
        ..NodeType::new("aws.sns.TbSnsNode", "aws sns", ComponentType::External, make_sns)
    },
    NodeType {
        description: "Calls a function of AWS Lambda with messages.",
        default_configuration: || {
            json!({
                "accessKey": null, "secretKey": null, "region": "us-east-1", "functionName": null,
                "qualifier": "$LATEST", "connectionTimeout": 10, "requestTimeout": 5,
                "tellFailureIfFuncThrowsExc": false,
            })
        },
        ..NodeType::new(
            "aws.lambda.TbAwsLambdaNode",
            "aws lambda",
            ComponentType::External,
            make_lambda,
        )
    },
];

struct Sqs {
    client: Arc<SqsClient>,
    queue: Pattern,
    attributes: Pairs,
}

fn make_sqs(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let sqs: SqsConfig = read(config)?;
    let outside = Sqs {
        client: Arc::new(SqsClient::new(&sqs, &way_out(config)).map_err(wrong)?),
        queue: Pattern::new(&sqs.queue_url_pattern),
        attributes: Pairs::of(&sqs.message_attributes),
    };
    Ok(External::node(config, false, outside))
}

impl Outside for Sqs {
    fn send(&self, _: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
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

struct Sns {
    client: Arc<SnsClient>,
    topic: Pattern,
}

fn make_sns(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let sns: SnsConfig = read(config)?;
    let outside = Sns {
        client: Arc::new(SnsClient::with_endpoint(&sns, endpoint(config), &way_out(config)).map_err(wrong)?),
        topic: Pattern::new(&sns.topic_arn_pattern),
    };
    Ok(External::node(config, false, outside))
}

impl Outside for Sns {
    fn send(&self, _: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        let topic = self.topic.resolve(msg)?.into_owned();
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move { client.send(&topic, &body).await }))
    }
}

struct Lambda {
    client: Arc<LambdaClient>,
    function: Pattern,
    qualifier: Pattern,
}

fn make_lambda(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let lambda: LambdaConfig = read(config)?;
    let outside = Lambda {
        client: Arc::new(
            LambdaClient::with_endpoint(&lambda, endpoint(config), &way_out(config)).map_err(wrong)?,
        ),
        function: Pattern::new(&lambda.function_name),
        qualifier: Pattern::new(&lambda.qualifier),
    };
    Ok(External::node(config, false, outside))
}

impl Outside for Lambda {
    fn send(&self, _: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        let function = self.function.resolve(msg)?.into_owned();
        let qualifier = self.qualifier.resolve(msg)?.into_owned();
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move {
            client.send(&function, &qualifier, &body).await
        }))
    }
}
