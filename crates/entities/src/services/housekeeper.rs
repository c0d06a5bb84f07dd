//! Values and events of entities that were deleted: they are taken away in the background.
//!
//! Who deletes an entity only notes what it leaves, with the entity's row; nobody sees it from then on. It is taken away at
//! once, and once more when what was on its way through the journal at that time has come in. A note goes when that is done:
//! whoever is killed before goes on at the next start.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::events::EntityChange;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{CleanupPass, DeviceTransfer, StoreResult, ValueRemoval, ValueRemovalScope};
use fieldline_model::{EntityKey, EntityType, TenantId};
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::{ServiceContext, calculated_fields};

const PENDING_COUNT: &str = "fieldline_housekeeping_leftovers";
const REMOVED_TOTAL: &str = "fieldline_housekeeping_taken_away_total";
const FAILURES: &str = "fieldline_housekeeping_failures_total";

static GATE: LogGate = LogGate::new(2);
/// How long after the first pass, and after the start, the last pass comes at the earliest, milliseconds.
const LAST_AFTER_MS: i64 = 3_600_000;
/// How long what could not be taken away is left alone, milliseconds.
const RETRY_MS: i64 = 30_000;
/// How often somebody looks.
const PERIOD: Duration = Duration::from_secs(1);
/// Leftovers that are taken away together.
const BATCH_SIZE: u32 = 1_000;
/// Moves of devices that are read at once.
const MOVES: u32 = 1_000;

/// See the module. One for each node.
pub struct HousekeeperService {
    context: Arc<ServiceContext>,
    values: Arc<dyn ValueRemoval>,
    began_ms: i64,
}

impl HousekeeperService {
    /// Leftovers, with what takes values away.
    pub fn new(context: impl Into<Arc<ServiceContext>>, values: Arc<dyn ValueRemoval>) -> Arc<Self> {
        describe_gauge!(
            PENDING_COUNT,
            "Deleted entities whose values are still to be taken away"
        );
        describe_counter!(REMOVED_TOTAL, "Deleted entities whose values were taken away");
        describe_counter!(
            FAILURES,
            "Deleted entities whose values could not be taken away and are tried again"
        );
        let context = context.into();
        let began_ms = context.now();
        Arc::new(Self {
            context,
            values,
            began_ms,
        })
    }

    /// Takes away what is left, until told to stop. To be run once.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = async {
                ticks.tick().await;
                self.catch_up().await;
            };
            tokio::select! {
                () = next => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Takes away all that is due.
    pub async fn catch_up(&self) {
        if let Err(error) = self.take_all().await
            && let Some(suppressed) = GATE.open()
        {
            tracing::warn!(%error, suppressed, "cannot tell what deleted entities have left, trying again");
        }
    }

    async fn take_all(&self) -> StoreResult<()> {
        let leftovers = &self.context.stores.housekeeper;
        loop {
            let now = self.context.now();
            gauge!(PENDING_COUNT).set(leftovers.waiting().await? as f64);
            let mut pass = CleanupPass::First;
            let mut due = leftovers.due(pass, now, BATCH_SIZE).await?;
            // What the journal held at the start comes in after it.
            if due.is_empty() && now.saturating_sub(self.began_ms) >= LAST_AFTER_MS {
                pass = CleanupPass::Last;
                due = leftovers.due(pass, now, BATCH_SIZE).await?;
            }
            if due.is_empty() {
                return Ok(());
            }
            self.take_part(&due, pass).await?;
        }
    }

    /// Takes some away together; where that fails each alone, so that one does not keep the others.
    async fn take_part(&self, part: &[EntityKey], pass: CleanupPass) -> StoreResult<()> {
        if self.delete_data(part).await.is_ok() {
            return self.finish_pass(part, pass).await;
        }
        for one in part {
            let alone = std::slice::from_ref(one);
            match self.delete_data(alone).await {
                Ok(()) => self.finish_pass(alone, pass).await?,
                Err(error) => {
                    counter!(FAILURES).increment(1);
                    if let Some(suppressed) = GATE.open() {
                        let EntityKey { tenant, entity } = one;
                        tracing::warn!(
                            %tenant, %entity, %error, suppressed,
                            "cannot take away what a deleted entity has left, trying again"
                        );
                    }
                    let until = self.context.now().saturating_add(RETRY_MS);
                    self.context
                        .stores
                        .housekeeper
                        .put_off(alone, pass, until)
                        .await?;
                }
            }
        }
        Ok(())
    }

    async fn finish_pass(&self, part: &[EntityKey], pass: CleanupPass) -> StoreResult<()> {
        let leftovers = &self.context.stores.housekeeper;
        match pass {
            CleanupPass::First => {
                counter!(REMOVED_TOTAL).increment(part.len() as u64);
                let until = self.context.now().saturating_add(LAST_AFTER_MS);
                leftovers.put_off(part, CleanupPass::Last, until).await
            }
            CleanupPass::Last => leftovers.forget(part).await,
        }
    }

    async fn delete_data(&self, part: &[EntityKey]) -> StoreResult<()> {
        let stores = &self.context.stores;
        let tenant_of = |subject: &EntityKey| {
            (subject.entity.entity_type == EntityType::Tenant).then_some(subject.tenant)
        };
        let tenants: Vec<TenantId> = part.iter().filter_map(tenant_of).collect();
        for tenant in &tenants {
            // Its deletion may have been cut off.
            if stores.tenants.delete(*tenant).await? {
                self.context
                    .publish_change(EntityChange::deleted(*tenant, *tenant));
            }
        }
        let gone = part.iter().map(|subject| match tenant_of(subject) {
            Some(tenant) => ValueRemovalScope::Tenant(tenant),
            None => ValueRemovalScope::Subject(*subject),
        });
        let gone: Vec<ValueRemovalScope> = gone.collect();
        self.values
            .remove(&gone, &self.moved_from(&tenants).await?)
            .await?;
        for subject in part.iter().filter(|subject| tenant_of(subject).is_none()) {
            stores.events.delete_subject(*subject).await?;
            calculated_fields::delete_of_entity(&self.context, subject.tenant, subject.entity).await?;
        }
        Ok(())
    }

    /// What devices have left in these tenants that went to others: it follows them.
    async fn moved_from(&self, tenants: &[TenantId]) -> StoreResult<Vec<EntityKey>> {
        let mut moved = Vec::new();
        if tenants.is_empty() {
            return Ok(moved);
        }
        let mut last: Option<DeviceTransfer> = None;
        loop {
            let moves = self
                .context
                .stores
                .device_transfers
                .list(last.as_ref(), MOVES)
                .await?;
            let Some(newest) = moves.last() else {
                return Ok(moved);
            };
            last = Some(*newest);
            let lives = |one: &&DeviceTransfer| one.to.is_some() && tenants.contains(&one.from);
            moved.extend(
                moves
                    .iter()
                    .filter(lives)
                    .map(|one| EntityKey::device(one.from, one.device)),
            );
        }
    }
}
