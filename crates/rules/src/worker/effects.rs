//! What messages do to the stores, gathered until it is applied together.

use bytes::Bytes;
use fieldline_core::ports::{
    AttributeEffect, AttributeRow, AttributeSaveStrategy, StateRow, StoreEffects, TelemetryRow,
    TelemetrySaveStrategy,
};
use fieldline_devices::downlink::{AttributeUpdate, DeviceLink};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityKey, TenantId};
use rustc_hash::FxHashMap;

use super::marks::EffectSource;

/// What an effect comes from, and the number of its record, where that is not done with when the effect is stored.
type EffectOrigin = Option<(EffectSource, u64)>;

/// Values of one time.
#[derive(Debug, Clone)]
pub struct TelemetryValues {
    /// Whose they are.
    pub subject: EntityKey,
    /// Their time, milliseconds.
    pub ts: i64,
    /// For how long they are kept; 0 for ever.
    pub ttl_seconds: u32,
    /// What is done with them.
    pub strategy: TelemetrySaveStrategy,
    /// Packed as in [`fieldline_model::kv`].
    pub values: Bytes,
}

/// Attributes.
#[derive(Debug, Clone)]
pub struct AttributeValues {
    /// Whose they are.
    pub subject: EntityKey,
    /// Which ones.
    pub scope: AttributeScope,
    /// When they were set, milliseconds.
    pub ts: i64,
    /// What is done with them.
    pub strategy: AttributeSaveStrategy,
    /// Packed as in [`fieldline_model::kv`].
    pub values: Bytes,
}

/// Effects that wait to be applied.
#[derive(Default)]
pub struct PendingEffects {
    telemetry: Vec<(TelemetryValues, EffectOrigin)>,
    attributes: Vec<(AttributeValues, EffectOrigin)>,
    /// Devices that are told when it is stored.
    updates: Vec<(EntityKey, AttributeScope, Bytes)>,
}

impl PendingEffects {
    /// Adds values of one time.
    pub fn telemetry(&mut self, values: TelemetryValues, from: EffectOrigin) {
        self.telemetry.push((values, from));
    }

    /// Adds attributes.
    pub fn attributes(&mut self, values: AttributeValues, from: EffectOrigin) {
        self.attributes.push((values, from));
    }

    /// The marks of what belongs to records that are not done with, by their numbers.
    pub fn marks(&self) -> FxHashMap<u64, Vec<u128>> {
        let mut marks: FxHashMap<u64, Vec<u128>> = FxHashMap::default();
        for (of, from) in &self.telemetry {
            if let Some((source, record)) = from {
                let mark = source.telemetry_mark(of.subject, of.ts, &of.values);
                marks.entry(*record).or_default().push(mark);
            }
        }
        for (of, from) in &self.attributes {
            if let Some((source, record)) = from {
                let mark = source.attributes_mark(of.subject, of.scope, &of.values);
                marks.entry(*record).or_default().push(mark);
            }
        }
        marks
    }

    /// A record is done with.
    pub fn end_record(&mut self, number: u64) {
        let of_telemetry = self.telemetry.iter_mut().map(|(_, from)| from);
        let of_attributes = self.attributes.iter_mut().map(|(_, from)| from);
        for from in of_telemetry.chain(of_attributes) {
            if from.is_some_and(|(_, record)| record == number) {
                *from = None;
            }
        }
    }

    /// Tells the device of these attributes once they are stored: what it asks for then has them.
    pub fn notify_device(&mut self, subject: EntityKey, scope: AttributeScope, values: Bytes) {
        self.updates.push((subject, scope, values));
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.telemetry.is_empty() && self.attributes.is_empty()
    }

    /// How many rows wait.
    pub fn rows(&self) -> usize {
        self.telemetry.len() + self.attributes.len()
    }

    /// How many bytes there are of each tenant.
    pub fn bytes_of_tenants(&self) -> FxHashMap<TenantId, usize> {
        let of_telemetry = self
            .telemetry
            .iter()
            .map(|(of, _)| (of.subject.tenant, of.values.len()));
        let of_attributes = self
            .attributes
            .iter()
            .map(|(of, _)| (of.subject.tenant, of.values.len()));
        let mut bytes = FxHashMap::default();
        for (tenant, length) in of_telemetry.chain(of_attributes) {
            *bytes.entry(tenant).or_default() += length;
        }
        bytes
    }

    /// The effects, with the states that belong to the position they are applied with.
    pub fn with(&self, states: Vec<StateRow>) -> StoreEffects<'_> {
        StoreEffects {
            telemetry: self
                .telemetry
                .iter()
                .map(|(of, _)| TelemetryRow {
                    subject: of.subject,
                    ts: of.ts,
                    ttl_seconds: of.ttl_seconds,
                    strategy: of.strategy,
                    values: &of.values,
                })
                .collect(),
            attributes: self
                .attributes
                .iter()
                .map(|(of, _)| AttributeEffect {
                    row: AttributeRow {
                        subject: of.subject,
                        scope: of.scope,
                        ts: of.ts,
                        values: &of.values,
                    },
                    strategy: of.strategy,
                })
                .collect(),
            states,
        }
    }

    /// Forgets them: they are applied. Devices are told.
    pub fn complete(&mut self, devices: &dyn DeviceLink) {
        for (subject, scope, values) in self.updates.drain(..) {
            devices.attributes_changed(subject, scope, AttributeUpdate::Saved(values));
        }
        self.telemetry.clear();
        self.attributes.clear();
    }
}
