//! "Log".

use std::sync::Arc;

use fieldline_script::{Script, ScriptHost, ScriptOutput};
use serde_json::json;
use tracing::{Level, enabled, info};

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::script;
use crate::nodes::script::{ScriptConfig, ScriptSource};
use crate::nodes::text_template::meta_json;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "action.TbLogNode",
    name: "log",
    description: "Logs incoming messages using a script that makes a text of them.",
    default_configuration: || json!({ "scriptLang": "TBEL", "jsScript": STANDARD, "tbelScript": STANDARD }),
    schema: config_schema::of::<ScriptConfig>,
    make,
    ..NodeType::ACTION
}];

const STANDARD: &str = "return '\\nIncoming message:\\n' + JSON.stringify(msg) + \
    '\\nIncoming metadata:\\n' + JSON.stringify(metadata);";

struct LogNode {
    /// `None` for the standard one, whose result is known.
    script: Option<Script>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let source = ScriptSource::read::<ScriptConfig>(config)?;
    let is_standard = source.text() == STANDARD;
    let script = source.compile(script::PARAMS)?;
    Ok(Arc::new(LogNode {
        script: (!is_standard).then_some(script),
    }))
}

impl Node for LogNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        if !enabled!(target: TARGET, Level::INFO) {
            return NodeResult::success(msg);
        }
        let (tenant, node) = (ctx.tenant, ctx.node);
        let Some(script) = &self.script else {
            let (body, metadata) = (msg.data.to_text(), meta_json(&msg.meta));
            let text = format!("\nIncoming message:\n{body}\nIncoming metadata:\n{metadata}");
            info!(target: TARGET, %tenant, %node, "{text}");
            return NodeResult::success(msg);
        };
        script::run(
            ctx,
            script,
            msg,
            ScriptHost::call,
            move |msg, output| match output {
                ScriptOutput::Text(text) => {
                    info!(target: TARGET, %tenant, %node, "{text}");
                    NodeResult::success(msg)
                }
                other => NodeResult::fail(
                    msg,
                    format!(
                        "wrong result: expected a text, the script returned {}",
                        other.into_json()
                    ),
                ),
            },
        )
    }
}

/// What chains log, apart from what the engine logs.
const TARGET: &str = "fieldline::rule_chain_log";
