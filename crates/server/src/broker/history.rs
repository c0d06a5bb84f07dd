//! Stores the statistics of the broker, minute by minute, as time series.

use std::sync::Arc;

use fieldline_core::broker_statistics;
use fieldline_core::ports::{BrokerStatistics, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore};
use fieldline_model::kv::{KvValueRef, pack};
use tokio::sync::watch;
use tracing::warn;

/// How long they are kept, seconds: as long as TBMQ keeps them.
const TTL_SECONDS: u32 = 7 * 86_400;

/// Stores each minute. While the store takes longer than a minute for one, those that end meanwhile are left out, but the
/// last: nothing piles up.
pub(super) struct StatisticsRecorder {
    pub(super) minutes: watch::Receiver<Option<BrokerStatistics>>,
    pub(super) series: Arc<dyn TimeSeriesStore>,
}

impl StatisticsRecorder {
    /// Runs until the broker is gone, or the task is aborted.
    pub(super) async fn run(mut self) {
        while self.minutes.changed().await.is_ok() {
            let minute = *self.minutes.borrow_and_update();
            let Some(minute) = minute else { continue };
            let values = packed(&minute);
            let row = TelemetryRow {
                subject: broker_statistics::subject(),
                ts: minute.at_ms,
                ttl_seconds: TTL_SECONDS,
                strategy: TelemetrySaveStrategy::ALL,
                values: &values,
            };
            if let Err(error) = self.series.save(&[row]).await {
                warn!(%error, "cannot store the statistics of the broker");
            }
        }
    }
}

fn packed(minute: &BrokerStatistics) -> Vec<u8> {
    let mut values = Vec::new();
    for (name, count) in broker_statistics::named(minute) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        pack(name, KvValueRef::Long(count), &mut values);
    }
    values
}

#[cfg(test)]
mod tests {
    use fieldline_core::clock::{SharedClock, SystemClock};
    use fieldline_model::kv::KvValue;
    use fieldline_model::timeseries::{DataPoint, PointOrder, RangeQuery};
    use fieldline_storage::series::{Options, SeriesStore};

    use super::*;

    #[tokio::test]
    async fn each_minute_becomes_a_point() {
        let dir = tempfile::tempdir().expect("a directory");
        let clock: SharedClock = Arc::new(SystemClock);
        let series: Arc<dyn TimeSeriesStore> =
            SeriesStore::open(dir.path(), &Options::default(), clock.clone()).expect("a store");
        let at_ms = clock.now_ms() - 60_000;
        let minutes = watch::Sender::new(None);
        let recorder = StatisticsRecorder {
            minutes: minutes.subscribe(),
            series: series.clone(),
        };
        minutes.send_replace(Some(BrokerStatistics {
            at_ms,
            incoming: 5,
            inbound_bytes: 10,
            outbound_bytes: 20,
            sessions: 3,
            ..BrokerStatistics::default()
        }));
        // A minute that has ended before is stored yet.
        drop(minutes);
        recorder.run().await;

        let subject = broker_statistics::subject();
        assert_eq!(series.keys(subject).await.expect("keys").len(), 9);
        let whole = RangeQuery {
            start: at_ms,
            end: at_ms + 1,
            limit: 10,
            order: PointOrder::Ascending,
        };
        for (key, count) in [
            ("incomingMsgs", 5),
            ("sessions", 3),
            ("processedBytes", 30),
            ("droppedMsgs", 0),
        ] {
            let found = series.range(subject, key, whole).await.expect("points");
            let value = KvValue::Long(count);
            assert_eq!(found, [DataPoint { ts: at_ms, value }], "{key}");
        }
    }
}
