//! What the rest of the platform asks the rule engine: which nodes there are, whether a chain can run, and what a script
//! does.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fieldline_model::TenantId;
use fieldline_model::entity::calculated_field::CalculatedFieldLimits;
use fieldline_model::entity::{CalculatedField, ComponentDescriptor, RuleChainMetaData};
use serde_json::Value;

use super::FieldScriptTest;

/// The classes of rule nodes that the engine has.
pub trait RuleNodeCatalog: Send + Sync {
    /// All classes, in the order of the editor's palette.
    fn descriptors(&self) -> &[ComponentDescriptor];

    /// Whether a node of this class runs with this configuration, which has the shape of `version`; older shapes that
    /// [`RuleNodeCatalog::upgrade`] can bring up to date are fine.
    ///
    /// # Errors
    /// An unknown class, or what is wrong with the configuration, with the name of the field.
    fn check(&self, class: &str, version: i32, configuration: &Value) -> Result<(), String>;

    /// The configuration in the current shape of its class, with the version of that shape. What is current, or of an
    /// unknown class, comes back as it is.
    ///
    /// # Errors
    /// The configuration is not what its version says it is.
    fn upgrade(&self, class: &str, version: i32, configuration: Value) -> Result<(i32, Value), String>;

    /// Whether the nodes of a chain run.
    ///
    /// # Errors
    /// The first node that does not, by its name, and why.
    fn check_chain(&self, chain: &RuleChainMetaData) -> Result<(), String> {
        for node in &chain.nodes {
            self.check(&node.node_type, node.configuration_version, &node.configuration)
                .map_err(|error| format!("'{}' node configuration is invalid: {error}", node.name))?;
        }
        Ok(())
    }

    /// Whether a calculated field, alarm rules included, can be evaluated with these limits of its tenant. Its
    /// configuration has been checked as far as that goes without the scripts.
    ///
    /// # Errors
    /// What is wrong with it, with the name of the setting.
    fn check_field(&self, _: &CalculatedField, _: &CalculatedFieldLimits) -> Result<(), String> {
        Ok(())
    }

    /// The class of that name.
    fn descriptor(&self, class: &str) -> Option<&ComponentDescriptor> {
        self.descriptors()
            .iter()
            .find(|descriptor| descriptor.class == class)
    }
}

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScriptLanguage {
    /// JavaScript.
    Js,
    /// ThingsBoard expression language.
    Tbel,
}

/// What a script is used for, which decides what it must return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScriptUse {
    /// Transforms a message: `{msg, metadata, msgType}`, or an array of them.
    Update,
    /// Makes a message: `{msg, metadata, msgType}`.
    Generate,
    /// Lets a message pass or not: a boolean.
    Filter,
    /// Chooses labels: an array of texts.
    Switch,
    /// Makes details: any JSON.
    Json,
    /// Makes a text.
    String,
}

/// A script and the message it is tried on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptTest {
    /// Whose limits count.
    pub tenant: TenantId,
    /// Language of the script.
    pub language: ScriptLanguage,
    /// What the script is used for.
    pub script_use: ScriptUse,
    /// Body of the function.
    pub script: String,
    /// Names of its arguments: message, metadata, type.
    pub arg_names: Vec<String>,
    /// Body of the message, JSON text.
    pub msg: String,
    /// Metadata of the message.
    pub metadata: BTreeMap<String, String>,
    /// Type of the message.
    pub msg_type: String,
}

/// Why a script that is tried out has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptTestError {
    /// It is the script's own fault.
    #[error("{0}")]
    Script(String),
    /// The tenant tries out too much at a time.
    #[error("{0}")]
    TooMany(String),
    /// There is no room for it now, or the program stops.
    #[error("{0}")]
    Unavailable(String),
}

/// Tries scripts out. A test is ended when its future is dropped.
#[async_trait]
pub trait ScriptTester: Send + Sync {
    /// Runs the script once, within the limits of any script, and returns what it returned: a text for
    /// [`ScriptUse::String`], JSON text for the others.
    ///
    /// # Errors
    /// Why the script cannot be run or returns something else than its use asks for.
    async fn test(&self, request: ScriptTest) -> Result<String, ScriptTestError>;

    /// Runs the script of a calculated field once, within the limits of any script, and returns what it returned.
    ///
    /// # Errors
    /// Why the script cannot be run.
    async fn test_field(&self, request: FieldScriptTest) -> Result<Value, ScriptTestError>;
}

/// A catalog of a program without a rule engine: it knows no class, and lets everything pass.
pub struct NoRuleNodes;

impl RuleNodeCatalog for NoRuleNodes {
    fn descriptors(&self) -> &[ComponentDescriptor] {
        &[]
    }

    fn check(&self, _: &str, _: i32, _: &Value) -> Result<(), String> {
        Ok(())
    }

    fn upgrade(&self, _: &str, version: i32, configuration: Value) -> Result<(i32, Value), String> {
        Ok((version, configuration))
    }
}

/// Of a program without script engines.
pub struct NoScriptTester;

#[async_trait]
impl ScriptTester for NoScriptTester {
    async fn test(&self, _: ScriptTest) -> Result<String, ScriptTestError> {
        Err(ScriptTestError::Script("Script engines are disabled!".to_owned()))
    }

    async fn test_field(&self, _: FieldScriptTest) -> Result<Value, ScriptTestError> {
        Err(ScriptTestError::Script("Script engines are disabled!".to_owned()))
    }
}
