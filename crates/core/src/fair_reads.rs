//! Reads of time series in turns. While a page is read, blocks of a table and what is unpacked of them are in memory: a few
//! at the same time are enough to keep the processors busy, and tenants get them in turn.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_model::Subject;
use fieldline_model::timeseries::{Aggregation, Bucket, LatestValue, Point, RangeQuery};

use crate::ports::{
    DeleteSeries, PointsPage, StoreError, StoreErrorKind, StoreResult, TelemetryRow, TimeSeriesStore,
};
use crate::turns::Turns;

/// Reads at the same time of each processor: some wait for the disk.
const READS: usize = 4;
/// For how long one waits for its turn.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store of which people read in turns.
pub struct FairReads {
    store: Arc<dyn TimeSeriesStore>,
    turns: Arc<Turns>,
}

impl FairReads {
    /// Reads from a store.
    pub fn new(store: Arc<dyn TimeSeriesStore>) -> Arc<Self> {
        let processors = available_parallelism().map_or(1, usize::from);
        let turns = Turns::new(READS * processors, PATIENCE);
        Arc::new(Self { store, turns })
    }

    /// Reads in the turn of a tenant. A read goes on to its end where nobody waits for it any longer: its turn does, too.
    async fn in_turn<T, F>(
        &self,
        subject: Subject,
        read: impl FnOnce(Arc<dyn TimeSeriesStore>) -> F + Send,
    ) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let turn = self.turns.take(subject.tenant).await?;
        let reading = read(Arc::clone(&self.store));
        let done = tokio::spawn(async move {
            let _turn = turn;
            reading.await
        });
        done.await.unwrap_or_else(|cause| {
            let message = "the time-series store has failed at this call";
            Err(StoreError::new(StoreErrorKind::Unavailable, message).caused_by(cause))
        })
    }
}

#[async_trait]
impl TimeSeriesStore for FairReads {
    async fn save(&self, rows: &[TelemetryRow<'_>]) -> StoreResult<()> {
        self.store.save(rows).await
    }

    async fn keys(&self, subject: Subject) -> StoreResult<Vec<String>> {
        self.store.keys(subject).await
    }

    async fn latest(&self, subject: Subject, keys: Option<&[String]>) -> StoreResult<Vec<LatestValue>> {
        self.store.latest(subject, keys).await
    }

    async fn page(
        &self,
        subject: Subject,
        key: &str,
        query: RangeQuery,
        max_bytes: usize,
    ) -> StoreResult<PointsPage> {
        let key = key.to_owned();
        self.in_turn(subject, |store| async move {
            store.page(subject, &key, query, max_bytes).await
        })
        .await
    }

    async fn aggregate(
        &self,
        subject: Subject,
        key: &str,
        aggregation: Aggregation,
        buckets: &[Bucket],
    ) -> StoreResult<Vec<Point>> {
        let (key, buckets) = (key.to_owned(), buckets.to_vec());
        self.in_turn(subject, |store| async move {
            store.aggregate(subject, &key, aggregation, &buckets).await
        })
        .await
    }

    async fn delete(&self, subject: Subject, keys: &[String], what: DeleteSeries) -> StoreResult<()> {
        self.store.delete(subject, keys, what).await
    }
}
