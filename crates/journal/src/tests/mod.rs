//! Tests of the journal on a simulated disk, with the committer run by hand: no threads, no time.

mod damage;
mod full;
mod model;
mod reserve;
mod retention;
mod sim;

use std::sync::Arc;

use fieldline_core::options::ByteSize;
use fieldline_core::ports::{
    AppendError, AppendFuture, AppendOrigin, ConsumerEvent, Journal, JournalConsumer, JournalError,
    Partition, QueueId,
};
use fieldline_model::TenantId;
use fieldline_model::record::{RecordBatch, split};
use futures::FutureExt;

use crate::committer::JournalCommitter;
use crate::{EmbeddedJournal, Options};
use sim::SimDisk;

/// A journal on a simulated disk, and the committer that the test runs.
struct Bench {
    journal: EmbeddedJournal,
    committer: JournalCommitter,
    queue: QueueId,
}

const PARTITIONS: u16 = 3;

fn options() -> Options {
    Options {
        segment_bytes: ByteSize::kib(4),
        max_pending: ByteSize::kib(64),
        max_append: ByteSize::kib(16),
        min_free_disk: ByteSize(0),
        ..Options::default()
    }
}

impl Bench {
    fn open(disk: &SimDisk, options: &Options) -> Result<Self, JournalError> {
        let (journal, committer) = EmbeddedJournal::open_on(Arc::new(disk.clone()), options)?;
        let queue = journal.open_queue("Main", PARTITIONS)?;
        Ok(Self {
            journal,
            committer,
            queue,
        })
    }

    fn at(&self, index: u16) -> Partition {
        Partition {
            queue: self.queue,
            index,
        }
    }

    fn append(&self, index: u16, records: &[Vec<u8>]) -> Result<AppendFuture, AppendError> {
        self.append_from(AppendOrigin::Device(TenantId::NULL), index, records)
    }

    fn append_from(
        &self,
        origin: AppendOrigin,
        index: u16,
        records: &[Vec<u8>],
    ) -> Result<AppendFuture, AppendError> {
        let mut batch = RecordBatch::new();
        for record in records {
            batch.push(record);
        }
        self.journal.append(self.at(index), &batch, origin)
    }

    /// Appends and commits at once.
    fn put(&mut self, index: u16, record: &[u8]) -> Result<(), AppendError> {
        self.put_from(AppendOrigin::Device(TenantId::NULL), index, record)
    }

    fn put_from(&mut self, origin: AppendOrigin, index: u16, record: &[u8]) -> Result<(), AppendError> {
        let append = self.append_from(origin, index, &[record.to_vec()])?;
        self.committer.tick();
        append.now_or_never().expect("the committer has had its turn")
    }

    fn group(&self, name: &str) -> Box<dyn JournalConsumer> {
        self.journal
            .subscribe(self.queue, name, 1)
            .unwrap()
            .pop()
            .unwrap()
    }

    /// Reads everything that a new group finds, by partition.
    fn read_all(&self) -> Result<Vec<Vec<Vec<u8>>>, JournalError> {
        let mut consumer = self.group(&format!("reader-{}", rand::random::<u64>()));
        let mut found = vec![Vec::new(); usize::from(PARTITIONS)];
        while let Some(delivery) = consumer.next(1000).now_or_never() {
            match delivery? {
                ConsumerEvent::Records(records) => {
                    let all = split(&records.bytes).map(|record| record.unwrap().to_vec());
                    found[usize::from(records.partition.index)].extend(all);
                }
                ConsumerEvent::Unreadable(_, error) => return Err(error),
                _ => {}
            }
        }
        Ok(found)
    }
}
