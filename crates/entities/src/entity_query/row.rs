//! What is kept of an entity in memory: its fields as queries name them.

use std::borrow::Cow;

use fieldline_core::any_entity::{AccessResource, AnyEntity};
use fieldline_model::entity::{Authority, Contact};
use fieldline_model::{CustomerId, EntityId, EntityType, TenantId};
use serde_json::Value;
use uuid::Uuid;

use crate::access::Principal;

/// A text that entities may have. The names are those of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntityTextField {
    Name,
    Type,
    Label,
    FirstName,
    LastName,
    Email,
    Region,
    Country,
    State,
    City,
    Address,
    Address2,
    Zip,
    Phone,
    AdditionalInfo,
    QueueName,
    ServiceId,
}

impl EntityTextField {
    /// The field that a kind of entity has under a name, aliases included.
    pub(super) fn of(kind: EntityType, name: &str) -> Option<Self> {
        use EntityType as Kind;
        let labeled = matches!(kind, Kind::Device | Kind::Asset);
        let typed = labeled || matches!(kind, Kind::EntityView | Kind::DeviceProfile);
        let contact = matches!(kind, Kind::Tenant | Kind::Customer);
        let user = kind == Kind::User;
        Some(match name {
            "name" | "title" => Self::Name,
            "label" if contact || user => Self::Name,
            "displayName" if contact || kind == Kind::EntityView => Self::Name,
            "type" if typed => Self::Type,
            "label" if labeled => Self::Label,
            "firstName" if user => Self::FirstName,
            "lastName" if user => Self::LastName,
            "email" if user => Self::Name,
            "email" if contact => Self::Email,
            "region" if kind == Kind::Tenant => Self::Region,
            "country" if contact => Self::Country,
            "state" if contact => Self::State,
            "city" if contact => Self::City,
            "address" if contact => Self::Address,
            "address2" if contact => Self::Address2,
            "zip" if contact => Self::Zip,
            "phone" if contact || user => Self::Phone,
            "additionalInfo" => Self::AdditionalInfo,
            "queueName" if kind == Kind::QueueStats => Self::QueueName,
            "serviceId" if kind == Kind::QueueStats => Self::ServiceId,
            _ => return None,
        })
    }
}

/// An entity.
#[derive(Debug)]
pub(super) struct EntityTableRow {
    pub(super) id: Uuid,
    pub(super) created_time: i64,
    customer: CustomerId,
    /// The customers it is assigned to where there may be several.
    shared: Box<[CustomerId]>,
    authority: Option<Authority>,
    name: Box<str>,
    /// What is there beside the name: few of them.
    more: Box<[(EntityTextField, Box<str>)]>,
}

impl EntityTableRow {
    pub(super) fn of(entity: &AnyEntity) -> Self {
        let resource = entity.resource();
        let mut row = EntityFieldList::default();
        let created_time = match entity {
            AnyEntity::Device(device) => {
                row.add(EntityTextField::Type, Some(&device.device_type));
                row.add(EntityTextField::Label, device.label.as_deref());
                row.info(device.additional_info.as_ref());
                device.created_time
            }
            AnyEntity::Asset(asset) => {
                row.add(EntityTextField::Type, Some(&asset.asset_type));
                row.add(EntityTextField::Label, asset.label.as_deref());
                row.info(asset.additional_info.as_ref());
                asset.created_time
            }
            AnyEntity::EntityView(view) => {
                row.add(EntityTextField::Type, Some(&view.view_type));
                row.info(view.additional_info.as_ref());
                view.created_time
            }
            AnyEntity::Customer(customer) => {
                row.contact(&customer.contact);
                row.info(customer.additional_info.as_ref());
                customer.created_time
            }
            AnyEntity::Tenant(tenant) => {
                row.contact(&tenant.contact);
                row.add(EntityTextField::Region, tenant.region.as_deref());
                row.info(tenant.additional_info.as_ref());
                tenant.created_time
            }
            AnyEntity::User(user) => {
                row.add(EntityTextField::FirstName, user.first_name.as_deref());
                row.add(EntityTextField::LastName, user.last_name.as_deref());
                row.add(EntityTextField::Phone, user.phone.as_deref());
                row.info(user.additional_info.as_ref());
                user.created_time
            }
            AnyEntity::DeviceProfile(profile) => {
                row.add(EntityTextField::Type, profile.profile_type.as_deref());
                profile.created_time
            }
            AnyEntity::AssetProfile(profile) => profile.created_time,
            AnyEntity::TenantProfile(profile) => profile.created_time,
            AnyEntity::RuleChain(chain) => {
                row.info(chain.additional_info.as_ref());
                chain.created_time
            }
            AnyEntity::Queue(queue) => queue.created_time,
            AnyEntity::OtaPackage(package) => {
                row.info(package.additional_info.as_ref());
                package.created_time
            }
            AnyEntity::Dashboard(dashboard) => dashboard.created_time,
            AnyEntity::QueueStats(stats) => {
                row.add(EntityTextField::QueueName, Some(&stats.queue_name));
                row.add(EntityTextField::ServiceId, Some(&stats.service_id));
                stats.created_time
            }
            _ => 0,
        };
        let name: Cow<'_, str> = match entity {
            AnyEntity::QueueStats(stats) => format!("{}_{}", stats.queue_name, stats.service_id).into(),
            other => other.name().into(),
        };
        let shared = match entity {
            AnyEntity::Dashboard(dashboard) => {
                let assigned = dashboard.assigned_customers.as_deref().unwrap_or_default();
                assigned.iter().map(|customer| customer.customer_id).collect()
            }
            _ => Box::default(),
        };
        Self {
            shared,
            id: resource.entity.id,
            created_time,
            customer: resource.customer,
            authority: resource.user_authority,
            name: name.into(),
            more: row.0.into(),
        }
    }

    /// A text, `None` where the entity has none.
    pub(super) fn text(&self, field: EntityTextField) -> Option<&str> {
        if field == EntityTextField::Name {
            return Some(&self.name);
        }
        let found = self.more.iter().find(|(name, _)| *name == field);
        found.map(|(_, text)| &**text)
    }

    /// How people are shown it: by its label or a person's name where there is one.
    pub(super) fn display_name(&self) -> Cow<'_, str> {
        let present = |field| self.text(field).map(str::trim).filter(|text| !text.is_empty());
        if let Some(label) = present(EntityTextField::Label) {
            return label.into();
        }
        match (
            present(EntityTextField::FirstName),
            present(EntityTextField::LastName),
        ) {
            (Some(first), Some(last)) => format!("{first} {last}").into(),
            (Some(name), None) | (None, Some(name)) => name.into(),
            (None, None) => (&*self.name).into(),
        }
    }

    /// The customer it is assigned to.
    pub(super) fn customer(&self) -> Option<CustomerId> {
        (!self.customer.is_null()).then_some(self.customer)
    }

    /// What decides whether this one may see it.
    pub(super) fn resource_for(&self, who: &Principal, tenant: TenantId, kind: EntityType) -> AccessResource {
        AccessResource {
            entity: EntityId::new(kind, self.id),
            // A tenant belongs to itself, also where a system administrator looks at all of them.
            tenant: if kind == EntityType::Tenant {
                TenantId(self.id)
            } else {
                tenant
            },
            customer: match self.shared.contains(&who.customer) {
                true => who.customer,
                false => self.customer,
            },
            user_authority: self.authority,
        }
    }

    /// Bytes it takes, about.
    pub(super) fn cost(&self) -> usize {
        let more: usize = self.more.iter().map(|(_, text)| 40 + text.len()).sum();
        let shared = size_of_val(&*self.shared);
        size_of::<Self>() + self.name.len() + 16 + more + shared
    }
}

#[derive(Default)]
struct EntityFieldList(Vec<(EntityTextField, Box<str>)>);

impl EntityFieldList {
    fn add(&mut self, field: EntityTextField, text: Option<&str>) {
        if let Some(text) = text {
            self.0.push((field, text.into()));
        }
    }

    fn info(&mut self, info: Option<&Value>) {
        if let Some(info) = info.filter(|info| !info.is_null()) {
            self.add(EntityTextField::AdditionalInfo, Some(&info.to_string()));
        }
    }

    fn contact(&mut self, contact: &Contact) {
        self.add(EntityTextField::Country, contact.country.as_deref());
        self.add(EntityTextField::State, contact.state.as_deref());
        self.add(EntityTextField::City, contact.city.as_deref());
        self.add(EntityTextField::Address, contact.address.as_deref());
        self.add(EntityTextField::Address2, contact.address2.as_deref());
        self.add(EntityTextField::Zip, contact.zip.as_deref());
        self.add(EntityTextField::Phone, contact.phone.as_deref());
        self.add(EntityTextField::Email, contact.email.as_deref());
    }
}
