//! What is kept of an entity in memory: its fields as queries name them.

use std::borrow::Cow;

use fieldline_core::any_entity::{AccessResource, AnyEntity, EntityTextField};
use fieldline_model::entity::Authority;
use fieldline_model::{CustomerId, EntityId, EntityType, TenantId};
use uuid::Uuid;

use crate::access::Principal;

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
        let mut more: Vec<(EntityTextField, Box<str>)> = Vec::new();
        entity.each_text(|field, text| more.push((field, text.into())));
        if let Some(info) = entity.info().filter(|info| !info.is_null()) {
            more.push((EntityTextField::AdditionalInfo, info.to_string().into()));
        }
        let name: Cow<'_, str> = match entity {
            AnyEntity::QueueStats(stats) => format!("{}_{}", stats.queue_name, stats.service_id).into(),
            other => other.name().into(),
        };
        let shared = entity.shared_with().iter().map(|customer| customer.customer_id);
        Self {
            shared: shared.collect(),
            id: resource.entity.id,
            created_time: entity.created_time(),
            customer: resource.customer,
            authority: resource.user_authority,
            name: name.into(),
            more: more.into(),
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
