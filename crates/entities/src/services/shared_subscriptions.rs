//! Shared subscriptions of clients of the type APPLICATION, as TBMQ wants them announced. Here, clients join groups that
//! nobody has announced: what is kept is for programs that announce them first.

use std::sync::Arc;

use fieldline_model::entity::ApplicationSharedSubscription;
use fieldline_model::new_uuid;
use fieldline_model::page::{PageData, PageLink};
use uuid::Uuid;

use super::{ServiceContext, ServiceError, ServiceResult};

/// See the module.
#[derive(Clone)]
pub struct SharedSubscriptionService(Arc<ServiceContext>);

fn not_found() -> ServiceError {
    ServiceError::not_found("Requested item wasn't found!")
}

fn non_existent() -> ServiceError {
    ServiceError::invalid("There is no such shared subscription to change!")
}

fn check(subscription: &ApplicationSharedSubscription) -> ServiceResult<()> {
    let problem = if subscription.name.trim().is_empty() {
        "A shared subscription needs a name!"
    } else if subscription.name.contains('\0') {
        "The name of a shared subscription must not have the null character!"
    } else if subscription.topic_filter.is_empty() {
        "A shared subscription needs a topicFilter!"
    } else if subscription.partitions < 1 {
        "A shared subscription needs partitions, 1 or more!"
    } else {
        return Ok(());
    };
    Err(ServiceError::invalid(problem))
}

impl SharedSubscriptionService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(context.clone())
    }

    /// Creates a shared subscription, or renames the one with the given id; nothing else of it can be changed. Its topic
    /// filter has to be valid.
    ///
    /// # Errors
    /// A rule is broken, the topic filter is taken, or the store failed.
    pub async fn save(
        &self,
        mut subscription: ApplicationSharedSubscription,
    ) -> ServiceResult<ApplicationSharedSubscription> {
        check(&subscription)?;
        let store = &self.0.stores.shared_subscriptions;
        if subscription.id.is_nil() {
            subscription.id = new_uuid();
            subscription.created_time = self.0.now();
            store.insert(&subscription).await?;
            return Ok(subscription);
        }
        let before = store.get(subscription.id).await?.ok_or_else(non_existent)?;
        if before.topic_filter != subscription.topic_filter {
            return Err(ServiceError::invalid(
                "The topicFilter of a shared subscription cannot be changed!",
            ));
        }
        if before.partitions != subscription.partitions {
            return Err(ServiceError::invalid(
                "The partitions of a shared subscription cannot be changed!",
            ));
        }
        if !store.rename(subscription.id, &subscription.name).await? {
            return Err(non_existent());
        }
        subscription.created_time = before.created_time;
        Ok(subscription)
    }

    /// The shared subscription with this id.
    ///
    /// # Errors
    /// There is none, or the store failed.
    pub async fn get(&self, id: Uuid) -> ServiceResult<ApplicationSharedSubscription> {
        let found = self.0.stores.shared_subscriptions.get(id).await?;
        found.ok_or_else(not_found)
    }

    /// The shared subscription of this topic filter.
    ///
    /// # Errors
    /// There is none, or the store failed.
    pub async fn by_filter(&self, filter: &str) -> ServiceResult<ApplicationSharedSubscription> {
        let found = self.0.stores.shared_subscriptions.by_filter(filter).await?;
        found.ok_or_else(not_found)
    }

    /// A page of the shared subscriptions.
    ///
    /// # Errors
    /// The page is none, or the store failed.
    pub async fn list(&self, page: &PageLink) -> ServiceResult<PageData<ApplicationSharedSubscription>> {
        Ok(self.0.stores.shared_subscriptions.list(page).await?)
    }

    /// Deletes a shared subscription. Groups and their clients stay.
    ///
    /// # Errors
    /// There is none, or the store failed.
    pub async fn delete(&self, id: Uuid) -> ServiceResult<()> {
        match self.0.stores.shared_subscriptions.delete(id).await? {
            true => Ok(()),
            false => Err(not_found()),
        }
    }
}
