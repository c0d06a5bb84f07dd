//! "Log".

use std::sync::Arc;

use fieldline_script::{Host, Output, Script};
use serde_json::json;
use tracing::{Level, enabled, info};

use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, Step};
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
        let (tenant, node) = (ctx.tenant, ctx.node);
        let Some(script) = &self.script else {
            let (body, metadata) = (msg.data.to_text(), meta_json(&msg.meta));
            let text = format!("\nIncoming message:\n{body}\nIncoming metadata:\n{metadata}");
            info!(target: TARGET, %tenant, %node, "{text}");
            return Step::success(msg);
        };
        script::run(ctx, script, msg, Host::call, move |msg, output| match output {
            Output::Text(text) => {
                info!(target: TARGET, %tenant, %node, "{text}");
                Step::success(msg)
            }
            other => Step::fail(
                msg,
                format!(
                    "wrong result: expected a text, the script returned {}",
                    other.into_json()
                ),
            ),
        })
    }
}

/// What chains log, apart from what the engine logs.
const TARGET: &str = "fieldline::rule_chain_log";
