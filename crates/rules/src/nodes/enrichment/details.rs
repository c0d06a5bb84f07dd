//! How to reach the customer or the tenant of the originator.

use std::sync::Arc;

use fieldline_model::entity::Contact;
use fieldline_model::{EntityType, Subject, TenantId};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError, Step};
use crate::nodes::entities::{self, type_label};
use crate::nodes::part::{Part, required, upgrade_flag};
use crate::nodes::text::plain;
use crate::registry::{ComponentType, NodeType};
use crate::services::Services;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        description: "Adds the address and other details of the originator's customer.",
        version: 1,
        upgrade,
        default_configuration: defaults,
        ..NodeType::new(
            "metadata.TbGetCustomerDetailsNode",
            "customer details",
            ComponentType::Enrichment,
            |config| make(config, Whose::Customer),
        )
    },
    NodeType {
        description: "Adds the address and other details of the tenant.",
        version: 1,
        upgrade,
        default_configuration: defaults,
        ..NodeType::new(
            "metadata.TbGetTenantDetailsNode",
            "tenant details",
            ComponentType::Enrichment,
            |config| make(config, Whose::Tenant),
        )
    },
];

fn defaults() -> Value {
    json!({"fetchTo": "DATA", "detailsList": []})
}

fn upgrade(from_version: i32, mut configuration: Value) -> Value {
    if from_version == 0 {
        upgrade_flag(&mut configuration, "addToMetadata", "fetchTo", Part::Metadata);
    }
    configuration
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Detail {
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
enum Whose {
    Customer,
    Tenant,
}

struct Details {
    fetch_to: Part,
    details: Arc<[Detail]>,
    whose: Whose,
}

/// Whom the details are about.
struct Party {
    id: Uuid,
    title: String,
    contact: Contact,
    info: Option<Value>,
}

fn make(config: &NodeConfig<'_>, whose: Whose) -> Result<Arc<dyn Node>, ConfigError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Config {
        fetch_to: Option<Part>,
        details_list: Option<Vec<Detail>>,
    }
    let config: Config = config.parse()?;
    let details = config.details_list.unwrap_or_default();
    if details.is_empty() {
        return Err(ConfigError::new("detailsList", "at least one detail is needed"));
    }
    Ok(Arc::new(Details {
        fetch_to: required(config.fetch_to, "fetchTo")?,
        details: details.into(),
        whose,
    }))
}

impl Node for Details {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        if let Err(error) = self.fetch_to.check(&mut msg) {
            return Step::Fail(msg, error);
        }
        let services = Arc::clone(ctx.services);
        let (fetch_to, details, whose) = (self.fetch_to, Arc::clone(&self.details), self.whose);
        Step::wait(async move {
            let (prefix, party) = match whose {
                Whose::Customer => ("customer_", customer(&services, msg.subject()).await),
                Whose::Tenant => ("tenant_", tenant(&services, msg.tenant).await),
            };
            // There is nothing to be added about somebody who is gone.
            let party = match party {
                Ok(Some(party)) => party,
                Ok(None) => return Step::success(msg),
                Err(error) => return Step::Fail(msg, error),
            };
            for detail in details.iter() {
                let (name, value) = party.detail(*detail);
                if let Some(value) = value
                    && let Err(error) =
                        fetch_to.put_json(&mut msg, &format!("{prefix}{name}"), Value::from(value))
                {
                    return Step::Fail(msg, error);
                }
            }
            Step::success(msg)
        })
    }
}

impl Party {
    fn detail(&self, detail: Detail) -> (&'static str, Option<String>) {
        let contact = &self.contact;
        match detail {
            Detail::Id => ("id", Some(self.id.to_string())),
            Detail::Title => ("title", Some(self.title.clone())),
            Detail::Country => ("country", contact.country.clone()),
            Detail::City => ("city", contact.city.clone()),
            Detail::State => ("state", contact.state.clone()),
            Detail::Zip => ("zip", contact.zip.clone()),
            Detail::Address => ("address", contact.address.clone()),
            Detail::Address2 => ("address2", contact.address2.clone()),
            Detail::Phone => ("phone", contact.phone.clone()),
            Detail::Email => ("email", contact.email.clone()),
            Detail::AdditionalInfo => {
                let text = self.info.as_ref().and_then(|info| info.get("description"));
                ("additionalInfo", text.filter(|text| !text.is_null()).map(plain))
            }
        }
    }
}

async fn customer(services: &Arc<Services>, originator: Subject) -> Result<Option<Party>, NodeError> {
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
            type_label(kind),
            owner.name
        ))
    })?;
    let customer = services.stores.customers.get(originator.tenant, id).await?;
    Ok(customer.map(|customer| Party {
        id: id.0,
        title: customer.title,
        contact: customer.contact,
        info: customer.additional_info,
    }))
}

async fn tenant(services: &Arc<Services>, id: TenantId) -> Result<Option<Party>, NodeError> {
    let tenant = services.stores.tenants.get(id).await?;
    Ok(tenant.map(|tenant| Party {
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
            id: Some(id),
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
        world
            .services
            .stores
            .customers
            .save(customer, true)
            .await
            .unwrap();
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
