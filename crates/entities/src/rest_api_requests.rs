//! Clients of the REST API that call rule chains, and wait for what a chain answers.
//!
//! A call is a message whose metadata says whom to answer. It is as durable as any other; the wait for its answer is not: a
//! client that is gone after a restart is not waited with, and what a chain answers to it is dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ports::{RestApiResponder, RuleEngine};
use fieldline_model::TenantId;
use fieldline_model::message::QueueMessage;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use crate::services::{ServiceError, ServiceErrorKind, ServiceResult};

/// Names in the metadata of a call, which the node *rest call reply* reads by default.
const SERVICE: &str = "serviceId";
const REQUEST: &str = "requestUUID";
/// When nobody waits any more, milliseconds.
const EXPIRES: &str = "expirationTime";

/// How many calls may wait at the same time.
#[derive(Debug, Clone, Copy)]
pub struct RestRequestLimits {
    /// Of all tenants.
    pub total: usize,
    /// Of one tenant, so that one whose chains never answer leaves room for the others.
    pub of_tenant: usize,
}

impl Default for RestRequestLimits {
    fn default() -> Self {
        Self {
            total: 10_000,
            of_tenant: 1_000,
        }
    }
}

/// See the module.
pub struct RestApiRequests {
    service: Box<str>,
    limits: RestRequestLimits,
    state: Mutex<PendingRestRequests>,
}

#[derive(Default)]
struct PendingRestRequests {
    closed: bool,
    waiting: HashMap<Uuid, (TenantId, oneshot::Sender<QueueMessage>)>,
    of_tenant: HashMap<TenantId, usize>,
}

impl RestApiRequests {
    /// Calls that come to the server of this name.
    pub fn new(service: &str, limits: RestRequestLimits) -> Arc<Self> {
        Arc::new(Self {
            service: service.into(),
            limits,
            state: Mutex::default(),
        })
    }

    /// Queues a message, and waits for the message that a chain of the tenant answers with; `None` when there is none
    /// within the time. The metadata of the message gets what an answer needs.
    ///
    /// # Errors
    /// The message could not be queued, too many calls wait, or the program stops.
    pub async fn call(
        &self,
        engine: &dyn RuleEngine,
        tenant: TenantId,
        mut message: QueueMessage,
        patience: Duration,
    ) -> ServiceResult<Option<QueueMessage>> {
        let until = Instant::now() + patience;
        let (answer, place) = self.wait(tenant)?;
        let patience_ms = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
        message.metadata.extend([
            (SERVICE, self.service.to_string()),
            (REQUEST, place.request.to_string()),
            (EXPIRES, message.ts.saturating_add(patience_ms).to_string()),
        ]);
        engine.push(tenant, message).await?;
        match tokio::time::timeout_at(until, answer).await {
            Ok(Ok(message)) => Ok(Some(message)),
            Ok(Err(_)) => Err(stopping()),
            Err(_) => Ok(None),
        }
    }

    /// Ends all calls that wait, and takes no more: the program stops.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
    }

    fn wait(
        &self,
        tenant: TenantId,
    ) -> ServiceResult<(oneshot::Receiver<QueueMessage>, RestRequestPermit<'_>)> {
        let (sender, receiver) = oneshot::channel();
        let request = fieldline_model::new_uuid();
        let mut state = self.state.lock();
        if state.closed {
            return Err(stopping());
        }
        let of_tenant = state.of_tenant.get(&tenant).copied().unwrap_or(0);
        if of_tenant >= self.limits.of_tenant || state.waiting.len() >= self.limits.total {
            return Err(ServiceError::new(
                ServiceErrorKind::TooManyRequests,
                "Too many REST API calls wait for answers of the rule engine!",
            ));
        }
        state.of_tenant.insert(tenant, of_tenant + 1);
        state.waiting.insert(request, (tenant, sender));
        let callers = self;
        Ok((
            receiver,
            RestRequestPermit {
                requests: callers,
                tenant,
                request,
            },
        ))
    }
}

fn stopping() -> ServiceError {
    ServiceError::new(ServiceErrorKind::Unavailable, "The server is stopping")
}

/// A call that waits; no more when this is dropped.
struct RestRequestPermit<'a> {
    requests: &'a RestApiRequests,
    tenant: TenantId,
    request: Uuid,
}

impl Drop for RestRequestPermit<'_> {
    fn drop(&mut self) {
        let mut state = self.requests.state.lock();
        state.waiting.remove(&self.request);
        if let Some(count) = state.of_tenant.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                state.of_tenant.remove(&self.tenant);
            }
        }
    }
}

impl RestApiResponder for RestApiRequests {
    fn answer(&self, service: &str, tenant: TenantId, request: Uuid, message: QueueMessage) {
        if service != &*self.service {
            return;
        }
        let mut state = self.state.lock();
        // A tenant answers its own calls only, whatever its chains put into the metadata.
        if state
            .waiting
            .get(&request)
            .is_some_and(|(caller, _)| *caller == tenant)
            && let Some((_, sender)) = state.waiting.remove(&request)
        {
            // The client may have given up just now.
            let _ = sender.send(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
    use fieldline_model::message::{MetadataMap, MsgType};
    use fieldline_model::{EntityId, EntityType};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);
    const SMALL: RestRequestLimits = RestRequestLimits {
        total: 3,
        of_tenant: 2,
    };

    fn tenant(n: u128) -> TenantId {
        TenantId(Uuid::from_u128(n))
    }

    fn message(body: &str) -> QueueMessage {
        let device = EntityId::new(EntityType::Device, Uuid::from_u128(7));
        QueueMessage::new(
            MsgType::RestApiRequest,
            device,
            1_000,
            MetadataMap::new(),
            body.to_owned(),
        )
    }

    fn request_of(message: &QueueMessage) -> Uuid {
        message.metadata.get(REQUEST).unwrap().parse().unwrap()
    }

    /// A rule engine whose chain answers on some server, as some tenant.
    struct Chain {
        callers: Arc<RestApiRequests>,
        service: &'static str,
        answers_as: Option<TenantId>,
    }

    #[async_trait]
    impl RuleEngine for Chain {
        async fn push(&self, tenant: TenantId, asked: QueueMessage) -> StoreResult<()> {
            assert_eq!(asked.metadata.get(SERVICE), Some("here"));
            assert_eq!(asked.metadata.get(EXPIRES), Some("11000"));
            self.callers.answer(
                self.service,
                self.answers_as.unwrap_or(tenant),
                request_of(&asked),
                message("answer"),
            );
            Ok(())
        }
    }

    /// A rule engine that takes nothing.
    struct Full;

    #[async_trait]
    impl RuleEngine for Full {
        async fn push(&self, _: TenantId, _: QueueMessage) -> StoreResult<()> {
            Err(StoreError::new(StoreErrorKind::Unavailable, "full"))
        }
    }

    /// What a call gives that is answered on that server, as that tenant.
    async fn called(service: &'static str, answers_as: Option<TenantId>) -> Option<QueueMessage> {
        let callers = RestApiRequests::new("here", SMALL);
        let chain = Chain {
            callers: callers.clone(),
            service,
            answers_as,
        };
        let answer = callers
            .call(&chain, tenant(1), message("question"), PATIENCE)
            .await;
        assert!(callers.state.lock().waiting.is_empty() && callers.state.lock().of_tenant.is_empty());
        answer.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_answered_by_its_own_tenant_on_its_own_server_only() {
        assert_eq!(called("here", None).await.unwrap().data, "answer");
        assert_eq!(called("here", Some(tenant(2))).await, None);
        assert_eq!(called("elsewhere", None).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_nobody_answers_ends_when_its_time_is_up_and_gives_its_place_back() {
        let callers = RestApiRequests::new("here", SMALL);
        let begun = Instant::now();
        let silent = fieldline_core::ports::NoRuleEngine;
        for _ in 0..5 {
            let answer = callers.call(&silent, tenant(1), message("?"), PATIENCE).await;
            assert_eq!(answer.unwrap(), None);
        }
        assert_eq!(begun.elapsed(), PATIENCE * 5);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_queued_does_not_wait() {
        let callers = RestApiRequests::new("here", SMALL);
        let error = callers
            .call(&Full, tenant(1), message("?"), PATIENCE)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ServiceErrorKind::Unavailable);
        assert!(callers.state.lock().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_and_all_together_have_so_many_calls_that_wait() {
        let callers = RestApiRequests::new("here", SMALL);
        let places: Vec<_> = [1, 1, 2].map(|n| callers.wait(tenant(n)).unwrap()).into();
        for (n, why) in [(1, "the tenant has two"), (3, "all have three")] {
            let refused = callers.wait(tenant(n)).err().unwrap();
            assert_eq!(refused.kind(), ServiceErrorKind::TooManyRequests, "{why}");
        }
        drop(places);
        callers.wait(tenant(1)).unwrap();
        let places: Vec<_> = [1, 1].map(|n| callers.wait(tenant(n)).unwrap()).into();
        assert_eq!(
            callers.wait(tenant(1)).err().unwrap().kind(),
            ServiceErrorKind::TooManyRequests
        );
        callers.wait(tenant(2)).unwrap();
        drop(places);
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_stops_keeps_nobody_waiting() {
        let callers = RestApiRequests::new("here", SMALL);
        let silent = fieldline_core::ports::NoRuleEngine;
        let waits = callers.call(&silent, tenant(1), message("?"), PATIENCE);
        let (ended, ()) = tokio::join!(waits, async { callers.close() });
        assert_eq!(ended.unwrap_err().kind(), ServiceErrorKind::Unavailable);
        let refused = callers.call(&silent, tenant(1), message("?"), PATIENCE).await;
        assert_eq!(refused.unwrap_err().kind(), ServiceErrorKind::Unavailable);
    }
}
