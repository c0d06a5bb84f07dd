//! Takes up, after a start, the devices that were active when the program ended. That is done in the background, some
//! devices at a time: however many there are, neither the start nor what devices send meanwhile waits for them, and no
//! more of them are queued than one round writes.

use fieldline_core::ports::StoreResult;
use fieldline_model::page::PageLink;
use fieldline_model::{DeviceId, EntityKey, TenantId};

use super::ActivityTracker;

/// How many devices are taken up at a time.
const DEVICES: u32 = 1_000;
/// Of how many tenants without active devices is asked at a time.
const TENANTS: usize = 100;

/// How far it has come.
#[derive(Default)]
pub(super) struct RestoreCursor {
    /// The tenants whose devices are still to be taken up, in reverse order; `None` until they were read.
    tenants: Option<Vec<TenantId>>,
    /// The last device of the first of them that was taken up, by its creation time.
    after: Option<(i64, DeviceId)>,
}

impl ActivityTracker {
    /// Takes up some devices; returns whether there may be more. After an error it goes on where it was.
    pub(super) async fn restore(&self, place: &mut RestoreCursor) -> StoreResult<bool> {
        let tenants = match &mut place.tenants {
            Some(tenants) => tenants,
            None => place.tenants.insert(self.tenants().await?),
        };
        for _ in 0..TENANTS {
            let Some(tenant) = tenants.last().copied() else {
                return Ok(false);
            };
            let devices = &self.stores.devices;
            let found = devices.active_after(tenant, place.after, DEVICES).await?;
            let mut states = self.states.lock();
            for (_, device) in &found {
                states.restore(EntityKey::device(tenant, *device));
            }
            if found.len() < DEVICES as usize {
                tenants.pop();
                place.after = None;
            } else {
                place.after = found.last().copied();
            }
            if !found.is_empty() {
                break;
            }
        }
        Ok(true)
    }

    async fn tenants(&self) -> StoreResult<Vec<TenantId>> {
        let mut link = PageLink {
            sort_property: Some("createdTime".to_owned()),
            ..PageLink::first(DEVICES)
        };
        let mut tenants = Vec::new();
        loop {
            let page = self.stores.tenants.list(&link).await?;
            tenants.extend(page.data.iter().map(|tenant| tenant.id));
            if !page.has_next {
                tenants.reverse();
                return Ok(tenants);
            }
            link.page += 1;
        }
    }
}
