//! Latest values that the client knows, and how changes update them.

use fieldline_core::ports::ValueSource;
use fieldline_model::query::{EntityQueryKey, KeyType, LatestValues, TsValue};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey, EntityType};

use super::active_command::CommandContext;
use super::hub::{ATTRIBUTES, bit};
use super::mailbox::{NewValue, PendingValues};

/// Memory of a value without its name and text, bytes.
const VALUE_COST: usize = 96;

/// Returns the sources of keys, as bits.
pub(super) fn sources(keys: &[EntityQueryKey]) -> u8 {
    keys.iter().fold(0, |bits, key| {
        bits | match key.key_type {
            KeyType::TimeSeries => bit(ValueSource::Latest),
            KeyType::Attribute => ATTRIBUTES,
            KeyType::ClientAttribute => bit(ValueSource::Attribute(AttributeScope::Client)),
            KeyType::SharedAttribute => bit(ValueSource::Attribute(AttributeScope::Shared)),
            KeyType::ServerAttribute => bit(ValueSource::Attribute(AttributeScope::Server)),
            KeyType::EntityField | KeyType::AlarmField => 0,
        }
    })
}

/// Returns the key types under which values of a source are shown.
pub(super) const fn key_types(source: ValueSource) -> &'static [KeyType] {
    match source {
        ValueSource::Latest => &[KeyType::TimeSeries],
        ValueSource::Attribute(AttributeScope::Client) => &[KeyType::ClientAttribute, KeyType::Attribute],
        ValueSource::Attribute(AttributeScope::Shared) => &[KeyType::SharedAttribute, KeyType::Attribute],
        ValueSource::Attribute(AttributeScope::Server) => &[KeyType::ServerAttribute, KeyType::Attribute],
    }
}

/// Converts a value for clients; a deleted one has neither timestamp nor text.
pub(super) fn to_ts_value((ts, value): &NewValue) -> TsValue {
    match value {
        Some(value) => TsValue {
            ts: *ts,
            value: value.to_text(),
        },
        None => TsValue::default(),
    }
}

/// Merges changed values into those that a client knows; returns the ones that are new to it. Only these keys count,
/// and those that `also` accepts.
pub(super) fn merge_changes(
    known: &mut LatestValues,
    source: ValueSource,
    news: &PendingValues,
    keys: &[EntityQueryKey],
    also: impl Fn(KeyType, &str) -> bool,
) -> LatestValues {
    let mut changed = LatestValues::new();
    let types = key_types(source);
    if news.all_deleted {
        for key in keys.iter().filter(|key| types.contains(&key.key_type)) {
            for values in [&mut *known, &mut changed] {
                let of_type = values.entry(key.key_type).or_default();
                of_type.insert(key.key.clone(), TsValue::default());
            }
        }
    }
    for (name, value) in &news.values {
        for key_type in types {
            let is_asked = keys
                .iter()
                .any(|key| key.key_type == *key_type && key.key == *name);
            if !is_asked && !also(*key_type, name) {
                continue;
            }
            let shown = to_ts_value(value);
            let held = known
                .entry(*key_type)
                .or_default()
                .entry(name.clone())
                .or_default();
            // An older point is not the latest value; a deletion has no timestamp.
            if value.1.is_some() && (shown.ts < held.ts || shown == *held) {
                continue;
            }
            held.clone_from(&shown);
            changed.entry(*key_type).or_default().insert(name.clone(), shown);
        }
    }
    changed
}

/// Returns the approximate number of bytes of values.
pub(super) fn cost(latest: &LatestValues) -> usize {
    let values = latest.values().flatten();
    values
        .map(|(name, value)| VALUE_COST + name.len() + value.value.len())
        .sum()
}

/// Returns the key of an entity: a tenant belongs to itself.
pub(super) fn subject_of(scope: &CommandContext, entity: EntityId) -> EntityKey {
    let tenant = match entity.entity_type {
        EntityType::Tenant => fieldline_model::TenantId(entity.id),
        _ => scope.tenant(),
    };
    EntityKey { tenant, entity }
}
