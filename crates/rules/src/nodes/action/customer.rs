//! "Assign to customer" and "unassign from customer".

use std::sync::Arc;

use fieldline_model::entity::{Asset, EntityView};
use fieldline_model::{AssetId, CustomerId, DeviceId, EntityType, EntityViewId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::target::EntityTarget;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "action.TbAssignToCustomerNode",
        name: "assign to customer",
        description: "Assigns the message originator to a customer.",
        version: 1,
        default_configuration: || json!({ "customerNamePattern": "", "createCustomerIfNotExists": false }),
        upgrade,
        schema: config_schema::of::<Config>,
        make: make_assign,
        ..NodeType::ACTION
    },
    NodeType {
        class: "action.TbUnassignFromCustomerNode",
        name: "unassign from customer",
        description: "Unassigns the message originator from its customer.",
        version: 1,
        default_configuration: || json!({ "customerNamePattern": "" }),
        upgrade,
        schema: config_schema::of::<UnassignConfig>,
        make: make_unassign,
        ..NodeType::ACTION
    },
];

const TYPES: [EntityType; 5] = [
    EntityType::Asset,
    EntityType::Device,
    EntityType::EntityView,
    EntityType::Dashboard,
    EntityType::Edge,
];

fn upgrade(from: i32, mut configuration: Value) -> Value {
    if from < 1
        && let Some(fields) = configuration.as_object_mut()
    {
        fields.remove("customerCacheExpiration");
    }
    configuration
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default = "nothing")]
    #[schemars(title = "Customer")]
    customer_name_pattern: TextTemplate,
    #[serde(default)]
    #[schemars(title = "Create the customer if it does not exist")]
    create_customer_if_not_exists: bool,
}

fn nothing() -> TextTemplate {
    TextTemplate::new("")
}

fn check_type(msg: &RuleMessage) -> Result<(), NodeError> {
    let found = msg.originator.entity_type;
    if TYPES.contains(&found) {
        return Ok(());
    }
    let names = TYPES.map(EntityType::name).join(", ");
    Err(NodeError::new(format!(
        "Unsupported originator type '{}'! Only {names} types are allowed.",
        found.name()
    )))
}

/// Gives the originator of a message to a customer; the null one stands for none.
async fn assign(
    services: &Arc<NodeServices>,
    msg: &RuleMessage,
    customer: CustomerId,
) -> Result<(), NodeError> {
    let (tenant, id) = (msg.tenant, msg.originator.id);
    let rules = &services.rules;
    match msg.originator.entity_type {
        EntityType::Device => {
            rules.devices.assign(tenant, DeviceId(id), customer).await?;
        }
        EntityType::Asset => {
            rules
                .assignables::<Asset>()
                .assign(tenant, AssetId(id), customer)
                .await?;
        }
        EntityType::EntityView => {
            let views = rules.assignables::<EntityView>();
            views.assign(tenant, EntityViewId(id), customer).await?;
        }
        other => {
            let kind = other.name();
            return Err(NodeError::new(format!("{kind} with id '{id}' doesn't exist!")));
        }
    }
    Ok(())
}

struct AssignToCustomerNode {
    title: TextTemplate,
    create: bool,
}

fn make_assign(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    Ok(Arc::new(AssignToCustomerNode {
        title: config.customer_name_pattern,
        create: config.create_customer_if_not_exists,
    }))
}

impl Node for AssignToCustomerNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let title = match check_type(&msg).and_then(|()| Ok(self.title.resolve(&mut msg)?.into_owned())) {
            Ok(title) => title,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let target = EntityTarget {
            entity_type: EntityType::Customer,
            name: title,
            profile: String::new(),
            create: self.create,
        };
        let (services, node) = (Arc::clone(ctx.services), ctx.node);
        NodeResult::wait(async move {
            let assigned = async {
                let customer = target.find(&services, node, &msg).await?;
                assign(&services, &msg, CustomerId(customer.id)).await
            };
            let done = assigned.await;
            NodeResult::after(msg, done)
        })
    }
}

struct UnassignFromCustomerNode;

/// The name is of no use any more; what is not of its kind is refused all the same.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UnassignConfig {
    #[serde(rename = "customerNamePattern", default = "nothing")]
    #[schemars(title = "Customer")]
    _customer: TextTemplate,
}

fn make_unassign(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    config.parse::<UnassignConfig>()?;
    Ok(Arc::new(UnassignFromCustomerNode))
}

impl Node for UnassignFromCustomerNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        if let Err(error) = check_type(&msg) {
            return NodeResult::Fail(msg, error);
        }
        let services = Arc::clone(ctx.services);
        NodeResult::wait(async move {
            let done = assign(&services, &msg, CustomerId::NULL).await;
            NodeResult::after(msg, done)
        })
    }
}
