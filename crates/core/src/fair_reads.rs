//! Limits concurrent reads of time series. A read of a page holds table blocks and their unpacked form in memory. A few
//! concurrent reads suffice to keep the processors busy, and tenants get their turns fairly.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{Aggregation, AggregationBucket, DataPoint, LatestValue, RangeQuery};

use crate::ports::{
    PointsPage, SeriesDeletion, StoreError, StoreErrorKind, StoreResult, TelemetryRow, TimeSeriesStore,
};
use crate::tenant_semaphore::TenantSemaphore;

/// Concurrent reads per processor; more than one because some wait for the disk.
const READS: usize = 4;
/// Longest wait for a turn.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A time-series store whose pages and aggregates are read in turns.
pub struct FairReads {
    store: Arc<dyn TimeSeriesStore>,
    semaphore: Arc<TenantSemaphore>,
}

impl FairReads {
    /// Creates the wrapper of a store.
    pub fn new(store: Arc<dyn TimeSeriesStore>) -> Arc<Self> {
        let processors = available_parallelism().map_or(1, usize::from);
        Self::at_once(READS * processors, store)
    }

    fn at_once(reads: usize, store: Arc<dyn TimeSeriesStore>) -> Arc<Self> {
        let turns = TenantSemaphore::new(reads, READ_TIMEOUT);
        Arc::new(Self {
            store,
            semaphore: turns,
        })
    }

    /// Reads in the turn of a tenant. A read whose caller has left runs to its end, and holds its turn until then.
    async fn in_turn<T, F>(
        &self,
        subject: EntityKey,
        read: impl FnOnce(Arc<dyn TimeSeriesStore>) -> F + Send,
    ) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let turn = self.semaphore.acquire(subject.tenant).await?;
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

    async fn keys(&self, subject: EntityKey) -> StoreResult<Vec<String>> {
        self.store.keys(subject).await
    }

    async fn latest(&self, subject: EntityKey, keys: Option<&[String]>) -> StoreResult<Vec<LatestValue>> {
        self.store.latest(subject, keys).await
    }

    async fn page(
        &self,
        subject: EntityKey,
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
        subject: EntityKey,
        key: &str,
        aggregation: Aggregation,
        buckets: &[AggregationBucket],
    ) -> StoreResult<Vec<DataPoint>> {
        let (key, buckets) = (key.to_owned(), buckets.to_vec());
        self.in_turn(subject, |store| async move {
            store.aggregate(subject, &key, aggregation, &buckets).await
        })
        .await
    }

    async fn delete(&self, subject: EntityKey, keys: &[String], what: SeriesDeletion) -> StoreResult<()> {
        self.store.delete(subject, keys, what).await
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::timeseries::PointOrder;
    use fieldline_model::{DeviceId, TenantId};
    use tokio::sync::Semaphore;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    /// A store whose reads wait until the test releases them.
    struct SlowStore {
        reading: Arc<Semaphore>,
        begun: Arc<Semaphore>,
    }

    #[async_trait]
    impl TimeSeriesStore for SlowStore {
        async fn save(&self, _: &[TelemetryRow<'_>]) -> StoreResult<()> {
            panic!("nobody asks for this")
        }

        async fn keys(&self, _: EntityKey) -> StoreResult<Vec<String>> {
            panic!("nobody asks for this")
        }

        async fn latest(&self, _: EntityKey, _: Option<&[String]>) -> StoreResult<Vec<LatestValue>> {
            panic!("nobody asks for this")
        }

        async fn page(&self, _: EntityKey, _: &str, _: RangeQuery, _: usize) -> StoreResult<PointsPage> {
            self.begun.add_permits(1);
            self.reading.acquire().await.unwrap().forget();
            Ok(PointsPage::default())
        }

        async fn aggregate(
            &self,
            _: EntityKey,
            _: &str,
            _: Aggregation,
            _: &[AggregationBucket],
        ) -> StoreResult<Vec<DataPoint>> {
            self.begun.add_permits(1);
            self.reading.acquire().await.unwrap().forget();
            Ok(Vec::new())
        }

        async fn delete(&self, _: EntityKey, _: &[String], _: SeriesDeletion) -> StoreResult<()> {
            panic!("nobody asks for this")
        }
    }

    struct Readers {
        reading: Arc<Semaphore>,
        begun: Arc<Semaphore>,
        reads: Arc<FairReads>,
    }

    impl Readers {
        /// Creates readers of a store that allows four reads at once.
        fn new() -> Self {
            let (reading, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
            let store = SlowStore {
                reading: reading.clone(),
                begun: begun.clone(),
            };
            Self {
                reading,
                begun,
                reads: FairReads::at_once(4, Arc::new(store)),
            }
        }

        /// Reads points, or an aggregate for every other `n`.
        fn read(&self, tenant: TenantId, n: usize) -> JoinHandle<()> {
            let (reads, subject) = (self.reads.clone(), EntityKey::device(tenant, DeviceId::new()));
            tokio::spawn(async move {
                let query = RangeQuery {
                    start: 0,
                    end: 1,
                    limit: 1,
                    order: PointOrder::Ascending,
                };
                if n.is_multiple_of(2) {
                    reads.page(subject, "k", query, 1).await.unwrap();
                } else {
                    let aggregated = reads.aggregate(subject, "k", Aggregation::Avg, &[]).await;
                    aggregated.unwrap();
                }
            })
        }

        /// Counts the reads that have begun once no task makes progress any more.
        async fn begun(&self) -> usize {
            for _ in 0..50 {
                yield_now().await;
            }
            self.begun.available_permits()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_reads_with_half_of_the_turns_and_another_one_at_once() {
        let readers = Readers::new();
        let (tenant, other) = (TenantId::new(), TenantId::new());
        let tasks: Vec<_> = (0..10).map(|n| readers.read(tenant, n)).collect();
        assert_eq!(readers.begun().await, 2);
        let of_other = readers.read(other, 0);
        assert_eq!(readers.begun().await, 3);
        readers.reading.add_permits(Semaphore::MAX_PERMITS >> 1);
        for task in tasks.into_iter().chain([of_other]) {
            task.await.unwrap();
        }
        assert_eq!(readers.begun().await, 11);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_takes_its_turn_along_only_once_its_read_has_ended() {
        let readers = Readers::new();
        let tenant = TenantId::new();
        let left: Vec<_> = (0..2).map(|n| readers.read(tenant, n)).collect();
        assert_eq!(readers.begun().await, 2);
        left.iter().for_each(JoinHandle::abort);
        let _next = readers.read(tenant, 0);
        assert_eq!(
            readers.begun().await,
            2,
            "both are read for nobody, but they are read"
        );
        readers.reading.add_permits(1);
        assert_eq!(readers.begun().await, 3);
    }
}
