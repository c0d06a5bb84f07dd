//! Looking many entities up on somebody's behalf at once.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fieldline_core::any_entity::{self, AnyEntity};
use fieldline_core::ports::{EntityStores, StoreError};
use fieldline_model::entity::Authority;
use fieldline_model::{EntityId, EntityType};
use uuid::Uuid;

use super::{AccessError, AccessOperation, Principal, allows, lookup};

/// Those of the entities that the principal may do that with, as [`lookup`] would say: what is not there is left out.
/// Kinds that there are many of take one query each.
///
/// # Errors
/// A store failed.
pub async fn filter_permitted(
    stores: &EntityStores,
    who: &Principal,
    operation: AccessOperation,
    ids: impl IntoIterator<Item = EntityId>,
) -> Result<HashSet<EntityId>, StoreError> {
    let mut kinds: BTreeMap<EntityType, BTreeSet<Uuid>> = BTreeMap::new();
    for id in ids {
        kinds.entry(id.entity_type).or_default().insert(id.id);
    }
    let tenant = who.tenant;
    let mut permitted = HashSet::new();
    for (entity_type, ids) in kinds {
        // A system administrator has no tenant to look into.
        let several = ids.len() > 1 && who.authority != Authority::SysAdmin;
        let found = match several {
            true => any_entity::find_all(stores, tenant, entity_type, &ids).await?,
            false => None,
        };
        let Some(found) = found else {
            for id in ids {
                let id = EntityId::new(entity_type, id);
                match lookup(stores, who, id, operation).await {
                    Ok(_) => permitted.insert(id),
                    Err(AccessError::NotFound(_) | AccessError::Denied) => continue,
                    Err(AccessError::Store(error)) => return Err(error),
                };
            }
            continue;
        };
        let resources = found.iter().map(AnyEntity::resource);
        permitted.extend(
            resources
                .filter(|resource| allows(who, operation, resource))
                .map(|resource| resource.entity),
        );
    }
    Ok(permitted)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use fieldline_model::{CustomerId, DeviceId, UserId};
    use fieldline_testkit::fake_stores::{Call, FakeStores};

    use super::*;

    #[tokio::test]
    async fn entities_of_one_kind_take_one_query_however_many_they_are() {
        let fakes = FakeStores::new();
        let devices: Vec<EntityId> = (0..50)
            .map(|index| fakes.add_device(&index.to_string()).entity)
            .collect();
        let queries = Arc::new(AtomicUsize::new(0));
        let counted = queries.clone();
        fakes.watch(move |call| {
            if matches!(call, Call::ReadDevices) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
        let who = Principal {
            user: UserId::new(),
            authority: Authority::TenantAdmin,
            tenant: fakes.tenant,
            customer: CustomerId::NULL,
        };
        let unknown = EntityId::from(DeviceId::new());
        let asked = devices.iter().copied().chain([unknown, devices[0]]);
        let seen = filter_permitted(&fakes.entities(), &who, AccessOperation::Read, asked).await;
        assert_eq!(seen.unwrap(), devices.iter().copied().collect());
        assert_eq!(queries.load(Ordering::SeqCst), 1);

        let of_customer = Principal {
            authority: Authority::CustomerUser,
            customer: CustomerId::new(),
            ..who
        };
        let seen = filter_permitted(&fakes.entities(), &of_customer, AccessOperation::Read, devices).await;
        assert!(seen.unwrap().is_empty(), "they are not the customer's");
    }
}
