//! What messages do to the stores, gathered until it is applied together.

use bytes::Bytes;
use fieldline_core::downlink::{AttributeUpdate, DeviceLink};
use fieldline_core::ports::{
    AttributeEffect, AttributeParts, AttributeRow, Effects, RowParts, StateRow, TelemetryRow,
};
use fieldline_model::Subject;
use fieldline_model::timeseries::AttributeScope;

/// Effects that wait to be applied.
#[derive(Default)]
pub struct Pending {
    telemetry: Vec<(Subject, i64, u32, RowParts, Bytes)>,
    attributes: Vec<(Subject, AttributeScope, i64, AttributeParts, Bytes)>,
    /// Devices that are told when it is stored.
    updates: Vec<(Subject, AttributeScope, Bytes)>,
}

impl Pending {
    /// Adds values of one time.
    pub fn telemetry(&mut self, subject: Subject, ts: i64, ttl_seconds: u32, parts: RowParts, values: Bytes) {
        self.telemetry.push((subject, ts, ttl_seconds, parts, values));
    }

    /// Adds attributes.
    pub fn attributes(
        &mut self,
        subject: Subject,
        scope: AttributeScope,
        ts: i64,
        parts: AttributeParts,
        values: Bytes,
    ) {
        self.attributes.push((subject, scope, ts, parts, values));
    }

    /// Tells the device of these attributes once they are stored: what it asks for then has them.
    pub fn tell_device(&mut self, subject: Subject, scope: AttributeScope, values: Bytes) {
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

    /// The effects, with the states that belong to the position they are applied with.
    pub fn with(&self, states: Vec<StateRow>) -> Effects<'_> {
        Effects {
            telemetry: self
                .telemetry
                .iter()
                .map(|(subject, ts, ttl_seconds, parts, values)| TelemetryRow {
                    subject: *subject,
                    ts: *ts,
                    ttl_seconds: *ttl_seconds,
                    parts: *parts,
                    values,
                })
                .collect(),
            attributes: self
                .attributes
                .iter()
                .map(|(subject, scope, ts, parts, values)| AttributeEffect {
                    row: AttributeRow {
                        subject: *subject,
                        scope: *scope,
                        ts: *ts,
                        values,
                    },
                    parts: *parts,
                })
                .collect(),
            states,
        }
    }

    /// Forgets them: they are applied. Devices are told.
    pub fn settle(&mut self, devices: &dyn DeviceLink) {
        for (subject, scope, values) in self.updates.drain(..) {
            devices.attributes_changed(subject, scope, AttributeUpdate::Saved(values));
        }
        self.telemetry.clear();
        self.attributes.clear();
    }
}
