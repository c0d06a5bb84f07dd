//! "Log".

use std::sync::Arc;

use fieldline_script::{Output, Script};
use serde_json::json;
use tracing::{Level, enabled, info};

use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError, Step};
use crate::nodes::pattern::meta_json;
use crate::nodes::script;
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Logs incoming messages using a script that makes a text of them.",
    default_configuration: || json!({ "scriptLang": "TBEL", "jsScript": STANDARD, "tbelScript": STANDARD }),
    ..NodeType::new("action.TbLogNode", "log", ComponentType::Action, make)
}];

const STANDARD: &str = "return '\\nIncoming message:\\n' + JSON.stringify(msg) + \
    '\\nIncoming metadata:\\n' + JSON.stringify(metadata);";

struct Log {
    /// `None` for the standard one, whose result is known.
    script: Option<Script>,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let text = |field| config.value.get(field).and_then(serde_json::Value::as_str);
    let is_tbel = text("scriptLang") == Some("TBEL");
    let is_standard = text(if is_tbel { "tbelScript" } else { "jsScript" }) == Some(STANDARD);
    let script = script::compile(config, "jsScript", "tbelScript", script::PARAMS)?;
    Ok(Arc::new(Log {
        script: (!is_standard).then_some(script),
    }))
}

impl Node for Log {
    fn handle(&self, ctx: &mut Ctx<'_>, msg: Msg) -> Step {
        if !enabled!(target: TARGET, Level::INFO) {
            return Step::success(msg);
        }
        let text = match &self.script {
            None => Ok(format!(
                "\nIncoming message:\n{}\nIncoming metadata:\n{}",
                msg.data.to_text(),
                meta_json(&msg.meta)
            )),
            Some(script) => script::call(ctx, script, &msg).and_then(|output| match output {
                Output::Text(text) => Ok(text),
                other => Err(NodeError::new(format!(
                    "wrong result: expected a text, the script returned {}",
                    other.into_json()
                ))),
            }),
        };
        match text {
            Ok(text) => {
                info!(target: TARGET, tenant = %ctx.tenant, node = %ctx.node, "{text}");
                Step::success(msg)
            }
            Err(error) => Step::Fail(msg, error),
        }
    }
}

/// What chains log, apart from what the engine logs.
const TARGET: &str = "fieldline::rule_chain_log";
