//! Values of imported entities.

use std::collections::HashMap;

use async_trait::async_trait;
use fieldline_core::ports::{
    AttributeRow, ImportValueStore, StoreResult, TelemetryRow, TelemetrySaveStrategy,
};
use fieldline_core::usage::storage_points;
use fieldline_model::kv;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey, TenantId};

use super::line::ImportLine;
use crate::services::ServiceContext;

/// The values of lines, by the entities that the lines become.
pub(super) struct ImportBatchValues<'l> {
    pub(super) context: &'l ServiceContext,
    pub(super) tenant: TenantId,
    pub(super) now: i64,
    /// Attributes of new entities besides those of their lines.
    pub(super) first: Vec<u8>,
    /// Whether the tenant may store points.
    pub(super) keeps_points: bool,
    pub(super) of: HashMap<EntityId, ImportLineValues<'l>>,
}

/// The values of one line.
pub(super) struct ImportLineValues<'l> {
    pub(super) line: &'l ImportLine,
    pub(super) create: bool,
    pub(super) ttl_seconds: u32,
}

impl ImportBatchValues<'_> {
    /// How many points were stored of an entity, as usage counts them.
    pub(super) fn points(&self, entity: EntityId) -> u64 {
        match self.of.get(&entity).filter(|_| self.keeps_points) {
            Some(of) => storage_points(kv::count(&of.line.series).into(), of.ttl_seconds.into()),
            None => 0,
        }
    }
}

#[async_trait]
impl ImportValueStore for ImportBatchValues<'_> {
    async fn save(&self, entities: &[EntityId]) -> StoreResult<()> {
        let (mut attributes, mut points) = (Vec::new(), Vec::new());
        for (entity, of) in entities
            .iter()
            .filter_map(|entity| Some((*entity, self.of.get(entity)?)))
        {
            let subject = EntityKey {
                tenant: self.tenant,
                entity,
            };
            for (scope, values, wanted) in [
                (AttributeScope::Server, &self.first, of.create),
                (AttributeScope::Shared, &of.line.shared, true),
                (AttributeScope::Server, &of.line.server, true),
            ] {
                if wanted && !values.is_empty() {
                    attributes.push(AttributeRow {
                        subject,
                        scope,
                        ts: self.now,
                        values,
                    });
                }
            }
            if self.keeps_points && !of.line.series.is_empty() {
                points.push(TelemetryRow {
                    strategy: TelemetrySaveStrategy::ALL,
                    subject,
                    ts: self.now,
                    ttl_seconds: of.ttl_seconds,
                    values: &of.line.series,
                });
            }
        }
        if !attributes.is_empty() {
            self.context.attributes.save(&attributes).await?;
        }
        if !points.is_empty() {
            self.context.series.save(&points).await?;
        }
        Ok(())
    }
}
