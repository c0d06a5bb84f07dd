//! An e-mail made of a message.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldline_model::message::{DataType, MsgType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config_schema;
use crate::message::{MessageBody, RuleMessage};
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "mail.TbMsgToEmailNode",
    name: "to email",
    description: "Makes an e-mail of a message, for a node that sends it.",
    default_configuration: || {
        json!({
            "fromTemplate": "info@example.com",
            "toTemplate": "${userEmail}",
            "ccTemplate": null,
            "bccTemplate": null,
            "subjectTemplate": "Temperature of ${deviceType} is high",
            "bodyTemplate": "${deviceName} has a temperature of $[temperature]",
            "isHtmlTemplate": null,
            "mailBodyType": "false",
        })
    },
    schema: config_schema::of::<MsgToEmailNode>,
    make,
    ..NodeType::TRANSFORMATION
}];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct MsgToEmailNode {
    #[schemars(title = "From")]
    from_template: TextTemplate,
    #[schemars(title = "To")]
    to_template: TextTemplate,
    #[schemars(title = "Cc")]
    cc_template: TextTemplate,
    #[schemars(title = "Bcc")]
    bcc_template: TextTemplate,
    #[schemars(title = "Subject")]
    subject_template: TextTemplate,
    #[schemars(title = "Body")]
    body_template: TextTemplate,
    #[schemars(title = "Whether the body is HTML")]
    is_html_template: TextTemplate,
    #[schemars(title = "Kind of body", extend("enum" = ["false", "true", "dynamic", null]))]
    mail_body_type: Option<String>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(config.parse::<MsgToEmailNode>()?))
}

impl Node for MsgToEmailNode {
    fn handle(&self, _: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        match self.email(&mut msg) {
            Ok(email) => {
                msg.kind = MsgType::SendEmail;
                msg.data = MessageBody::json(email);
                msg.data_type = DataType::Json;
                NodeResult::success(msg)
            }
            Err(error) => NodeResult::Fail(msg, error),
        }
    }
}

impl MsgToEmailNode {
    fn email(&self, msg: &mut RuleMessage) -> Result<Value, NodeError> {
        let mut text = |template: &TextTemplate| -> Result<Option<String>, NodeError> {
            if template.text().is_empty() {
                return Ok(None);
            }
            Ok(Some(template.resolve(msg)?.into_owned()))
        };
        let html = match self.mail_body_type.as_deref() {
            Some("dynamic") => text(&self.is_html_template)?,
            other => other.map(str::to_owned),
        };
        let (from, to) = (text(&self.from_template)?, text(&self.to_template)?);
        let (cc, bcc) = (text(&self.cc_template)?, text(&self.bcc_template)?);
        let (subject, body) = (text(&self.subject_template)?, text(&self.body_template)?);
        let images = match msg.meta.get("images").filter(|images| !images.is_empty()) {
            Some(images) => {
                let images: Result<BTreeMap<String, String>, _> = serde_json::from_str(&images);
                Some(
                    images
                        .map_err(|error| NodeError::new(format!("wrong images in the metadata: {error}")))?,
                )
            }
            None => None,
        };
        Ok(json!({
            "from": from,
            "to": to,
            "cc": cc,
            "bcc": bcc,
            "subject": subject,
            "body": body,
            "images": images,
            "html": html.is_some_and(|html| html.eq_ignore_ascii_case("true")),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::tests::{World, nobody};

    const CLASS: &str = "mail.TbMsgToEmailNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn templates_become_an_email() {
        let mut world = World::new().await;
        let metadata = || {
            [
                ("deviceName", "d"),
                ("deviceType", "t"),
                ("userEmail", "u@x"),
                ("rich", "TRUE"),
            ]
        };
        let email = |cc: Value, images: Value, html: bool| {
            json!({
                "from": "info@example.com", "to": "u@x", "cc": cc, "bcc": null, "subject": "Temperature of t is high",
                "body": "d has a temperature of 20.5", "images": images, "html": html,
            })
        };
        for (patch, images, expected) in [
            (json!({}), None, email(json!(null), json!(null), false)),
            (
                json!({"mailBodyType": "true", "ccTemplate": "c@x"}),
                None,
                email(json!("c@x"), json!(null), true),
            ),
            (
                json!({"mailBodyType": "dynamic", "isHtmlTemplate": "${rich}"}),
                None,
                email(json!(null), json!(null), true),
            ),
            (
                json!({"mailBodyType": null}),
                Some(r#"{"a":"b"}"#),
                email(json!(null), json!({"a": "b"}), false),
            ),
        ] {
            let node = world.node(CLASS, patch);
            let mut msg = world.msg_with(
                MsgType::Alarm,
                nobody(),
                &json!({"temperature": 20.5}),
                metadata().into_iter().collect(),
            );
            if let Some(images) = images {
                msg.meta.set("images", images);
            }
            let out = world.one(&node, msg).await;
            assert_eq!((out.body(), out.msg.kind), (expected, MsgType::SendEmail));
        }
        let node = world.node(CLASS, json!({}));
        let mut msg = world.msg(MsgType::Alarm, nobody(), &json!({}));
        msg.meta.set("images", "[]");
        assert_eq!(world.one(&node, msg).await.label, "Failure");
        assert_eq!(world.wrong(CLASS, json!({"toTemplate": 5})), "toTemplate");
    }
}
