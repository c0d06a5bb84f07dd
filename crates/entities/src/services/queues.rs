//! Queues of the rule engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::{EntityStores, StoreResult};
use fieldline_model::entity::{
    AssetProfile, DeviceProfile, EntityDraft, ProcessingStrategy, ProcessingStrategyType, Queue,
    SubmitStrategy, SubmitStrategyType, TenantProfile,
};
use fieldline_model::page::PageLink;
use fieldline_model::{QueueId, TenantId, TenantProfileId};
use serde_json::Value;
use tracing::warn;

use super::{ServiceContext, ServiceError, ServiceResult, conflict, profiles, saving, validate};

/// The queue of messages that are sent to no other.
pub const MAIN_QUEUE: &str = "Main";
/// Names that the platform uses itself.
const RESERVED: [&str; 2] = ["CalculatedFields", "CalculatedFieldStates"];
/// How long a request waits until the queues that it saved are open.
const OPENING_TIMEOUT: Duration = Duration::from_secs(10);
/// Tenants read at once.
const PAGE: u32 = 1_000;

/// Rules about queues.
#[derive(Clone)]
pub struct QueueService(Arc<ServiceContext>);

impl QueueService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Whose queues the messages of a tenant go through: its own where its profile says so, otherwise those of the null
    /// tenant, which are shared.
    ///
    /// # Errors
    /// The store failed.
    pub async fn owner(&self, tenant: TenantId) -> ServiceResult<TenantId> {
        owner(&self.0, tenant).await
    }

    /// Creates a shared queue, or updates it where it has an id.
    ///
    /// # Errors
    /// A rule is broken, or name or topic are taken.
    pub async fn save(&self, queue: EntityDraft<Queue>) -> ServiceResult<Queue> {
        let saved = store(&self.0, TenantId::NULL, queue).await?;
        publish_change(&self.0, TenantId::NULL);
        in_force(&self.0).await;
        Ok(saved)
    }

    /// Deletes a shared queue. What rule nodes send to it goes through the main one from then on.
    ///
    /// # Errors
    /// It is the main queue, or a profile names it.
    pub async fn delete(&self, queue: &Queue) -> ServiceResult<()> {
        if queue.name == MAIN_QUEUE {
            return Err(ServiceError::invalid("Deletion of the Main queue is prohibited!"));
        }
        if let Some(referrer) = referrer(&self.0.stores, &queue.name).await? {
            return Err(ServiceError::invalid(format!(
                "The queue referenced by the {referrer} cannot be deleted!"
            )));
        }
        let id = queue.id;
        self.0.stores.queues.delete(queue.tenant_id, id).await?;
        publish_change(&self.0, queue.tenant_id);
        in_force(&self.0).await;
        Ok(())
    }
}

fn publish_change(context: &ServiceContext, tenant: TenantId) {
    context.publish_change(EntityChange::new(tenant, tenant, ChangeKind::Queues));
}

/// Waits until the queues that were saved process messages. Whoever is answered before could send messages to a queue
/// that is not open, and see them processed with the strategies of the main one.
pub(super) async fn in_force(context: &ServiceContext) {
    if !context.events.settled(OPENING_TIMEOUT).await {
        warn!("queues were saved, but are not open yet: their messages go through the main queue until then");
    }
}

async fn owner(context: &ServiceContext, tenant: TenantId) -> ServiceResult<TenantId> {
    Ok(context.stores.queue_owner(tenant).await?)
}

/// What refers to a shared queue: `device profiles` or `asset profiles` of a tenant that has no queues of its own.
async fn referrer(stores: &EntityStores, queue: &str) -> StoreResult<Option<&'static str>> {
    let names = |name: &Option<String>| name.as_deref() == Some(queue);
    let mut tenants = PageLink {
        sort_property: Some("createdTime".to_owned()),
        ..PageLink::first(PAGE)
    };
    loop {
        let page = stores.tenants.list(&tenants).await?;
        for tenant in &page.data {
            let id = tenant.id;
            if !stores.queue_owner(id).await?.is_null() {
                continue;
            }
            if profiles::any::<DeviceProfile>(stores, id, |it| names(&it.default_queue_name)).await? {
                return Ok(Some("device profiles"));
            }
            if profiles::any::<AssetProfile>(stores, id, |it| names(&it.default_queue_name)).await? {
                return Ok(Some("asset profiles"));
            }
        }
        if !page.has_next {
            return Ok(None);
        }
        tenants.page += 1;
    }
}

/// Whether a tenant's messages can be sent through a queue of that name.
pub(super) async fn exists(context: &ServiceContext, tenant: TenantId, name: &str) -> ServiceResult<bool> {
    let owner = owner(context, tenant).await?;
    Ok(context.stores.queues.by_name(owner, name).await?.is_some())
}

async fn store(
    context: &ServiceContext,
    tenant: TenantId,
    mut queue: EntityDraft<Queue>,
) -> ServiceResult<Queue> {
    let stores = &*context.stores.queues;
    queue.tenant_id = tenant;
    check(&queue)?;
    let mut old = None;
    if let Some(id) = queue.id {
        let found = stores.get(tenant, id).await?;
        let found =
            found.ok_or_else(|| ServiceError::invalid(format!("Queue with id: {id} does not exists!")))?;
        let old = old.insert(found);
        if old.name != queue.name {
            return Err(ServiceError::invalid("Queue name can't be changed!"));
        }
        if old.topic != queue.topic {
            return Err(ServiceError::invalid("Queue topic can't be changed!"));
        }
    }
    let (name, topic) = (queue.name.clone(), queue.topic.clone());
    let name_taken = old.is_none() && stores.by_name(tenant, &name).await?.is_some();
    let taken = if name_taken {
        format!("Queue with name: {name} already exists!")
    } else {
        format!("Queue with topic: {topic} already exists!")
    };
    conflict(saving::save(context, stores, queue, old.as_ref()).await, &taken)
}

/// Creates the shared queues that are not there yet.
pub(super) async fn ensure_shared(context: &ServiceContext) -> ServiceResult<()> {
    use ProcessingStrategyType as Processing;
    use SubmitStrategyType as Submit;
    let retry = (Processing::RetryFailedAndTimedOut, 5);
    let wanted = [
        (
            MAIN_QUEUE,
            "main",
            (Submit::Burst, 1_000),
            (Processing::SkipAllFailures, 3),
            3,
        ),
        ("HighPriority", "hp", (Submit::Burst, 100), retry, 0),
        (
            "SequentialByOriginator",
            "sq",
            (Submit::SequentialByOriginator, 100),
            retry,
            3,
        ),
    ];
    for (name, topic, (submit, batch_size), (processing, pause), retries) in wanted {
        if context
            .stores
            .queues
            .by_name(TenantId::NULL, name)
            .await?
            .is_some()
        {
            continue;
        }
        let queue = Queue {
            name: name.to_owned(),
            topic: format!("tb_rule_engine.{topic}"),
            poll_interval: 25,
            partitions: 10,
            consumer_per_partition: true,
            pack_processing_timeout: 2_000,
            submit_strategy: Some(SubmitStrategy {
                strategy: Some(submit),
                batch_size,
            }),
            processing_strategy: Some(ProcessingStrategy {
                strategy: Some(processing),
                retries,
                failure_percentage: 0.0,
                pause_between_retries: pause,
                max_pause_between_retries: pause,
            }),
            ..Queue::default()
        };
        store(context, TenantId::NULL, queue.into()).await?;
        publish_change(context, TenantId::NULL);
    }
    Ok(())
}

/// The queues that a profile gives its tenants, by name; none where they use the shared ones.
///
/// # Errors
/// One of them breaks a rule, is there twice, or the main one is missing.
pub(super) fn configured(profile: &TenantProfile) -> ServiceResult<BTreeMap<String, Queue>> {
    let mut queues = BTreeMap::new();
    if !profile.isolated_tb_rule_engine {
        return Ok(queues);
    }
    let given = profile
        .profile_data
        .get("queueConfiguration")
        .and_then(Value::as_array)
        .ok_or_else(|| {
            ServiceError::invalid("Tenant profile data queue configuration should be specified!")
        })?;
    let mut topics = Vec::with_capacity(given.len());
    for value in given {
        let queue: Queue = serde_json::from_value(value.clone())
            .map_err(|error| ServiceError::invalid(format!("Queue configuration can't be read: {error}")))?;
        let queue = Queue {
            id: QueueId::NULL,
            ..queue
        };
        check(&queue)?;
        if topics.contains(&queue.topic) {
            return Err(ServiceError::invalid(format!(
                "Queue configuration topic '{}' already present!",
                queue.topic
            )));
        }
        topics.push(queue.topic.clone());
        if let Some(twice) = queues.insert(queue.name.clone(), queue) {
            return Err(ServiceError::invalid(format!(
                "Queue configuration name '{}' already present!",
                twice.name
            )));
        }
    }
    if queues.contains_key(MAIN_QUEUE) {
        Ok(queues)
    } else {
        Err(ServiceError::invalid(
            "Main queue configuration should be specified!",
        ))
    }
}

/// Whether a new form of a profile leaves the queues of its tenants what they are called.
pub(super) fn check_change(old: &TenantProfile, new: &TenantProfile) -> ServiceResult<()> {
    // What is stored may be from before there were such rules.
    let former = configured(old).unwrap_or_default();
    for (name, queue) in configured(new)? {
        if former
            .get(&name)
            .is_some_and(|former| former.topic != queue.topic)
        {
            return Err(ServiceError::invalid("Queue topic can't be changed!"));
        }
    }
    Ok(())
}

/// Brings the queues of a tenant in line with its profile; returns whether they were not.
pub(super) async fn align(context: &ServiceContext, tenant: TenantId) -> ServiceResult<bool> {
    let mut wanted = match context.stores.profile_of(tenant).await? {
        Some(profile) => configured(&profile)?,
        None => BTreeMap::new(),
    };
    let stores = &context.stores.queues;
    let mut changed = false;
    for old in stores.all(tenant).await? {
        let id = old.id;
        // A queue whose topic is another is another queue.
        match wanted.remove(&old.name) {
            Some(new) if new.topic == old.topic => {
                let new = Queue {
                    id: old.id,
                    created_time: old.created_time,
                    tenant_id: tenant,
                    ..new
                };
                if new != old {
                    store(context, tenant, new.into()).await?;
                    changed = true;
                }
            }
            other => {
                stores.delete(tenant, id).await?;
                changed = true;
                if let Some(new) = other {
                    wanted.insert(old.name, new);
                }
            }
        }
    }
    for (_, queue) in wanted {
        store(context, tenant, queue.into()).await?;
        changed = true;
    }
    if changed {
        publish_change(context, tenant);
    }
    Ok(changed)
}

/// Brings the queues of all tenants of a profile in line with it; returns whether any were not.
pub(super) async fn align_all(context: &ServiceContext, profile: TenantProfileId) -> ServiceResult<bool> {
    let mut link = PageLink::first(PAGE);
    let mut changed = false;
    loop {
        let page = context.stores.tenants.list(&link).await?;
        for tenant in page.data {
            if tenant.tenant_profile_id == Some(profile) {
                changed |= align(context, tenant.id).await?;
            }
        }
        if !page.has_next {
            return Ok(changed);
        }
        link.page += 1;
    }
}

fn check(queue: &Queue) -> ServiceResult<()> {
    let ensure = |fine: bool, complaint: &str| {
        if fine {
            Ok(())
        } else {
            Err(ServiceError::invalid(complaint))
        }
    };
    check_text("name", &queue.name)?;
    if RESERVED.contains(&queue.name.as_str()) {
        return Err(ServiceError::invalid(format!(
            "The queue name '{}' is not allowed. This name is reserved for internal use. Please choose a different name.",
            queue.name
        )));
    }
    check_text("topic", &queue.topic)?;
    validate::json_object("additionalInfo", queue.additional_info.as_ref())?;
    ensure(
        queue.poll_interval >= 1,
        "Queue poll interval should be more then 0!",
    )?;
    ensure(queue.partitions >= 1, "Queue partitions should be more then 0!")?;
    ensure(
        queue.pack_processing_timeout >= 1,
        "Queue pack processing timeout should be more then 0!",
    )?;
    let submit = queue.submit_strategy.unwrap_or_default();
    ensure(
        queue.submit_strategy.is_some(),
        "Queue submit strategy can't be null!",
    )?;
    ensure(
        submit.strategy.is_some(),
        "Queue submit strategy type can't be null!",
    )?;
    ensure(
        submit.strategy != Some(SubmitStrategyType::Batch) || submit.batch_size >= 1,
        "Queue submit strategy batch size should be more then 0!",
    )?;
    let processing = queue.processing_strategy.unwrap_or_default();
    ensure(
        queue.processing_strategy.is_some(),
        "Queue processing strategy can't be null!",
    )?;
    ensure(
        processing.strategy.is_some(),
        "Queue processing strategy type can't be null!",
    )?;
    ensure(
        processing.retries >= 0,
        "Queue processing strategy retries can't be less then 0!",
    )?;
    ensure(
        (0.0..=100.0).contains(&processing.failure_percentage),
        "Queue processing strategy failure percentage should be in a range from 0 to 100!",
    )?;
    ensure(
        processing.pause_between_retries >= 0,
        "Queue processing strategy pause between retries can't be less then 0!",
    )?;
    ensure(
        processing.max_pause_between_retries >= processing.pause_between_retries,
        "Queue processing strategy MAX pause between retries can't be less then pause between retries!",
    )
}

fn check_text(what: &str, text: &str) -> ServiceResult<()> {
    validate::required(&format!("Queue {what}"), text)?;
    validate::lengths(&[(what, Some(text))])?;
    if text
        .chars()
        .all(|char| char.is_ascii_alphanumeric() || "_.-".contains(char))
    {
        Ok(())
    } else {
        Err(ServiceError::invalid(format!(
            "Queue {what} contains a character other than ASCII alphanumerics, '.', '_' and '-'!"
        )))
    }
}
