//! Calculated fields on a worker: who is told what, and in which partition.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::{AssetFilter, DeviceFilter, RelationEnds, StateKey, StoreResult};
use fieldline_model::entity::calculated_field::RelationLevel;
use fieldline_model::entity::{CalculatedFieldDebug, EventBody, SearchDirection};
use fieldline_model::kv::Value;
use fieldline_model::message::{Message, MsgType};
use fieldline_model::page::PageLink;
use fieldline_model::{
    AssetProfileId, CalculatedFieldId, CustomerId, DeviceProfileId, EntityId, EntityType, Subject, TenantId,
};
use rustc_hash::FxHashMap;
use tracing::warn;
use uuid::Uuid;

use super::Worker;
use super::alarms::{Out, Told};
use super::walk::{Move, Ticket};
use crate::events::cut;
use crate::fields::{self, Change, Entry, FIELD_MESSAGE, Kind, News, Of, Page, Task, TenantFields};
use crate::message::{Msg, derive_id};
use crate::node::{NodeError, Step};
use crate::originators::Originator;
use crate::services::Services;

/// Entities of a profile that are told with one message.
const PAGE: u32 = 500;
/// News that one message may lead to in one partition. Fields that feed each other end long before: none takes part twice.
const MAX_NEWS: usize = 10_000;

/// The fields of the tenants that a worker has seen, and what waits to be told to them.
#[derive(Default)]
pub struct Feeding {
    generation: u64,
    /// `None` for a tenant without fields.
    tenants: FxHashMap<TenantId, Option<Arc<TenantFields>>>,
    /// What has been told by nodes and results, and not been handled yet.
    pub(super) fed: Vec<News>,
}

impl Feeding {
    /// The fields of a tenant that has any.
    pub(super) fn of(&self, tenant: TenantId) -> Option<&Arc<TenantFields>> {
        self.tenants.get(&tenant)?.as_ref()
    }
}

impl Worker {
    /// Brings the fields of a tenant up to date, which costs a look where they are.
    pub(super) async fn know_fields(&mut self, tenant: TenantId, store: &Applier) -> Result<(), Stopping> {
        let book = self.common.book.fields();
        let generation = book.generation();
        let feeding = &mut self.parts.feeding;
        if feeding.generation == generation && feeding.tenants.contains_key(&tenant) {
            return Ok(());
        }
        let book = Arc::clone(book);
        if feeding.generation != generation {
            let gone = book.gone_since(feeding.generation);
            feeding.tenants.clear();
            feeding.generation = generation;
            if !gone.is_empty() {
                self.parts.states.drop_keepers(&gone);
            }
        }
        loop {
            let book = book.clone();
            let loaded = self
                .common
                .services
                .runtime
                .spawn(async move { book.tenant(tenant).await })
                .await;
            match loaded {
                Ok(Ok(fields)) => {
                    let fields = Some(fields).filter(|fields| !fields.is_empty());
                    self.parts.feeding.tenants.insert(tenant, fields);
                    return Ok(());
                }
                Ok(Err(error)) => warn!(%tenant, %error, "cannot load calculated fields, trying again"),
                Err(error) => warn!(%tenant, %error, "loading calculated fields has failed"),
            }
            store.pause().await?;
        }
    }

    /// What a message from inside the platform says to fields, to be handled before its chain sees it.
    pub(super) fn news_of(&self, msg: &mut Msg) -> Option<News> {
        News::of_message(self.parts.feeding.of(msg.tenant)?, msg)
    }

    /// Handles news, and what comes of it.
    pub(super) async fn feed_fields(
        &mut self,
        ticket: Ticket,
        fed: Vec<News>,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let mut waiting = VecDeque::from(fed);
        let mut count = 0;
        loop {
            waiting.extend(self.parts.feeding.fed.drain(..));
            let Some(news) = waiting.pop_front() else {
                return Ok(());
            };
            count += 1;
            if count > MAX_NEWS {
                warn!(tenant = %news.subject.tenant, "a message leads to too many values of calculated fields");
                return Ok(());
            }
            self.spread(ticket, &news, store, moves).await?;
        }
    }

    /// Tells all fields that news concerns: those of the entity here, others in the partitions of their entities.
    async fn spread(
        &mut self,
        ticket: Ticket,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let subject = news.subject;
        let Some(fields) = self.parts.feeding.of(subject.tenant).cloned() else {
            return Ok(());
        };
        if news.change == Change::Gone {
            for entry in fields.all() {
                self.parts.forget(&key_of(entry, subject));
            }
            return Ok(());
        }
        self.spread_elsewhere(ticket, &fields, news, moves);
        let Some(originator) = self.find(subject, store).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        let own: Vec<Arc<Entry>> = fields
            .of_entity(subject.entity, profile)
            .filter(|entry| !news.comes_from(entry.id) && entry.concerns_own(news))
            .cloned()
            .collect();
        if own.is_empty() {
            return Ok(());
        }
        if !self.is_fields_home(ticket, subject, &originator) {
            let task = Task {
                field: None,
                news: news.clone(),
                page: None,
            };
            let message = task.message(subject.entity, self.now_ms());
            self.send(ticket, subject.tenant, vec![message], moves);
            return Ok(());
        }
        for entry in own {
            self.tell_field(ticket, &entry, subject, &originator, news, store, moves)
                .await?;
        }
        Ok(())
    }

    /// Whether what fields keep for an entity is kept in the partition of a ticket: that of its profile's queue, where the
    /// messages from inside the platform arrive as well.
    fn is_fields_home(&self, ticket: Ticket, subject: Subject, originator: &Originator) -> bool {
        let queue = originator
            .profile
            .as_ref()
            .and_then(|profile| profile.queue.as_deref());
        let home = queue.unwrap_or(fieldline_core::ingest::MAIN_QUEUE);
        let index = fieldline_core::ingest::partition_index(subject.entity.id, self.parts.partitions);
        *self.queue.name == *home && index == ticket.partition.index
    }

    /// Queues messages beside what is going on; it is done with when they are there.
    pub(super) fn send(
        &mut self,
        ticket: Ticket,
        tenant: TenantId,
        messages: Vec<Message>,
        moves: &mut Vec<Move>,
    ) {
        let services = self.common.services.clone();
        let work = async move { fields::push(&services, tenant, messages).await };
        self.beside(ticket, tenant, work, moves);
    }

    fn beside(
        &mut self,
        ticket: Ticket,
        tenant: TenantId,
        work: impl Future<Output = StoreResult<()>> + Send + 'static,
        moves: &mut Vec<Move>,
    ) {
        self.begin(ticket);
        let waiting = Step::wait(async move {
            match work.await {
                Ok(()) => Step::Done,
                Err(error) => {
                    let kind = MsgType::Custom(FIELD_MESSAGE.into());
                    let message = Message::new(kind, tenant.into(), 0, Default::default(), String::new());
                    Step::Fail(Msg::of(tenant, message), NodeError::from(error))
                }
            }
        });
        moves.push(Move::Answer(waiting, None, tenant));
    }

    /// Tells the fields of other entities that look at values of this one.
    fn spread_elsewhere(
        &mut self,
        ticket: Ticket,
        fields: &Arc<TenantFields>,
        news: &News,
        moves: &mut Vec<Move>,
    ) {
        let (subject, now) = (news.subject, self.now_ms());
        let mut messages = Vec::new();
        let mut tell = |entry: &Arc<Entry>, owner: Option<EntityId>| {
            let page = fields::is_profile(entry.entity).then_some(Page { number: 0, owner });
            let task = Task {
                field: Some(entry.id),
                news: news.clone(),
                page,
            };
            messages.push(task.message(entry.entity, now));
        };
        for entry in fields.naming(subject.entity) {
            let is_named = |of: &Of| *of == Of::Entity(subject.entity);
            if !news.comes_from(entry.id) && entry.taken_from(news).any(|watch| is_named(&watch.of)) {
                tell(entry, None);
            }
        }
        if matches!(
            subject.entity.entity_type,
            EntityType::Customer | EntityType::Tenant
        ) {
            for entry in fields.of_owners() {
                if !news.comes_from(entry.id) && entry.taken_from(news).any(|watch| watch.of == Of::Owner) {
                    tell(entry, Some(subject.entity));
                }
            }
        }
        if !messages.is_empty() {
            self.send(ticket, subject.tenant, messages, moves);
        }
        for entry in fields.of_relations() {
            if news.comes_from(entry.id) {
                continue;
            }
            let mut paths: Vec<Arc<[RelationLevel]>> = Vec::new();
            for watch in entry.taken_from(news) {
                match (&watch.of, &entry.kind) {
                    (Of::Path(path), _) if !paths.contains(path) => paths.push(path.clone()),
                    (Of::Related, Kind::Values(field)) => {
                        paths.extend(field.relation().map(|level| [level.clone()].into()));
                    }
                    _ => {}
                }
            }
            paths.dedup();
            if !paths.is_empty() {
                let work = tell_related(
                    self.common.services.clone(),
                    entry.clone(),
                    paths,
                    news.clone(),
                    now,
                );
                self.beside(ticket, subject.tenant, work, moves);
            }
        }
    }

    /// Does what a message brings to fields in this partition.
    pub(super) async fn field_message(
        &mut self,
        ticket: Ticket,
        msg: &Msg,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let Some(task) = Task::of_message(msg.tenant, &msg.data) else {
            warn!(tenant = %msg.tenant, "skipped news for calculated fields that cannot be read");
            return Ok(());
        };
        let Some(fields) = self.parts.feeding.of(msg.tenant).cloned() else {
            return Ok(());
        };
        if let Some(page) = task.page {
            let (services, profile, now) = (self.common.services.clone(), msg.originator, self.now_ms());
            let work = tell_page(services, task, page, profile, now);
            self.beside(ticket, msg.tenant, work, moves);
            return Ok(());
        }
        let subject = msg.subject();
        let Some(originator) = self.find(subject, store).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        let concerned: Vec<Arc<Entry>> = match task.field {
            Some(field) => {
                let entry = fields
                    .get(field)
                    .filter(|entry| entry.entity == subject.entity || Some(entry.entity) == profile);
                entry.into_iter().cloned().collect()
            }
            None => fields
                .of_entity(subject.entity, profile)
                .filter(|entry| entry.concerns_own(&task.news))
                .cloned()
                .collect(),
        };
        for entry in concerned {
            if !task.news.comes_from(entry.id) {
                self.tell_field(ticket, &entry, subject, &originator, &task.news, store, moves)
                    .await?;
            }
        }
        self.feed_fields(ticket, Vec::new(), store, moves).await
    }

    /// Something that a field keeps has come due.
    pub(super) async fn field_due(
        &mut self,
        ticket: Ticket,
        key: StateKey,
        value: Bytes,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let subject = key.subject;
        let fields = self.parts.feeding.of(subject.tenant).cloned();
        let entry = fields
            .as_ref()
            .and_then(|fields| fields.get(CalculatedFieldId(key.keeper)));
        let Some(entry) = entry.cloned() else {
            return Ok(());
        };
        let Some(originator) = self.find(subject, store).await? else {
            return Ok(());
        };
        let profile = originator.profile.as_ref().map(|profile| profile.id);
        if entry.entity != subject.entity && Some(entry.entity) != profile {
            // The entity has got another profile.
            return Ok(());
        }
        self.parts.states.put(ticket.partition, key.clone(), None, &value);
        match &entry.kind {
            Kind::Values(field) => {
                let (field, news) = (field.clone(), timer(subject, entry.id, self.now_ms()));
                self.values_due(ticket, &entry, &field, &originator, &news, store, moves)
                    .await?;
            }
            Kind::Alarm(rules, _) => {
                let (rules, msg) = (
                    rules.clone(),
                    self.field_msg(&entry, &originator, &timer(subject, entry.id, self.now_ms())),
                );
                let out = Out::Chain(entry.clone());
                self.evaluate_alarms(
                    ticket,
                    key,
                    &rules,
                    &originator,
                    (Told::Timer, &msg),
                    &out,
                    store,
                    moves,
                )
                .await?;
            }
            Kind::Broken(_) => {}
        }
        self.feed_fields(ticket, Vec::new(), store, moves).await
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    async fn tell_field(
        &mut self,
        ticket: Ticket,
        entry: &Arc<Entry>,
        subject: Subject,
        originator: &Arc<Originator>,
        news: &News,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let key = key_of(entry, subject);
        if news.change == Change::Moved && self.parts.states.peek(&key).is_some() {
            return Ok(());
        }
        match &entry.kind {
            Kind::Values(field) => {
                let field = field.clone();
                self.tell_values(ticket, entry, &field, key, originator, news, store, moves)
                    .await
            }
            Kind::Alarm(rules, _) => {
                let Some(told) = told(entry, originator, news) else {
                    return Ok(());
                };
                let (rules, msg) = (rules.clone(), self.field_msg(entry, originator, news));
                let out = Out::Chain(entry.clone());
                self.evaluate_alarms(ticket, key, &rules, originator, (told, &msg), &out, store, moves)
                    .await
            }
            Kind::Broken(_) => Ok(()),
        }
    }

    /// What messages about results of a field for an entity are made from.
    pub(super) fn field_msg(&self, entry: &Entry, originator: &Originator, news: &News) -> Msg {
        let (high, low) = entry.id.0.as_u64_pair();
        let (own, other) = originator.id.id.as_u64_pair();
        let now = self.now_ms();
        let message = Message {
            id: derive_id(news.msg, high ^ low.rotate_left(9) ^ own.rotate_left(31) ^ other),
            customer: originator.customer,
            ..Message::new(
                MsgType::from(&*news.kind),
                originator.id,
                now,
                Default::default(),
                "{}".to_owned(),
            )
        };
        Msg {
            fields: (!news.previous.is_empty()).then(|| news.previous.clone()),
            ..Msg::of(news.subject.tenant, message)
        }
    }

    /// Shows people who look for mistakes what has become of an evaluation.
    pub(super) fn show_field(&self, entry: &Entry, entity: EntityId, news: &News, shown: Shown) {
        let now = self.now_ms();
        let is_on = if shown.error.is_some() {
            entry.debug.stores_failures(now)
        } else {
            entry.debug.stores_all(now)
        };
        let tenant = news.subject.tenant;
        if !is_on || !self.common.events.may_debug(tenant, entry.id.into()) {
            return;
        }
        let body = CalculatedFieldDebug {
            calculated_field: entry.id,
            subject: Some(entity),
            msg_id: Some(news.msg),
            msg_type: Some(news.kind.to_string()),
            arguments: shown.arguments.map(cut),
            result: shown.result.map(cut),
            error: shown.error.map(cut),
        };
        self.common
            .events
            .record(tenant, entry.id.into(), EventBody::CalculatedField(body));
    }
}

/// What a debug event of a field shows.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) arguments: Option<String>,
    pub(super) result: Option<String>,
    pub(super) error: Option<String>,
}

pub(super) fn key_of(entry: &Entry, subject: Subject) -> StateKey {
    StateKey {
        subject,
        keeper: entry.id.0,
        number: 0,
    }
}

/// News of time alone.
fn timer(subject: Subject, field: CalculatedFieldId, now: i64) -> News {
    News {
        subject,
        change: Change::Moved,
        msg: derive_id(field.0, now.unsigned_abs()),
        kind: "REEVALUATION_MSG".into(),
        previous: Arc::default(),
    }
}

/// The numbers of the arguments that take a value of an entity.
pub(super) fn takers<'a>(
    entry: &'a Entry,
    evaluated: &Originator,
    source: Subject,
) -> impl Iterator<Item = (usize, &'a fields::Watch)> {
    let (own, owner) = (evaluated.id, owner_of(evaluated, source.tenant));
    let source = source.entity;
    entry
        .watches
        .iter()
        .enumerate()
        .filter(move |(_, watch)| match &watch.of {
            Of::Own => source == own,
            Of::Entity(entity) => *entity == source,
            Of::Owner => source == owner,
            Of::Path(_) | Of::Related => source != own,
        })
}

/// The customer or tenant that has an entity.
pub(super) fn owner_of(originator: &Originator, tenant: TenantId) -> EntityId {
    match originator.customer {
        Some(customer) if originator.id != EntityId::from(customer) => customer.into(),
        _ => tenant.into(),
    }
}

/// What news says to alarm rules.
fn told(entry: &Entry, evaluated: &Originator, news: &News) -> Option<Told> {
    let takers = || takers(entry, evaluated, news.subject);
    Some(match &news.change {
        Change::Values { scope, values } => {
            let mut taken: Vec<(u16, i64, Value)> = Vec::new();
            for (ts, key, value) in values {
                let needs = takers().filter(|(_, watch)| watch.takes(*scope, key));
                taken.extend(needs.map(|(need, _)| (need as u16, *ts, value.clone())));
            }
            Told::Needs(taken)
        }
        Change::Removed { scope, keys } => {
            let is_removed = |watch: &fields::Watch| keys.iter().any(|key| watch.takes(*scope, key));
            Told::RemovedNeeds(
                takers()
                    .filter(|(_, watch)| is_removed(watch))
                    .map(|(need, _)| need)
                    .collect(),
            )
        }
        Change::Started | Change::Moved | Change::Owner => Told::Started,
        Change::Acknowledged(id) => Told::Acknowledged(*id),
        Change::Cleared(id) => Told::Cleared(*id),
        Change::Deleted(id) => Told::Deleted(*id),
        Change::Relations | Change::Gone => return None,
    })
}

/// Tells the entities from which a path of relations leads to the one that has changed.
async fn tell_related(
    services: Arc<Services>,
    entry: Arc<Entry>,
    paths: Vec<Arc<[RelationLevel]>>,
    news: News,
    now: i64,
) -> StoreResult<()> {
    let tenant = news.subject.tenant;
    let mut found: Vec<EntityId> = Vec::new();
    for path in paths {
        let mut ends = vec![news.subject.entity];
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
            let known = services.originators.get(Subject { tenant, entity }).await?;
            known.and_then(|known| Some(known.profile.as_ref()?.id)) == Some(entry.entity)
        } else {
            entity == entry.entity
        };
        if has_field {
            let task = Task {
                field: Some(entry.id),
                news: news.clone(),
                page: None,
            };
            messages.push(task.message(entity, now));
        }
    }
    fields::push(&services, tenant, messages).await
}

/// The entities at the other ends of an entity's relations.
pub(super) async fn step(
    services: &Services,
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
        .map(|relation| relation.found(direction))
        .collect())
}

/// Tells a page of the entities of a profile, and passes the rest on to another message.
async fn tell_page(
    services: Arc<Services>,
    task: Task,
    page: Page,
    profile: EntityId,
    now: i64,
) -> StoreResult<()> {
    let tenant = task.news.subject.tenant;
    let link = PageLink {
        page: page.number,
        page_size: PAGE,
        sort_property: Some("createdTime".to_owned()),
        sort_order: Some(fieldline_model::page::SortOrder::Asc),
        ..PageLink::default()
    };
    let customer = page
        .owner
        .filter(|owner| owner.entity_type == EntityType::Customer)
        .map(|owner| CustomerId(owner.id));
    // What has no customer belongs to the tenant.
    let of_tenant = page
        .owner
        .is_some_and(|owner| owner.entity_type == EntityType::Tenant);
    let is_wanted = |customer: CustomerId| !of_tenant || customer.is_null();
    let (entities, has_next): (Vec<EntityId>, bool) = if profile.entity_type == EntityType::DeviceProfile {
        let filter = DeviceFilter {
            customer,
            profile: Some(DeviceProfileId(profile.id)),
            ..DeviceFilter::default()
        };
        let found = services.stores.devices.list(tenant, &filter, &link).await?;
        let wanted = found
            .data
            .iter()
            .filter(|info| is_wanted(info.device.customer_id));
        (
            wanted.filter_map(|info| Some(info.device.id?.into())).collect(),
            found.has_next,
        )
    } else {
        let filter = AssetFilter {
            customer,
            profile: Some(AssetProfileId(profile.id)),
            ..AssetFilter::default()
        };
        let found = services.stores.assets.list(tenant, &filter, &link).await?;
        let wanted = found.data.iter().filter(|info| is_wanted(info.asset.customer_id));
        (
            wanted.filter_map(|info| Some(info.asset.id?.into())).collect(),
            found.has_next,
        )
    };
    let single = Task {
        page: None,
        ..task.clone()
    };
    let mut messages: Vec<Message> = entities
        .iter()
        .map(|entity| single.message(*entity, now))
        .collect();
    if has_next {
        let rest = Task {
            page: Some(Page {
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

/// A number that tells results apart.
pub(super) fn salt(field: Uuid, target: EntityId, number: u64) -> u64 {
    let (high, low) = field.as_u64_pair();
    let (a, b) = target.id.as_u64_pair();
    (high ^ low.rotate_left(13) ^ a.rotate_left(27) ^ b).wrapping_add(number)
}
