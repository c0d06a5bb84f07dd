//! Finds the entities of a plan in the tables, and shows a page of them.

use std::borrow::Cow;
use std::cmp::Ordering;

use fieldline_core::any_entity::{EntityTextField, query_text};
use fieldline_core::ports::{StoreResult, ValueReader, ValueSource};
use fieldline_model::entity::Authority;
use fieldline_model::kv::{KvValue, KvValueRef};
use fieldline_model::page::SortOrder;
use fieldline_model::query::{EntityData, EntityQueryKey, KeyType, TsValue};
use fieldline_model::{EntityId, EntityType};
use rustc_hash::FxHashMap;
use uuid::Uuid;

use super::plan::{EntityCandidates, EntityQueryPlan, EntityScan};
use super::predicate::PredicateOperand;
use super::prepare::{QueryMemoryLimits, TableGuard, TableSource, columns, prepare, sources, too_much};
use super::row::EntityTableRow;
use super::table::{ColumnCell, ColumnKey, TableData, ValueColumn};
use crate::access::{AccessOperation, Principal, allows, allows_all};

/// Titles of those whom entities belong to.
#[derive(Debug, Default)]
pub(super) struct OwnerTitles {
    pub(super) tenant: String,
    pub(super) customers: FxHashMap<Uuid, String>,
}

/// Pages of so many entities are shown from columns; the values of shorter ones are looked up, so that what is shown
/// only takes no column over all entities.
const LONG_PAGE: usize = 1_000;
/// What a shown value takes besides its name and text, bytes.
const SHOWN_COST: usize = 96;

/// What a key means in one table.
enum BoundKey<'a> {
    CreatedTime,
    Kind(&'static str),
    Text(EntityTextField),
    DisplayName,
    OwnerName,
    OwnerType,
    /// A field that the kind does not have.
    Blank,
    Values(Vec<&'a ValueColumn>),
    /// Values without a column, which are looked up.
    LookedUp(Vec<ColumnKey>),
}

/// The same for what is shown.
fn bind_shown<'a>(data: &'a TableData, key: &EntityQueryKey) -> BoundKey<'a> {
    let wanted = columns(std::iter::once(key));
    match wanted.is_empty() || data.has_columns(&wanted) {
        true => bind(data, key),
        false => BoundKey::LookedUp(wanted),
    }
}

fn bind<'a>(data: &'a TableData, key: &EntityQueryKey) -> BoundKey<'a> {
    if key.key_type != KeyType::EntityField {
        let of_source = |source: &ValueSource| data.column(&(*source, key.key.clone()));
        return BoundKey::Values(sources(key.key_type).iter().filter_map(of_source).collect());
    }
    match key.key.as_str() {
        "createdTime" => BoundKey::CreatedTime,
        "entityType" => BoundKey::Kind(data.kind.name()),
        name => match (query_text(data.kind, name), name) {
            (Some(field), _) => BoundKey::Text(field),
            (None, "displayName") => BoundKey::DisplayName,
            (None, "ownerName") => BoundKey::OwnerName,
            (None, "ownerType") => BoundKey::OwnerType,
            (None, _) => BoundKey::Blank,
        },
    }
}

/// What of an entity the one who asks may see.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntityVisibility {
    Nothing,
    Fields,
    Values,
}

struct TableView<'a> {
    data: &'a TableData,
    part: &'a EntityScan,
    conditions: Vec<BoundKey<'a>>,
    shown: Vec<BoundKey<'a>>,
    sort: Option<BoundKey<'a>>,
}

struct QueryEvaluator<'a> {
    who: &'a Principal,
    plan: &'a EntityQueryPlan,
    owners: &'a OwnerTitles,
    now: i64,
}

/// An entity that was found.
struct QueryHit<'a> {
    view: usize,
    place: usize,
    key: SortKey<'a>,
}

#[derive(Default)]
struct SortKey<'a> {
    number: Option<f64>,
    text: Cow<'a, str>,
}

/// A page of the entities, and how many there are in all.
pub(super) fn evaluate(
    who: &Principal,
    plan: &EntityQueryPlan,
    sources: &mut [TableSource],
    owners: &OwnerTitles,
    reader: &dyn ValueReader,
    now: i64,
    limits: QueryMemoryLimits,
) -> StoreResult<(Vec<EntityData>, u64)> {
    let shown = (plan.search.is_some() || plan.page_size > LONG_PAGE).then_some(&plan.shown);
    let wanted = columns(plan.looked_at().chain(shown.into_iter().flatten()));
    // In the order of kinds for all queries, so that no two wait for each other.
    let tables: Vec<TableGuard<'_>> = sources
        .iter_mut()
        .map(|source| prepare(source, &wanted, reader, limits))
        .collect::<StoreResult<_>>()?;
    let views: Vec<TableView<'_>> = tables
        .iter()
        .zip(&plan.parts)
        .map(|(data, part)| TableView {
            data,
            part,
            conditions: plan.conditions.iter().map(|one| bind(data, &one.key)).collect(),
            shown: plan.shown.iter().map(|key| bind_shown(data, key)).collect(),
            sort: plan.sort.as_ref().map(|(key, _)| bind(data, key)),
        })
        .collect();
    let query = QueryEvaluator {
        who,
        plan,
        owners,
        now,
    };
    let mut hits: Vec<QueryHit<'_>> = Vec::new();
    let mut total = 0u64;
    for (index, view) in views.iter().enumerate() {
        query.each_match(view, |place, row, sight| {
            total += 1;
            if plan.page_size > 0 {
                let key = view
                    .sort
                    .as_ref()
                    .map(|bound| query.sort_key(bound, place, row, sight));
                hits.push(QueryHit {
                    view: index,
                    place,
                    key: key.unwrap_or_default(),
                });
            }
        });
    }
    let page = query.page(&views, hits);
    let mut found = Vec::with_capacity(views.len());
    for (index, view) in views.iter().enumerate() {
        let places = page.iter().filter(|hit| hit.view == index).map(|hit| hit.place);
        found.push(view.look_up(places.collect(), reader)?);
    }
    let mut data = Vec::with_capacity(page.len());
    let mut bytes = 0;
    for hit in &page {
        let (Some(view), Some(found)) = (views.get(hit.view), found.get(hit.view)) else {
            continue;
        };
        let shown = query.show(view, found, hit.place);
        let values = shown.iter().flat_map(|shown| shown.latest.values().flatten());
        bytes += SHOWN_COST;
        bytes += values
            .map(|(name, value)| SHOWN_COST + name.len() + value.value.len())
            .sum::<usize>();
        if bytes > limits.page {
            return Err(too_much(
                "The page would be too large: ask for fewer entities or keys!",
            ));
        }
        data.extend(shown);
    }
    Ok((data, total))
}

/// Values that no column has, by their keys and the places of their entities.
type UncachedValues = FxHashMap<(ColumnKey, usize), ColumnCell>;

impl TableView<'_> {
    /// Looks up what is shown of some entities and no column has.
    fn look_up(&self, places: Vec<usize>, reader: &dyn ValueReader) -> StoreResult<UncachedValues> {
        let mut wanted: Vec<ColumnKey> = Vec::new();
        for bound in &self.shown {
            if let BoundKey::LookedUp(keys) = bound {
                wanted.extend(keys.iter().cloned());
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        match wanted.is_empty() || places.is_empty() {
            true => Ok(UncachedValues::default()),
            false => self.data.look_up(&places, &wanted, reader),
        }
    }
}

impl<'a> QueryEvaluator<'a> {
    /// Calls `found` for every entity of a part that fits.
    fn each_match(
        &self,
        view: &'a TableView<'a>,
        mut found: impl FnMut(usize, &'a EntityTableRow, EntityVisibility),
    ) {
        let kind = view.data.kind;
        // The row of a tenant belongs to the tenant that it is.
        let sees_all = kind != EntityType::Tenant && allows_all(self.who, kind, view.data.tenant);
        let mut try_one = |place: usize| {
            let Some(row) = view.data.rows.get(place).and_then(Option::as_ref) else {
                return;
            };
            let sight = match sees_all {
                true => EntityVisibility::Values,
                false => self.sight(view, row),
            };
            if sight != EntityVisibility::Nothing && self.fits(view, place, row, sight) {
                found(place, row, sight);
            }
        };
        match &view.part.candidates {
            EntityCandidates::Ids(ids) => ids
                .iter()
                .filter_map(|id| view.data.place(*id))
                .for_each(&mut try_one),
            _ => (0..view.data.rows.len()).for_each(&mut try_one),
        }
    }

    fn sight(&self, view: &TableView<'_>, row: &EntityTableRow) -> EntityVisibility {
        let resource = row.resource_for(self.who, view.data.tenant, view.data.kind);
        if !allows(self.who, AccessOperation::Read, &resource) {
            return EntityVisibility::Nothing;
        }
        // Whoever runs a tenant may see all of what it may see; only a customer's users see some things in part.
        if self.who.authority != Authority::CustomerUser
            || allows(self.who, AccessOperation::ReadAttributes, &resource)
        {
            EntityVisibility::Values
        } else {
            EntityVisibility::Fields
        }
    }

    fn fits(
        &self,
        view: &TableView<'_>,
        place: usize,
        row: &EntityTableRow,
        sight: EntityVisibility,
    ) -> bool {
        let of_type = |types: &rustc_hash::FxHashSet<String>| {
            row.text(EntityTextField::Type)
                .is_some_and(|kind| types.contains(kind))
        };
        if let EntityCandidates::Like { types, name } = &view.part.candidates
            && !(types.as_ref().is_none_or(of_type)
                && name
                    .as_ref()
                    .is_none_or(|name| name.fits(row.text(EntityTextField::Name).unwrap_or_default())))
        {
            return false;
        }
        if !view.part.types.as_ref().is_none_or(of_type) {
            return false;
        }
        let mut conditions = self.plan.conditions.iter().zip(&view.conditions);
        let holds = if self.plan.any && !self.plan.conditions.is_empty() {
            conditions.any(|(one, bound)| {
                self.operands(bound, place, row, sight)
                    .any(|operand| one.predicate.holds(&operand))
            })
        } else {
            // Where all must hold, there has to be a value.
            conditions.all(|(one, bound)| {
                self.operands(bound, place, row, sight)
                    .any(|operand| operand != PredicateOperand::Absent && one.predicate.holds(&operand))
            })
        };
        holds
            && self
                .plan
                .search
                .as_deref()
                .is_none_or(|text| self.contains(view, place, row, sight, text))
    }

    /// What a condition is tried on: one value, or those of several scopes.
    fn operands<'v>(
        &'v self,
        bound: &'v BoundKey<'_>,
        place: usize,
        row: &'v EntityTableRow,
        sight: EntityVisibility,
    ) -> impl Iterator<Item = PredicateOperand<'v>> {
        let (one, columns): (Option<PredicateOperand<'v>>, &[&ValueColumn]) = match bound {
            BoundKey::Values(columns) if sight == EntityVisibility::Values => (None, columns),
            BoundKey::Values(_) | BoundKey::LookedUp(_) => (None, &[]),
            BoundKey::CreatedTime => (Some(PredicateOperand::Time(row.created_time)), &[]),
            field => (Some(PredicateOperand::Text(self.field(field, row))), &[]),
        };
        let is_field = one.is_some();
        let mut values = columns
            .iter()
            .filter_map(move |column| self.slot(column, place))
            .map(|slot| PredicateOperand::Value(slot.value.as_ref()))
            .peekable();
        let absent = (!is_field && values.peek().is_none()).then_some(PredicateOperand::Absent);
        one.into_iter().chain(values).chain(absent)
    }

    fn slot<'v>(&self, column: &'v ValueColumn, place: usize) -> Option<&'v ColumnCell> {
        column.get(place).filter(|slot| !slot.is_expired(self.now))
    }

    /// The value that counts: the one that was written last.
    fn newest<'v>(&self, columns: &[&'v ValueColumn], place: usize) -> Option<&'v ColumnCell> {
        let slots = columns.iter().filter_map(|column| self.slot(column, place));
        slots.max_by_key(|slot| slot.ts)
    }

    /// A field as text.
    fn field<'v>(&'v self, bound: &BoundKey<'_>, row: &'v EntityTableRow) -> Option<Cow<'v, str>> {
        match bound {
            BoundKey::CreatedTime => Some(row.created_time.to_string().into()),
            BoundKey::Kind(name) => Some((*name).into()),
            BoundKey::Text(field) => row.text(*field).map(Cow::Borrowed),
            BoundKey::DisplayName => Some(row.display_name()),
            BoundKey::OwnerType => Some(
                if row.customer().is_some() {
                    "CUSTOMER"
                } else {
                    "TENANT"
                }
                .into(),
            ),
            BoundKey::OwnerName => match row.customer() {
                None => Some(self.owners.tenant.as_str().into()),
                Some(customer) => self
                    .owners
                    .customers
                    .get(&customer.0)
                    .map(|title| title.as_str().into()),
            },
            BoundKey::Blank => Some("".into()),
            BoundKey::Values(_) | BoundKey::LookedUp(_) => None,
        }
    }

    /// Whether what is shown contains a text, which is in lower case; where nothing is shown nothing is searched.
    fn contains(
        &self,
        view: &TableView<'_>,
        place: usize,
        row: &EntityTableRow,
        sight: EntityVisibility,
        text: &str,
    ) -> bool {
        view.shown.is_empty()
            || view.shown.iter().any(|bound| match bound {
                BoundKey::Text(EntityTextField::AdditionalInfo) => false,
                BoundKey::Values(columns) => {
                    let slot = (sight == EntityVisibility::Values)
                        .then(|| self.newest(columns, place))
                        .flatten();
                    slot.is_some_and(|slot| plain(&slot.value).to_lowercase().contains(text))
                }
                field => self
                    .field(field, row)
                    .is_some_and(|shown| shown.to_lowercase().contains(text)),
            })
    }

    fn sort_key<'v>(
        &'v self,
        bound: &'v BoundKey<'_>,
        place: usize,
        row: &'v EntityTableRow,
        sight: EntityVisibility,
    ) -> SortKey<'v> {
        match bound {
            BoundKey::CreatedTime => SortKey {
                number: Some(row.created_time as f64),
                text: Cow::default(),
            },
            BoundKey::Values(columns) => {
                let slot = (sight == EntityVisibility::Values)
                    .then(|| self.newest(columns, place))
                    .flatten();
                match slot.map(|slot| slot.value.as_ref()) {
                    Some(KvValueRef::Bool(flag)) => SortKey {
                        number: Some(f64::from(u8::from(flag))),
                        text: Cow::default(),
                    },
                    Some(KvValueRef::Text(text) | KvValueRef::Json(text)) => SortKey {
                        number: None,
                        text: text.into(),
                    },
                    value => SortKey {
                        number: value.and_then(KvValueRef::as_number),
                        text: Cow::default(),
                    },
                }
            }
            field => SortKey {
                number: None,
                text: self.field(field, row).unwrap_or_default(),
            },
        }
    }

    /// The hits of the page, in order.
    fn page(&self, views: &[TableView<'_>], mut hits: Vec<QueryHit<'a>>) -> Vec<QueryHit<'a>> {
        let end = self.plan.skipped.saturating_add(self.plan.page_size);
        if let Some((_, direction)) = &self.plan.sort {
            let id = |hit: &QueryHit<'_>| {
                let row = views.get(hit.view)?.data.rows.get(hit.place)?;
                row.as_ref().map(|row| row.id)
            };
            let compare = |a: &QueryHit<'_>, b: &QueryHit<'_>| {
                let ascending = compare(&a.key, &b.key).then_with(|| id(a).cmp(&id(b)));
                match direction {
                    SortOrder::Asc => ascending,
                    SortOrder::Desc => ascending.reverse(),
                }
            };
            // Only what stands before the end of the page has to be in order.
            if end < hits.len() {
                hits.select_nth_unstable_by(end, compare);
                hits.truncate(end);
            }
            hits.sort_unstable_by(compare);
        }
        hits.truncate(end);
        hits.drain(..self.plan.skipped.min(hits.len()));
        hits
    }

    fn show(&self, view: &TableView<'_>, found: &UncachedValues, place: usize) -> Option<EntityData> {
        let row = view.data.rows.get(place)?.as_ref()?;
        let sight = self.sight(view, row);
        let mut shown = EntityData::of(EntityId::new(view.data.kind, row.id));
        for (key, bound) in self.plan.shown.iter().zip(&view.shown) {
            let slot_shown = |slot: Option<&ColumnCell>| {
                let slot = slot.filter(|_| sight == EntityVisibility::Values);
                slot.map_or_else(TsValue::default, |slot| TsValue {
                    ts: slot.ts,
                    value: plain(&slot.value),
                })
            };
            let value = match bound {
                BoundKey::Values(columns) => slot_shown(self.newest(columns, place)),
                BoundKey::LookedUp(keys) => {
                    let slots = keys.iter().filter_map(|key| found.get(&(key.clone(), place)));
                    let slots = slots.filter(|slot| !slot.is_expired(self.now));
                    slot_shown(slots.max_by_key(|slot| slot.ts))
                }
                field => TsValue {
                    ts: self.now,
                    value: self.field(field, row).unwrap_or_default().into_owned(),
                },
            };
            shown
                .latest
                .entry(key.key_type)
                .or_default()
                .insert(key.key.clone(), value);
        }
        Some(shown)
    }
}

/// Numbers first, by value; what has none after them, by text regardless of case.
fn compare(a: &SortKey<'_>, b: &SortKey<'_>) -> Ordering {
    match (a.number, b.number) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => compare_texts(&a.text, &b.text),
    }
}

fn compare_texts(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a
            .bytes()
            .map(|byte| byte.to_ascii_lowercase())
            .cmp(b.bytes().map(|byte| byte.to_ascii_lowercase()));
    }
    a.chars()
        .flat_map(char::to_lowercase)
        .cmp(b.chars().flat_map(char::to_lowercase))
}

/// A value as text: whole numbers without a fraction, as they came.
pub(super) fn plain(value: &KvValue) -> String {
    match value {
        KvValue::Double(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            (*number as i64).to_string()
        }
        other => other.to_text(),
    }
}
