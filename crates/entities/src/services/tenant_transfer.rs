//! Devices that go from one tenant to another.
//!
//! The row of the device says whose it is, and that changes first, together with a note of the move. Then what the device
//! has stored is handed over. What was under way in the former tenant may still be stored there later, and a crash may come
//! in between: for an hour, what is found there follows the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{DeviceTransfer, StoreResult, ValueTransfer};
use fieldline_model::entity::{Device, DeviceProfile, Tenant};
use fieldline_model::{CustomerId, DeviceId, EntityKey, EntityType, TenantId};
use rustc_hash::FxHashSet;
use tokio::sync::{Mutex, watch};
use tokio::time::MissedTickBehavior;

use super::devices::{assigned_packages, sync_device_data};
use super::{
    ServiceContext, ServiceError, ServiceResult, assignable, calculated_fields, conflict, entity_views,
    gateway_notices, ota_packages, profiles, quota,
};

static GATE: LogGate = LogGate::new(2);
/// How long what still comes for a device in its former tenant follows it, milliseconds.
const FORWARDING_PERIOD_MS: i64 = 3_600_000;
/// How often somebody looks for it.
const PERIOD: Duration = Duration::from_secs(5);
/// Moves that are looked at together.
const BATCH_SIZE: u32 = 1_000;

/// See the module. One for each node.
pub struct TenantTransfer {
    context: Arc<ServiceContext>,
    values: Arc<dyn ValueTransfer>,
    /// One device at a time: of two moves of one device the later one counts.
    settled: Mutex<SettledTransfers>,
    /// Whether there may be moves.
    any: AtomicBool,
}

/// Moves after which nothing but values is left in the former tenant.
#[derive(Default)]
struct SettledTransfers(FxHashSet<(DeviceId, TenantId)>);

impl TenantTransfer {
    /// Moves, with what hands values over.
    pub fn new(context: impl Into<Arc<ServiceContext>>, values: Arc<dyn ValueTransfer>) -> Arc<Self> {
        Arc::new(Self {
            context: context.into(),
            values,
            settled: Mutex::default(),
            // Some may have been left by an earlier run.
            any: AtomicBool::new(true),
        })
    }

    /// Gives a device of one tenant to another. It keeps its credentials, points and attributes; it is nobody's there, has the
    /// profile of its type, which is created where it is missing, and no relations, events, calculated fields or calls. Its
    /// alarms stay with the tenant that had it.
    ///
    /// # Errors
    /// An entity view shows it, it has a package of its own, or the other tenant has its name, or as many devices as it may have.
    pub async fn transfer(&self, from: TenantId, id: DeviceId, to: &Tenant) -> ServiceResult<Device> {
        let context = &self.context;
        let mut former = self.settled.lock().await;
        let tenant = to.id;
        if tenant == from {
            return Err(ServiceError::invalid(
                "Device is assigned to this tenant already!",
            ));
        }
        let found = context.stores.devices.get(from, id).await?;
        let old =
            found.ok_or_else(|| ServiceError::not_found(format!("Device with id [{id}] is not found")))?;
        if entity_views::is_viewed(context, from, id.into()).await? {
            return Err(ServiceError::invalid(
                "Can't assign device that has entity views to another tenant!",
            ));
        }
        quota::check(context, tenant, EntityType::Device).await?;
        let profile: DeviceProfile = profiles::of_entity(context, tenant, None, &old.device_type).await?;
        ota_packages::check_assigned(context, tenant, Some(profile.id), assigned_packages(&old)).await?;
        let mut device = Device {
            tenant_id: tenant,
            customer_id: CustomerId::NULL,
            device_profile_id: Some(profile.id),
            ..old.clone()
        };
        sync_device_data(&mut device.device_data, &profile);
        let given = context
            .stores
            .device_transfers
            .transfer(from, device, context.now())
            .await;
        let given = conflict(given, &assignable::name_taken::<Device>())?;
        self.any.store(true, Ordering::Release);
        // Ends its sessions: what it says from now on is said in the other tenant.
        context.publish_change(EntityChange::deleted(from, id));
        former.0.remove(&(id, from));
        if let Err(error) = self.transfer_remaining(&mut former, id, from, tenant).await {
            tracing::warn!(device = %id, %error, "cannot hand over all of a device yet, trying again");
        }
        context.publish_change(EntityChange::new(tenant, id, ChangeKind::Moved));
        context.publish_change(EntityChange::saved(tenant, id));
        gateway_notices::notify_deleted(context, &old).await;
        Ok(given)
    }

    /// Hands over what is in the former tenant; says whether there was anything.
    async fn transfer_remaining(
        &self,
        former: &mut SettledTransfers,
        device: DeviceId,
        from: TenantId,
        to: TenantId,
    ) -> StoreResult<bool> {
        let left = EntityKey::device(from, device);
        if !former.0.contains(&(device, from)) {
            calculated_fields::delete_of_entity(&self.context, from, left.entity).await?;
            let stores = &self.context.stores;
            stores.events.delete_subject(left).await?;
            stores.relations.delete_of(from, left.entity, None).await?;
            former.0.insert((device, from));
        }
        self.values.transfer(left, EntityKey::device(to, device)).await
    }

    /// Has devices followed by what still comes, until told to stop. To be run once.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            self.catch_up().await;
        }
    }

    /// Hands over what has come in the former tenants of devices, unless there was no move lately.
    pub async fn catch_up(&self) {
        if !self.any.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut last: Option<DeviceTransfer> = None;
        loop {
            let mut former = self.settled.lock().await;
            let moves = self
                .context
                .stores
                .device_transfers
                .list(last.as_ref(), BATCH_SIZE)
                .await;
            let moves = match moves {
                Ok(moves) => moves,
                Err(error) => {
                    self.any.store(true, Ordering::Release);
                    if let Some(suppressed) = GATE.open() {
                        tracing::warn!(%error, suppressed, "cannot read which devices went to other tenants");
                    }
                    return;
                }
            };
            let Some(newest) = moves.last() else { return };
            self.any.store(true, Ordering::Release);
            last = Some(*newest);
            for one in &moves {
                if let Err(error) = self.process_transfer(&mut former, one).await
                    && let Some(suppressed) = GATE.open()
                {
                    let device = one.device;
                    tracing::warn!(%device, %error, suppressed, "cannot hand over all of a device yet, trying again");
                }
            }
        }
    }

    async fn process_transfer(&self, former: &mut SettledTransfers, one: &DeviceTransfer) -> StoreResult<()> {
        let is_over = one.at_ms.saturating_add(FORWARDING_PERIOD_MS) <= self.context.now();
        match one.to {
            Some(to) => {
                let has_come = self.transfer_remaining(former, one.device, one.from, to).await?;
                if has_come {
                    self.context
                        .publish_change(EntityChange::new(to, one.device, ChangeKind::Moved));
                }
            }
            None if is_over => {
                let left = EntityKey::device(one.from, one.device);
                self.context.stores.housekeeper.note(&[left]).await?;
            }
            None => {}
        }
        if is_over {
            self.context.stores.device_transfers.forget(one).await?;
            former.0.remove(&(one.device, one.from));
        }
        Ok(())
    }
}
