//! Answers the REST API's and business rules' questions about node types, and tries scripts out.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use fieldline_core::ports::{
    FieldScriptTest, RuleNodeCatalog, ScriptLanguage, ScriptTest, ScriptTestError, ScriptTester, ScriptUse,
};
use fieldline_model::TenantId;
use fieldline_model::entity::calculated_field::CalculatedFieldLimits;
use fieldline_model::entity::{
    CalculatedField, ComponentDescriptor, ComponentDescriptorId, ComponentScope, ConfigurationDescriptor,
    ConfigurationSchema, NodeDefinition, RuleChainMetaData, RuleNode,
};
use fieldline_script::{Script, ScriptArg, ScriptHost, ScriptLang};
use serde_json::Value;

use crate::bounds::CompileAllowance;
use crate::chain;
use crate::editor_forms::{self, EditorForm};
use crate::field_script_test::test_field_script;
use crate::node_types::{self, NodeType};
use crate::script_pool::{ScriptPool, ScriptRefusal};
use crate::services::NodeServices;

/// The node types of the engine. Business rules use this catalog and nodes use business rules, so the catalog is
/// created before the nodes' services.
pub struct NodeTypeCatalog {
    /// The engine's services, weakly, because they hold this catalog, too.
    services: OnceLock<Weak<NodeServices>>,
    descriptors: Vec<ComponentDescriptor>,
}

impl NodeTypeCatalog {
    /// A catalog of all node types; until it is bound, each check fails.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            services: OnceLock::new(),
            descriptors: node_types::all().map(describe).collect(),
        })
    }

    /// Sets the services with which nodes are made for a check; only the first call has an effect.
    pub fn bind(&self, services: &Arc<NodeServices>) {
        let _ = self.services.set(Arc::downgrade(services));
    }

    fn services(&self) -> Result<Arc<NodeServices>, String> {
        self.services
            .get()
            .and_then(Weak::upgrade)
            .ok_or_else(|| "The rule engine does not run!".to_owned())
    }
}

impl RuleNodeCatalog for NodeTypeCatalog {
    fn descriptors(&self) -> &[ComponentDescriptor] {
        &self.descriptors
    }

    fn check(&self, class: &str, version: i32, configuration: &Value) -> Result<(), String> {
        let node = RuleNode {
            node_type: class.to_owned(),
            configuration_version: version,
            configuration: configuration.clone(),
            ..RuleNode::default()
        };
        chain::make(
            &self.services()?,
            TenantId::NULL,
            &node,
            &CompileAllowance::default(),
        )
        .map(drop)
    }

    fn upgrade(&self, class: &str, version: i32, configuration: Value) -> Result<(i32, Value), String> {
        Ok(match node_types::find(class) {
            Some(node_type) if version < node_type.version => {
                (node_type.version, (node_type.upgrade)(version, configuration))
            }
            _ => (version, configuration),
        })
    }

    fn check_chain(&self, metadata: &RuleChainMetaData) -> Result<(), String> {
        chain::check(&self.services()?, metadata)
    }

    fn check_field(&self, field: &CalculatedField, limits: &CalculatedFieldLimits) -> Result<(), String> {
        fieldline_calculated_fields::check(field, limits).map_err(|error| error.to_string())
    }
}

fn describe(node: &NodeType) -> ComponentDescriptor {
    let class = format!("{}{}", node_types::PREFIX, node.class);
    let form = editor_forms::find(node.class);
    ComponentDescriptor {
        id: ComponentDescriptorId::of_class(&class),
        created_time: 0,
        component_type: node.category,
        scope: ComponentScope::Tenant,
        clustering_mode: node.clustering,
        name: node.name.to_owned(),
        configuration_descriptor: ConfigurationDescriptor {
            node_definition: NodeDefinition {
                details: node.description.to_owned(),
                description: node.description.to_owned(),
                in_enabled: node.has_input,
                out_enabled: node.has_output,
                relation_types: node.relations.iter().map(|&label| label.to_owned()).collect(),
                custom_relations: node.custom_relations,
                rule_chain_node: node.enters_chain,
                default_configuration: (node.default_configuration)(),
                configuration_schema: ConfigurationSchema::new(node.schema),
                config_directive: form.map_or_else(String::new, |form| form.directive.to_owned()),
                icon: form.map_or_else(String::new, |form| form.icon.to_owned()),
                doc_url: form.map_or_else(String::new, EditorForm::doc_url),
                ..NodeDefinition::default()
            },
        },
        configuration_version: node.version,
        actions: None,
        has_queue_name: node.has_queue,
        rule_chain_types: node.chain_types.to_vec(),
        class,
    }
}

/// Tries scripts out, on the threads and in the turn of their tenant.
pub struct ScriptTestRunner {
    pool: Arc<ScriptPool>,
}

impl ScriptTestRunner {
    /// A runner that has a pool run the scripts.
    pub const fn new(pool: Arc<ScriptPool>) -> Self {
        Self { pool }
    }

    async fn run<R: Send + 'static>(
        &self,
        tenant: TenantId,
        bytes: usize,
        test: impl FnOnce(&mut ScriptHost) -> Result<R, String> + Send + 'static,
    ) -> Result<R, ScriptTestError> {
        match self.pool.test(tenant, bytes, test).await {
            Ok(tested) => tested.map_err(ScriptTestError::Script),
            Err(refusal) if refusal.is_own_limit() => Err(ScriptTestError::TooMany(refusal.to_string())),
            Err(refusal @ (ScriptRefusal::Full { .. } | ScriptRefusal::Stopped)) => {
                Err(ScriptTestError::Unavailable(refusal.to_string()))
            }
            Err(refusal) => Err(ScriptTestError::Script(refusal.to_string())),
        }
    }
}

#[async_trait]
impl ScriptTester for ScriptTestRunner {
    async fn test(&self, request: ScriptTest) -> Result<String, ScriptTestError> {
        let metadata: usize = request
            .metadata
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let bytes = request.script.len() + request.msg.len() + metadata;
        let tenant = request.tenant;
        self.run(tenant, bytes, move |host| test(&request, host)).await
    }

    async fn test_field(&self, request: FieldScriptTest) -> Result<Value, ScriptTestError> {
        let arguments = request
            .arguments
            .values()
            .map(|value| value.to_string().len())
            .sum::<usize>();
        let bytes = request.expression.len() + arguments;
        let tenant = request.tenant;
        let work = move |host: &mut ScriptHost| test_field_script(&request, host);
        self.run(tenant, bytes, work).await
    }
}

fn test(request: &ScriptTest, host: &mut ScriptHost) -> Result<String, String> {
    let lang = match request.language {
        ScriptLanguage::Js => ScriptLang::JavaScript,
        ScriptLanguage::Tbel => ScriptLang::Tbel,
    };
    let params: Vec<&str> = request.arg_names.iter().map(String::as_str).collect();
    let script = Script::new(lang, &params, &request.script).map_err(|error| error.to_string())?;
    let metadata: Vec<(String, String)> = request
        .metadata
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let args = [
        ScriptArg::Json(&request.msg),
        ScriptArg::Map(&metadata),
        ScriptArg::Text(&request.msg_type),
    ];
    let output = host.call(&script, &args).map_err(|error| error.to_string());
    // The script is not called again.
    host.evict_script(script.id());
    let output = output?;
    let value = output.to_value();
    let wrong = |wanted: &str| {
        Err(format!(
            "Wrong result type: {} returned instead of {wanted}",
            kind_of(&value)
        ))
    };
    match request.script_use {
        ScriptUse::Filter if !value.is_boolean() => wrong("a boolean"),
        ScriptUse::Switch if !value.is_array() && !value.is_string() => wrong("a text or an array of texts"),
        ScriptUse::Update if !value.is_object() && !value.is_array() => {
            wrong("an object or an array of objects")
        }
        ScriptUse::Generate if !value.is_object() => wrong("an object"),
        ScriptUse::String => match value {
            Value::String(text) => Ok(text),
            _ => wrong("a text"),
        },
        _ => Ok(value.to_string()),
    }
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
