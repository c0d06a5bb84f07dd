//! Stores the load of the machine as time series: of the system tenant, for our own home page of the system administrator, and of
//! its usage state, for that of ThingsBoard.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::clock::SharedClock;
use fieldline_core::ports::{
    SystemInfoSource, SystemResources, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore,
};
use fieldline_core::usage::usage_subject;
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::{EntityKey, TenantId};
use tracing::warn;

/// How often the load is stored.
const INTERVAL: Duration = Duration::from_secs(60);
/// How long it is kept, seconds.
const TTL_SECONDS: u32 = 7 * 86_400;

/// Stores the load from time to time.
pub(crate) struct SystemInfoRecorder {
    pub(crate) source: Arc<dyn SystemInfoSource>,
    pub(crate) series: Arc<dyn TimeSeriesStore>,
    pub(crate) clock: SharedClock,
}

impl SystemInfoRecorder {
    /// Runs until the task is aborted.
    pub(crate) async fn run(self) {
        // Not at once: what is saved directly makes a checkpoint.
        let first = tokio::time::Instant::now() + INTERVAL;
        let mut tick = tokio::time::interval_at(first, INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let values = packed(&self.source.figures().await);
            let ts = self.clock.now_ms();
            let tenant = EntityKey {
                tenant: TenantId::NULL,
                entity: TenantId::NULL.into(),
            };
            let rows = [tenant, usage_subject(TenantId::NULL)].map(|subject| TelemetryRow {
                subject,
                ts,
                ttl_seconds: TTL_SECONDS,
                strategy: TelemetrySaveStrategy::ALL,
                values: &values,
            });
            if let Err(error) = self.series.save(&rows).await {
                warn!(%error, "cannot store the load of the machine");
            }
        }
    }
}

/// The figures that are known, under the names of ThingsBoard's series.
fn packed(figures: &SystemResources) -> Vec<u8> {
    let mut values = Vec::new();
    pack("clusterMode", KvValueRef::Bool(false), &mut values);
    for (name, figure) in [
        ("cpuUsage", figures.cpu_usage),
        ("cpuCount", figures.cpu_count),
        ("memoryUsage", figures.memory_usage),
        ("totalMemory", figures.total_memory),
        ("discUsage", figures.disk_usage),
        ("totalDiscSpace", figures.total_disk),
    ] {
        if let Some(figure) = figure {
            let figure = i64::try_from(figure).unwrap_or(i64::MAX);
            pack(name, KvValueRef::Long(figure), &mut values);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use fieldline_model::kv::unpack;

    use super::*;

    #[test]
    fn unknown_figures_are_left_out() {
        let figures = SystemResources {
            cpu_usage: Some(12),
            ..SystemResources::default()
        };
        let values = packed(&figures);
        let names: Vec<&str> = unpack(&values).map(|pair| pair.unwrap().0).collect();
        assert_eq!(names, ["clusterMode", "cpuUsage"]);
    }
}
