//! A few classes of rule nodes, and a script tester that echoes its request.

use async_trait::async_trait;
use fieldline_core::ports::{FieldScriptTest, RuleNodeCatalog, ScriptTest, ScriptTestError, ScriptTester};
use fieldline_model::entity::{
    ClusteringMode, ComponentDescriptor, ComponentDescriptorId, ComponentScope, ComponentType,
    ConfigurationDescriptor, NodeDefinition, RuleChainType,
};
use serde_json::{Value, json};

/// Has a filter in its second version, which needs `limit` instead of the `max` of the first one, and a generator that
/// runs on one server only and not on edges.
pub(crate) struct FewNodes(Vec<ComponentDescriptor>);

pub(crate) const FILTER: &str = "org.example.Filter";
pub(crate) const GENERATOR: &str = "org.example.Generator";

impl FewNodes {
    pub(crate) fn new() -> Self {
        let class = |class: &str, component_type, version| ComponentDescriptor {
            id: ComponentDescriptorId::of_class(class),
            created_time: 0,
            component_type,
            scope: ComponentScope::Tenant,
            clustering_mode: ClusteringMode::Enabled,
            name: class.rsplit('.').next().unwrap().to_lowercase(),
            class: class.to_owned(),
            configuration_descriptor: ConfigurationDescriptor {
                node_definition: NodeDefinition {
                    in_enabled: true,
                    relation_types: vec!["True".to_owned(), "False".to_owned()],
                    default_configuration: json!({ "limit": 1 }),
                    ..NodeDefinition::default()
                },
            },
            configuration_version: version,
            actions: None,
            has_queue_name: false,
            rule_chain_types: vec![RuleChainType::Core],
        };
        let filter = ComponentDescriptor {
            rule_chain_types: vec![RuleChainType::Core, RuleChainType::Edge],
            ..class(FILTER, ComponentType::Filter, 1)
        };
        let generator = ComponentDescriptor {
            clustering_mode: ClusteringMode::Singleton,
            ..class(GENERATOR, ComponentType::Action, 0)
        };
        Self(vec![filter, generator])
    }
}

impl RuleNodeCatalog for FewNodes {
    fn descriptors(&self) -> &[ComponentDescriptor] {
        &self.0
    }

    fn check(&self, class: &str, version: i32, configuration: &Value) -> Result<(), String> {
        if class == "org.example.Unknown" {
            return Err(format!("rule node {class} is not supported!"));
        }
        if class == FILTER && (version != 1 || !configuration["limit"].is_number()) {
            return Err("field 'limit' must be a number!".to_owned());
        }
        Ok(())
    }

    fn upgrade(&self, class: &str, version: i32, mut configuration: Value) -> Result<(i32, Value), String> {
        if class != FILTER || version > 0 {
            return Ok((version, configuration));
        }
        let fields = configuration
            .as_object_mut()
            .ok_or("configuration must be an object!")?;
        if let Some(max) = fields.remove("max") {
            fields.insert("limit".to_owned(), max);
        }
        Ok((1, configuration))
    }
}

/// The script tester; see the module.
pub(crate) struct EchoScriptTester;

#[async_trait]
impl ScriptTester for EchoScriptTester {
    async fn test(&self, request: ScriptTest) -> Result<String, ScriptTestError> {
        match request.script.as_str() {
            "" => return Err(ScriptTestError::Script("nothing to run".to_owned())),
            "too many" => return Err(ScriptTestError::TooMany("one at a time".to_owned())),
            "no room" => return Err(ScriptTestError::Unavailable("later".to_owned())),
            _ => {}
        }
        Ok(format!(
            "{:?} {:?} {} {:?} {} {:?} {}",
            request.language,
            request.script_use,
            request.script,
            request.arg_names,
            request.msg,
            request.metadata,
            request.msg_type
        ))
    }

    async fn test_field(&self, request: FieldScriptTest) -> Result<Value, ScriptTestError> {
        Ok(json!(format!("{request:?}")))
    }
}
