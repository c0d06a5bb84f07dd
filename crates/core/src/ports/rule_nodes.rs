//! Queries to the rule engine from the rest of the platform: the available nodes, the validity of chains, and test runs
//! of scripts.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fieldline_model::TenantId;
use fieldline_model::entity::calculated_field::CalculatedFieldLimits;
use fieldline_model::entity::{CalculatedField, ComponentDescriptor, RuleChainMetaData};
use serde_json::Value;

use super::FieldScriptTest;

/// The rule node classes of the engine.
pub trait RuleNodeCatalog: Send + Sync {
    /// All classes, in the order of the editor's palette.
    fn descriptors(&self) -> &[ComponentDescriptor];

    /// Checks whether a node of this class runs with this configuration, which has the shape of `version`; older shapes
    /// are accepted if [`RuleNodeCatalog::upgrade`] can update them.
    ///
    /// # Errors
    /// An unknown class, or the error in the configuration, with the name of the field.
    fn check(&self, class: &str, version: i32, configuration: &Value) -> Result<(), String>;

    /// Upgrades a configuration to the current shape of its class, and returns it with the version of that shape. A
    /// current configuration, or one of an unknown class, is returned unchanged.
    ///
    /// # Errors
    /// The configuration does not match its version.
    fn upgrade(&self, class: &str, version: i32, configuration: Value) -> Result<(i32, Value), String>;

    /// Checks whether the nodes of a chain run.
    ///
    /// # Errors
    /// The name of the first node that does not, and the reason.
    fn check_chain(&self, chain: &RuleChainMetaData) -> Result<(), String> {
        for node in &chain.nodes {
            self.check(&node.node_type, node.configuration_version, &node.configuration)
                .map_err(|error| format!("'{}' node configuration is invalid: {error}", node.name))?;
        }
        Ok(())
    }

    /// Checks whether a calculated field or alarm rule can be evaluated with these limits of its tenant. Its
    /// configuration has already been checked, except for the scripts.
    ///
    /// # Errors
    /// The error, with the name of the setting.
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

/// The use of a script, which decides what it must return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScriptUse {
    /// Transforms a message: `{msg, metadata, msgType}`, or an array of them.
    Update,
    /// Makes a message: `{msg, metadata, msgType}`.
    Generate,
    /// Passes or drops a message: a boolean.
    Filter,
    /// Selects labels: an array of texts.
    Switch,
    /// Creates details: any JSON.
    Json,
    /// Creates a text.
    String,
}

/// A script with a test message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptTest {
    /// The tenant whose limits apply.
    pub tenant: TenantId,
    /// Language of the script.
    pub language: ScriptLanguage,
    /// The use of the script.
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

/// The reason why a script test has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptTestError {
    /// An error of the script itself.
    #[error("{0}")]
    Script(String),
    /// The tenant runs too many tests at a time.
    #[error("{0}")]
    TooMany(String),
    /// There is no capacity now, or the program stops.
    #[error("{0}")]
    Unavailable(String),
}

/// Runs script tests. Dropping the future of a test ends it.
#[async_trait]
pub trait ScriptTester: Send + Sync {
    /// Runs the script once, within the usual limits of scripts, and returns its result: a text for
    /// [`ScriptUse::String`], JSON text for the others.
    ///
    /// # Errors
    /// The reason why the script cannot run, or a result that does not fit its use.
    async fn test(&self, request: ScriptTest) -> Result<String, ScriptTestError>;

    /// Runs the script of a calculated field once, within the usual limits of scripts, and returns its result.
    ///
    /// # Errors
    /// The reason why the script cannot run.
    async fn test_field(&self, request: FieldScriptTest) -> Result<Value, ScriptTestError>;
}

/// The catalog of a program without a rule engine: it has no classes, and accepts everything.
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

/// For programs without script engines.
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
