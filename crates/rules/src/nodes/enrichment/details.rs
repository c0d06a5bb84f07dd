//! How to reach the customer or the tenant of the originator.

use std::sync::Arc;

use fieldline_model::entity::Contact;
use fieldline_model::{EntityKey, EntityType, TenantId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::entities;
use crate::nodes::message_part::{MessagePart, required, upgrade_flag};
use crate::nodes::text::plain;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "metadata.TbGetCustomerDetailsNode",
        name: "customer details",
        description: "Adds the address and other details of the originator's customer.",
        version: 1,
        upgrade,
        default_configuration: defaults,
        schema: config_schema::of::<Config>,
        make: |config| make(config, DetailsOwner::Customer),
        ..NodeType::ENRICHMENT
    },
    NodeType {
        class: "metadata.TbGetTenantDetailsNode",
        name: "tenant details",
        description: "Adds the address and other details of the tenant.",
        version: 1,
        upgrade,
        default_configuration: defaults,
        schema: config_schema::of::<Config>,
        make: |config| make(config, DetailsOwner::Tenant),
        ..NodeType::ENRICHMENT
    },
];

fn defaults() -> Value {
    json!({"fetchTo": "DATA", "detailsList": []})
}

fn upgrade(from_version: i32, mut configuration: Value) -> Value {
    if from_version == 0 {
        upgrade_flag(
            &mut configuration,
            "addToMetadata",
            "fetchTo",
            MessagePart::Metadata,
        );
    }
    configuration
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum ContactDetail {
    Id,
    Title,
    Country,
    City,
    State,
    Zip,
    Address,
    Address2,
    Phone,
    Email,
    AdditionalInfo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DetailsOwner {
    Customer,
    Tenant,
}

struct GetEntityDetailsNode {
    fetch_to: MessagePart,
    details: Arc<[ContactDetail]>,
    whose: DetailsOwner,
}

/// Whom the details are about.
struct ContactRecord {
    id: Uuid,
    title: String,
    contact: Contact,
    info: Option<Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(title = "Add to")]
    fetch_to: Option<MessagePart>,
    #[schemars(title = "Details")]
    details_list: Option<Vec<ContactDetail>>,
}

fn make(config: &NodeInitContext<'_>, whose: DetailsOwner) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let details = config.details_list.unwrap_or_default();
    if details.is_empty() {
        return Err(NodeConfigError::new(
            "detailsList",
            "at least one detail is needed",
        ));
    }
    Ok(Arc::new(GetEntityDetailsNode {
        fetch_to: required(config.fetch_to, "fetchTo")?,
        details: details.into(),
        whose,
    }))
}

impl Node for GetEntityDetailsNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        if let Err(error) = self.fetch_to.check(&mut msg) {
            return NodeResult::Fail(msg, error);
        }
        let services = Arc::clone(ctx.services);
        let (fetch_to, details, whose) = (self.fetch_to, Arc::clone(&self.details), self.whose);
        NodeResult::wait(async move {
            let (prefix, party) = match whose {
                DetailsOwner::Customer => ("customer_", customer(&services, msg.subject()).await),
                DetailsOwner::Tenant => ("tenant_", tenant(&services, msg.tenant).await),
            };
            // There is nothing to be added about somebody who is gone.
            let party = match party {
                Ok(Some(party)) => party,
                Ok(None) => return NodeResult::success(msg),
                Err(error) => return NodeResult::Fail(msg, error),
            };
            for detail in details.iter() {
                let (name, value) = party.detail(*detail);
                if let Some(value) = value
                    && let Err(error) =
                        fetch_to.put_json(&mut msg, &format!("{prefix}{name}"), Value::from(value))
                {
                    return NodeResult::Fail(msg, error);
                }
            }
            NodeResult::success(msg)
        })
    }
}

impl ContactRecord {
    fn detail(&self, detail: ContactDetail) -> (&'static str, Option<String>) {
        let contact = &self.contact;
        match detail {
            ContactDetail::Id => ("id", Some(self.id.to_string())),
            ContactDetail::Title => ("title", Some(self.title.clone())),
            ContactDetail::Country => ("country", contact.country.clone()),
            ContactDetail::City => ("city", contact.city.clone()),
            ContactDetail::State => ("state", contact.state.clone()),
            ContactDetail::Zip => ("zip", contact.zip.clone()),
            ContactDetail::Address => ("address", contact.address.clone()),
            ContactDetail::Address2 => ("address2", contact.address2.clone()),
            ContactDetail::Phone => ("phone", contact.phone.clone()),
            ContactDetail::Email => ("email", contact.email.clone()),
            ContactDetail::AdditionalInfo => {
                let text = self.info.as_ref().and_then(|info| info.get("description"));
                ("additionalInfo", text.filter(|text| !text.is_null()).map(plain))
            }
        }
    }
}

async fn customer(
    services: &Arc<NodeServices>,
    originator: EntityKey,
) -> Result<Option<ContactRecord>, NodeError> {
    let kind = originator.entity.entity_type;
    if !matches!(
        kind,
        EntityType::Device | EntityType::Asset | EntityType::EntityView | EntityType::User
    ) {
        return Err(NodeError::new(format!(
            "entities of type {kind} are not supported"
        )));
    }
    let Some(owner) = entities::owner(services, originator).await? else {
        return Ok(None);
    };
    let id = owner.customer.ok_or_else(|| {
        NodeError::new(format!(
            "{} with name '{}' is not assigned to a customer",
            kind.label(),
            owner.name
        ))
    })?;
    let customer = services.stores.customers.get(originator.tenant, id).await?;
    Ok(customer.map(|customer| ContactRecord {
        id: id.0,
        title: customer.title,
        contact: customer.contact,
        info: customer.additional_info,
    }))
}

async fn tenant(services: &Arc<NodeServices>, id: TenantId) -> Result<Option<ContactRecord>, NodeError> {
    let tenant = services.stores.tenants.get(id).await?;
    Ok(tenant.map(|tenant| ContactRecord {
        id: id.0,
        title: tenant.title,
        contact: tenant.contact,
        info: tenant.additional_info,
    }))
}

#[cfg(test)]
mod tests {
    use fieldline_model::CustomerId;
    use fieldline_model::entity::Customer;
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{NOW, World, nobody, upgraded};

    #[tokio::test(flavor = "multi_thread")]
    async fn details_of_customer_and_tenant_are_added() {
        let mut world = World::new().await;
        let id = CustomerId::new();
        let customer = Customer {
            id,
            created_time: NOW,
            tenant_id: world.tenant,
            title: "Mill".into(),
            contact: Contact {
                city: Some("Wien".into()),
                zip: Some("1010".into()),
                ..Contact::default()
            },
            additional_info: Some(json!({"description": "old"})),
            ..Customer::default()
        };
        world.services.stores.customers.insert(customer).await.unwrap();
        let device = world.device("d", json!({ "customerId": id })).await;
        let alone = world.device("alone", json!(null)).await;
        let class = "metadata.TbGetCustomerDetailsNode";
        let list = json!(["ID", "TITLE", "CITY", "ZIP", "PHONE", "ADDITIONAL_INFO"]);
        let node = world.node(class, json!({ "detailsList": list }));
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({"a": 1}));
        let expected = json!({
            "a": 1, "customer_id": id.0, "customer_title": "Mill", "customer_city": "Wien", "customer_zip": "1010",
            "customer_additionalInfo": "old",
        });
        assert_eq!(world.one(&node, msg.clone()).await.body(), expected);
        for (originator, label) in [(alone, "Failure"), (nobody(), "Success"), (id.into(), "Failure")] {
            let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
            assert_eq!(world.one(&node, msg).await.label, label);
        }
        let patch = json!({"detailsList": ["TITLE", "EMAIL", "ADDITIONAL_INFO"], "fetchTo": "METADATA"});
        let node = world.node("metadata.TbGetTenantDetailsNode", patch);
        let out = world.one(&node, msg).await;
        assert_eq!(out.meta("tenant_title").as_deref(), Some("Acme"));
        assert_eq!(
            (out.meta("tenant_email"), out.meta("tenant_additionalInfo")),
            (None, None)
        );
        assert_eq!(world.wrong(class, json!({})), "detailsList");
        assert!(
            world
                .wrong(class, json!({"detailsList": ["FAX"]}))
                .starts_with("detailsList")
        );
        assert_eq!(
            upgraded(class, 0, json!({"addToMetadata": true})),
            json!({"fetchTo": "METADATA"})
        );
        assert_eq!(
            upgraded(class, 0, json!({"addToMetadata": false})),
            json!({"fetchTo": "DATA"})
        );
    }
}
