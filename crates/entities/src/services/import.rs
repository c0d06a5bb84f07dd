//! Imports of many devices or assets from one CSV text: lines that are wrong are named and left out, the rest is stored in
//! large transactions.
//!
//! What a line says of a new entity is stored whole: its values go to their store before the transaction with the entity is
//! committed, so that a crash in between leaves values that nobody can see, and no entity without its values. Those of an
//! entity that is there already are seen at once, so they are stored after it.
//!
//! Once something is stored, the answer says so, whatever fails later: lines that are not stored then are named like wrong
//! ones.

mod asset;
pub(crate) mod csv;
mod device;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod line;
mod values;

use std::collections::{HashMap, HashSet};
use std::iter::Peekable;
use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::any_entity::{EntityKind as _, EntityVariant as _};
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::{
    AssignableEntity, AssignableStore, ImportRow, ImportValueStore as _, StoreError,
};
use fieldline_core::usage::{ApiFeature, TenantUsage, UsageKey, UsageStore};
use fieldline_devices::downlink::{AttributeUpdate, DeviceLink};
use fieldline_model::entity::{ImportColumnType as Column, ImportRequest, ImportResult, StoredEntity as _};
use fieldline_model::{CustomerId, EntityId, EntityKey, TenantId, new_uuid};
use futures::stream::{self, StreamExt as _};
use serde_json::Value;
use tracing::warn;

use self::line::ImportLine;
use self::values::{ImportBatchValues, ImportLineValues};
use super::{EntityActionService, ServiceContext, ServiceError, ServiceResult, quota};
use crate::access::Principal;
use crate::audit::raw;

/// Lines that are stored together.
const BATCH: usize = 500;
/// Messages on their way to the rule engine at the same time.
const MAX_CONCURRENT_MESSAGES: usize = 500;

/// Imports of many entities.
#[derive(Clone)]
pub struct BulkImportService {
    context: Arc<ServiceContext>,
    actions: EntityActionService,
}

/// What an import works with besides the services.
#[derive(Clone, Copy)]
pub struct ImportContext<'l> {
    /// How much tenants use.
    pub usage: &'l UsageStore,
    /// The way to the sessions of devices, which hear of their shared attributes.
    pub devices: &'l dyn DeviceLink,
    /// Whether cells of values that hold a number become numbers.
    pub type_cast: bool,
}

/// An entity as it was stored.
struct ImportedEntity<E> {
    line: ImportLine,
    create: bool,
    entity: E,
}

/// What lines set of every kind of entities.
struct ImportFieldsMut<'e> {
    label: &'e mut Option<String>,
    info: &'e mut Option<Value>,
    type_name: &'e mut String,
    version: &'e mut Option<i64>,
}

/// What is particular to imports of devices, and of assets.
trait EntityImport: Send + Sync {
    /// The kind.
    type ImportEntity: AssignableEntity + Default;

    /// What lines set of it.
    fn parts(entity: &mut Self::ImportEntity) -> ImportFieldsMut<'_>;

    /// The rest of what a line makes of the entity that has its name, or of a new one; or why it cannot be stored.
    fn draft(
        &mut self,
        line: &ImportLine,
        entity: Self::ImportEntity,
        create: bool,
    ) -> impl Future<Output = ServiceResult<ImportRow<Self::ImportEntity>>> + Send;

    /// What has changed.
    fn changes(&self, stored: &ImportedEntity<Self::ImportEntity>) -> Vec<EntityChange>;

    /// Attributes that a new entity has besides those of its line.
    fn first_attributes(&self, _out: &mut Vec<u8>) {}

    /// Seconds that points of an entity are kept, where that is not as the tenant's profile says.
    fn own_ttl_seconds(&self, _: &Self::ImportEntity) -> Option<u32> {
        None
    }
}

impl BulkImportService {
    pub(super) fn new(context: &Arc<ServiceContext>, actions: &EntityActionService) -> Self {
        Self {
            context: Arc::clone(context),
            actions: actions.clone(),
        }
    }

    /// Creates and changes devices. A device is known by its name.
    ///
    /// # Errors
    /// The mapping makes no sense, or the store failed before anything was stored.
    pub async fn devices(
        &self,
        who: &Principal,
        links: ImportContext<'_>,
        request: ImportRequest,
    ) -> ServiceResult<ImportResult> {
        let kind = device::DeviceImport::new(&self.context, who.tenant);
        self.run(kind, who, links, request).await
    }

    /// Creates and changes assets. An asset is known by its name.
    ///
    /// # Errors
    /// The mapping makes no sense, or the store failed before anything was stored.
    pub async fn assets(
        &self,
        who: &Principal,
        links: ImportContext<'_>,
        request: ImportRequest,
    ) -> ServiceResult<ImportResult> {
        let kind = asset::AssetImport::new(&self.context, who.tenant);
        self.run(kind, who, links, request).await
    }

    async fn run<K: EntityImport>(
        &self,
        kind: K,
        who: &Principal,
        links: ImportContext<'_>,
        request: ImportRequest,
    ) -> ServiceResult<ImportResult> {
        let mapping = request.mapping;
        line::check(&mapping)?;
        let (lines, problems) = line::read_all(&request.file, &mapping, links.type_cast)?;
        let tenant = who.tenant;
        let mut run = ImportRun {
            kind,
            context: &self.context,
            who,
            actions: self.actions.with_principal(who).await,
            usage: links.usage.of(tenant),
            devices: links.devices,
            ttl_seconds: tenant_ttl(&self.context, tenant).await?,
            room: quota::room(&self.context, tenant, K::ImportEntity::TYPE).await?,
            update: mapping.update == Some(true),
            result: ImportResult::default(),
            problems,
            broken: None,
        };
        let mut lines = lines.into_iter().peekable();
        while lines.peek().is_some() && run.broken.is_none() {
            run.batch(next_batch(&mut lines)).await?;
        }
        run.leave(lines.map(|line| line.number));
        let ImportRun {
            mut problems,
            mut result,
            ..
        } = run;
        problems.sort();
        result.errors = u32::try_from(problems.len()).unwrap_or(u32::MAX);
        let named = problems
            .into_iter()
            .map(|(line, problem)| format!("Line {line}: {problem}"));
        result.errors_list = named.collect();
        Ok(result)
    }
}

/// An import on its way.
struct ImportRun<'r, K> {
    kind: K,
    context: &'r ServiceContext,
    who: &'r Principal,
    actions: EntityActionService,
    usage: Arc<TenantUsage>,
    devices: &'r dyn DeviceLink,
    /// Seconds that the tenant's profile has points kept; 0 for ever.
    ttl_seconds: u32,
    room: Option<quota::EntityQuota>,
    /// Whether values of entities that exist already are saved.
    update: bool,
    result: ImportResult,
    problems: Vec<(usize, String)>,
    /// Why the lines that are left are not stored: the store has failed.
    broken: Option<String>,
}

/// Lines with what they become.
type ImportDrafts<E> = Vec<(ImportLine, ImportRow<E>)>;

impl<'r, K: EntityImport> ImportRun<'r, K> {
    /// Stores lines with different names.
    async fn batch(&mut self, lines: Vec<ImportLine>) -> ServiceResult<()> {
        let store = K::ImportEntity::store(&self.context.stores);
        let names: Vec<&str> = lines.iter().filter_map(ImportLine::name).collect();
        let found = match store.by_names(self.who.tenant, &names).await {
            Ok(found) => found,
            Err(error) => return self.give_up(lines.iter().map(|line| line.number), error),
        };
        let mut known: HashMap<String, K::ImportEntity> = found
            .into_iter()
            .map(|entity| (entity.fields().name.to_owned(), entity))
            .collect();
        let mut drafts = Vec::with_capacity(lines.len());
        for mut line in lines {
            let old = line.name().and_then(|name| known.remove(name));
            let create = old.is_none();
            if !create && !self.update {
                line.forget_values();
            }
            let entity = begin::<K>(&line, old, self.who.tenant, self.context.now());
            match self.kind.draft(&line, entity, create).await {
                Ok(row) => drafts.push((line, row)),
                Err(error) => self.problems.push((line.number, error.message().to_owned())),
            }
        }
        while !drafts.is_empty() {
            if self.broken.is_some() {
                self.leave(drafts.iter().map(|(line, _)| line.number));
                break;
            }
            let (now, later) = self.as_many_as_fit(drafts);
            drafts = later;
            if now.is_empty() {
                self.refuse(drafts);
                break;
            }
            self.store(store, now).await?;
        }
        Ok(())
    }

    /// Those that there is room for, and those that wait for whether all of them are stored.
    fn as_many_as_fit(
        &mut self,
        drafts: ImportDrafts<K::ImportEntity>,
    ) -> (ImportDrafts<K::ImportEntity>, ImportDrafts<K::ImportEntity>) {
        let (mut now, mut later) = (Vec::with_capacity(drafts.len()), Vec::new());
        for draft in drafts {
            match self.room.as_mut().filter(|_| draft.1.create) {
                Some(room) if room.left == 0 => later.push(draft),
                Some(room) => {
                    room.left -= 1;
                    now.push(draft);
                }
                None => now.push(draft),
            }
        }
        (now, later)
    }

    fn refuse(&mut self, drafts: ImportDrafts<K::ImportEntity>) {
        let Some(room) = &self.room else { return };
        for (line, _) in drafts {
            self.problems
                .push((line.number, room.refuse().message().to_owned()));
        }
    }

    async fn store(
        &mut self,
        store: &dyn AssignableStore<K::ImportEntity>,
        drafts: ImportDrafts<K::ImportEntity>,
    ) -> ServiceResult<()> {
        let (lines, rows): (Vec<ImportLine>, Vec<_>) = drafts.into_iter().unzip();
        let creates: Vec<bool> = rows.iter().map(|row| row.create).collect();
        let values = self.values(&lines, &rows);
        let saved = match store.import(rows, &values).await {
            Ok(saved) => saved,
            Err(error) => return self.give_up(lines.iter().map(|line| line.number), error),
        };
        let updated: Vec<EntityId> = saved
            .iter()
            .zip(&creates)
            .filter(|(_, create)| !**create)
            .filter_map(|(saved, _)| Some(id_of(saved.as_ref().ok()?)))
            .collect();
        let unsaved = values.save(&updated).await.err();
        if let Some(error) = &unsaved {
            warn!(%error, "values of an import were not stored");
        }
        let is_whole = |create: bool, line: &ImportLine| create || unsaved.is_none() || !line.has_values();
        let mut points = 0;
        for ((line, create), saved) in lines.iter().zip(&creates).zip(&saved) {
            if let Some(entity) = saved.as_ref().ok().filter(|_| is_whole(*create, line)) {
                points += values.points(id_of(entity));
            }
        }
        self.usage.add(UsageKey::StorageDataPoints, points);
        let now = values.now;
        let mut stored = Vec::with_capacity(lines.len());
        for ((mut line, create), saved) in lines.into_iter().zip(creates).zip(saved) {
            match saved {
                Ok(entity) => {
                    if is_whole(create, &line) {
                        self.result.created += u32::from(create);
                        self.result.updated += u32::from(!create);
                    } else {
                        let problem = unsaved.as_ref().map_or("", |error| error.message());
                        self.problems
                            .push((line.number, format!("The values were not stored: {problem}")));
                        line.forget_values();
                    }
                    stored.push(ImportedEntity { line, create, entity });
                }
                Err(error) => {
                    if error.kind().is_about_the_store() {
                        warn!(%error, line = line.number, "a line of an import was not stored");
                    }
                    let error = ServiceError::from(error);
                    self.problems.push((line.number, error.message().to_owned()));
                    if let Some(room) = self.room.as_mut().filter(|_| create) {
                        room.left += 1;
                    }
                }
            }
        }
        self.publish_stored(&stored, now).await;
        Ok(())
    }

    /// Ends an import whose store has failed. Where something is stored already, its answer says what.
    fn give_up(&mut self, lines: impl Iterator<Item = usize>, error: StoreError) -> ServiceResult<()> {
        if self.result.created + self.result.updated == 0 {
            return Err(error.into());
        }
        warn!(%error, "an import ends early");
        self.broken = Some(ServiceError::from(error).message().to_owned());
        self.leave(lines);
        Ok(())
    }

    /// Names lines that are not stored because the store has failed.
    fn leave(&mut self, lines: impl Iterator<Item = usize>) {
        if let Some(problem) = &self.broken {
            self.problems.extend(lines.map(|line| (line, problem.clone())));
        }
    }

    /// What the values of these rows are.
    fn values<'l>(
        &self,
        lines: &'l [ImportLine],
        rows: &[ImportRow<K::ImportEntity>],
    ) -> ImportBatchValues<'l>
    where
        'r: 'l,
    {
        let mut first = Vec::new();
        self.kind.first_attributes(&mut first);
        let of = |(line, row): (&'l ImportLine, &ImportRow<K::ImportEntity>)| {
            let own = self.kind.own_ttl_seconds(&row.entity);
            let of = ImportLineValues {
                line,
                create: row.create,
                ttl_seconds: own.unwrap_or(self.ttl_seconds),
            };
            (id_of(&row.entity), of)
        };
        ImportBatchValues {
            context: self.context,
            tenant: self.who.tenant,
            now: self.context.now(),
            first,
            keeps_points: self.usage.allows(ApiFeature::Storage),
            of: lines.iter().zip(rows).map(of).collect(),
        }
    }

    /// Tells everybody about what was stored.
    async fn publish_stored(&self, stored: &[ImportedEntity<K::ImportEntity>], now: i64) {
        for one in stored {
            for change in self.kind.changes(one) {
                self.context.publish_change(change);
            }
            let subject = EntityKey {
                tenant: self.who.tenant,
                entity: id_of(&one.entity),
            };
            for (scope, values) in one.line.attributes() {
                self.context.publish_change(EntityChange {
                    subject,
                    what: ChangeKind::Attributes(scope),
                });
                let update = AttributeUpdate::Saved(Bytes::copy_from_slice(values));
                self.devices.attributes_changed(subject, scope, update);
            }
        }
        stream::iter(stored)
            .for_each_concurrent(MAX_CONCURRENT_MESSAGES, |one| self.notify_rule_engine(one, now))
            .await;
    }

    async fn notify_rule_engine(&self, one: &ImportedEntity<K::ImportEntity>, now: i64) {
        let (who, entity) = (self.who, id_of(&one.entity));
        self.actions
            .push_saved(who, one.create, &one.entity.clone().into_entity())
            .await;
        for (scope, values) in one.line.attributes() {
            let values = line::object(values);
            self.actions
                .push_attributes_updated(who, entity, scope, &values)
                .await;
        }
        if !one.line.series.is_empty() {
            let values = line::object(&one.line.series);
            let points = raw(format!("[{{\"ts\":{now},\"values\":{values}}}]"));
            self.actions.push_timeseries_updated(who, entity, &points).await;
        }
    }
}

/// What a line makes of the entity that has its name, or a new one, as far as all kinds have it in common.
fn begin<K: EntityImport>(
    line: &ImportLine,
    old: Option<K::ImportEntity>,
    tenant: TenantId,
    now: i64,
) -> K::ImportEntity {
    let mut entity = old.unwrap_or_else(|| {
        let mut new = K::ImportEntity::default();
        let head = new.fields_mut();
        *head.tenant = tenant;
        *head.customer = CustomerId::NULL;
        new.set_identity(K::ImportEntity::typed(new_uuid()), now);
        new
    });
    if let Some(name) = line.field(Column::Name) {
        name.clone_into(entity.fields_mut().name);
    }
    let parts = K::parts(&mut entity);
    // Whoever has changed it meanwhile is overwritten.
    *parts.version = None;
    if let Some(label) = line.field(Column::Label) {
        *parts.label = Some(label.to_owned());
    }
    if let Some(text) = line.field(Column::Description) {
        note(parts.info, "description", text.into());
    }
    if let Some(name) = line.field(Column::Type) {
        name.clone_into(parts.type_name);
    }
    entity
}

fn id_of<E: AssignableEntity>(entity: &E) -> EntityId {
    entity.id().into()
}

/// The next lines up to a batch, as long as no name repeats: a name that comes again changes what the line before has made.
fn next_batch(lines: &mut Peekable<impl Iterator<Item = ImportLine>>) -> Vec<ImportLine> {
    let mut names = HashSet::new();
    let mut batch = Vec::new();
    while batch.len() < BATCH {
        let is_new = |line: &ImportLine| match line.name() {
            Some(name) => names.insert(name.to_owned()),
            None => true,
        };
        match lines.next_if(is_new) {
            Some(line) => batch.push(line),
            None => break,
        }
    }
    batch
}

/// Seconds that points of a tenant are kept; 0 for ever.
async fn tenant_ttl(context: &ServiceContext, tenant: TenantId) -> ServiceResult<u32> {
    Ok(context.stores.storage_ttl(tenant).await?)
}

/// Notes a description and other free-form fields.
fn note(info: &mut Option<Value>, name: &str, value: Value) {
    let info = info.get_or_insert_with(|| serde_json::json!({}));
    if let Some(fields) = info.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}
