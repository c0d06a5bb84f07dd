//! How far events reach: the entities at the ends of relations, and those of a profile.

use std::sync::Arc;

use fieldline_core::ports::{AssetFilter, DeviceFilter, RelationEnds, StoreResult};
use fieldline_model::entity::SearchDirection;
use fieldline_model::entity::calculated_field::RelationLevel;
use fieldline_model::message::QueueMessage;
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{
    AssetProfileId, CustomerId, DeviceProfileId, EntityId, EntityKey, EntityType, TenantId,
};

use crate::fields::{self, FieldEvent, FieldTask, ProfilePage, RegisteredField};
use crate::message::derive_id;
use crate::services::NodeServices;

/// Entities of a profile that are told with one message.
const PAGE: u32 = 500;
/// Most entities that a search along relations is followed to where the tenant has no limit.
const MAX_FOUND: usize = 10_000;

/// Tells the entities from which a path of relations leads to the one that has changed.
pub(super) async fn notify_related(
    services: Arc<NodeServices>,
    entry: Arc<RegisteredField>,
    paths: Vec<Arc<[RelationLevel]>>,
    event: FieldEvent,
    now: i64,
) -> StoreResult<()> {
    let tenant = event.subject.tenant;
    let mut found: Vec<EntityId> = Vec::new();
    for path in paths {
        let mut ends = vec![event.subject.entity];
        for level in path.iter().rev() {
            let mut next = Vec::new();
            for end in ends {
                // Against the direction of the path.
                let back = match level.direction {
                    SearchDirection::From => SearchDirection::To,
                    SearchDirection::To => SearchDirection::From,
                };
                next.extend(step(&services, tenant, end, back, &level.relation_type).await?);
            }
            next.sort_unstable();
            next.dedup();
            ends = next;
        }
        found.extend(ends);
    }
    found.sort_unstable();
    found.dedup();
    let mut messages = Vec::new();
    for entity in found {
        let is_profile = fields::is_profile(entry.entity);
        let has_field = if is_profile {
            let known = services.originators.get(EntityKey { tenant, entity }).await?;
            known.and_then(|known| Some(known.profile.as_ref()?.id)) == Some(entry.entity)
        } else {
            entity == entry.entity
        };
        if has_field {
            let task = FieldTask {
                field: Some(entry.id),
                event: event.clone(),
                page: None,
            };
            messages.push(task.message(entity, now));
        }
    }
    fields::push(&services, tenant, messages).await
}

/// The entities at the other ends of an entity's relations.
async fn step(
    services: &NodeServices,
    tenant: TenantId,
    entity: EntityId,
    direction: SearchDirection,
    relation_type: &str,
) -> StoreResult<Vec<EntityId>> {
    let ends = match direction {
        SearchDirection::From => RelationEnds::from(entity),
        SearchDirection::To => RelationEnds::to(entity),
    };
    let relations = services
        .stores
        .relations
        .find(tenant, &ends.of_type(relation_type))
        .await?;
    Ok(relations
        .iter()
        .map(|relation| relation.endpoint(direction))
        .collect())
}

/// Tells a page of the entities of a profile, and passes the rest on to another message.
pub(super) async fn notify_page(
    services: Arc<NodeServices>,
    task: FieldTask,
    page: ProfilePage,
    profile: EntityId,
    now: i64,
) -> StoreResult<()> {
    let tenant = task.event.subject.tenant;
    let (entities, has_next) = page_of(&services, tenant, profile, page).await?;
    let single = FieldTask {
        page: None,
        ..task.clone()
    };
    let mut messages: Vec<QueueMessage> = entities
        .iter()
        .map(|entity| single.message(*entity, now))
        .collect();
    if has_next {
        let rest = FieldTask {
            page: Some(ProfilePage {
                number: page.number + 1,
                ..page
            }),
            ..task
        };
        let mut message = rest.message(profile, now);
        message.id = derive_id(message.id, u64::from(page.number) + 1);
        messages.push(message);
    }
    fields::push(&services, tenant, messages).await
}

/// A page of the entities of a profile, and whether there are more.
pub async fn page_of(
    services: &NodeServices,
    tenant: TenantId,
    profile: EntityId,
    page: ProfilePage,
) -> StoreResult<(Vec<EntityId>, bool)> {
    let link = PageLink {
        page: page.number,
        page_size: PAGE,
        sort_property: Some("createdTime".to_owned()),
        sort_order: Some(SortOrder::Asc),
        ..PageLink::default()
    };
    let of_type = |kind| page.owner.filter(|owner| owner.entity_type == kind);
    let customer = of_type(EntityType::Customer).map(|owner| CustomerId(owner.id));
    // What has no customer belongs to the tenant.
    let of_tenant = of_type(EntityType::Tenant).is_some();
    let is_wanted = |customer: CustomerId| !of_tenant || customer.is_null();
    if profile.entity_type == EntityType::DeviceProfile {
        let filter = DeviceFilter {
            customer,
            profile: Some(DeviceProfileId(profile.id)),
            ..DeviceFilter::default()
        };
        let found = services.stores.devices.list(tenant, &filter, &link).await?;
        let devices = found.data.iter().map(|info| &info.device);
        let wanted = devices.filter(|device| is_wanted(device.customer_id));
        let ids = wanted.map(|device| device.id.into()).collect();
        return Ok((ids, found.has_next));
    }
    let filter = AssetFilter {
        customer,
        profile: Some(AssetProfileId(profile.id)),
        ..AssetFilter::default()
    };
    let found = services.stores.assets.list(tenant, &filter, &link).await?;
    let assets = found.data.iter().map(|info| &info.asset);
    let wanted = assets.filter(|asset| is_wanted(asset.customer_id));
    let ids = wanted.map(|asset| asset.id.into()).collect();
    Ok((ids, found.has_next))
}

/// The entities at the end of a path of relations.
pub async fn walk_path(
    services: &Arc<NodeServices>,
    tenant: TenantId,
    from: EntityId,
    path: &[RelationLevel],
) -> StoreResult<Vec<EntityId>> {
    let mut ends = vec![from];
    for level in path {
        let mut next = Vec::new();
        for end in ends {
            next.extend(step(services, tenant, end, level.direction, &level.relation_type).await?);
            if next.len() > MAX_FOUND {
                next.truncate(MAX_FOUND);
                break;
            }
        }
        next.sort_unstable();
        next.dedup();
        ends = next;
    }
    ends.retain(|end| *end != from);
    Ok(ends)
}
