//! Recovery after a crash: processes the records that were in flight one by one, and sets aside those that caused it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fieldline_model::entity::SetAsideReason;
use tracing::{error, warn};

use super::service::{IngestShared, IngestShutdown};
use super::worker::{IngestWorker, RETRY_PAUSE};
use crate::in_flight::{BatchIsolation, CrashCount, RecordTreatment};
use crate::ports::{ConsumerRecords, Offset, Partition, StoreEffects};
use crate::set_aside::RecordPosition;

/// How long the records of one delivery are processed one by one. If each of them waits for something external, the
/// rest is then processed together; another crash leaves fewer suspects.
const SINGLE_RECORD_TIME: Duration = Duration::from_secs(30);

impl IngestWorker {
    /// Processes records of which some are suspected.
    pub(super) async fn store_singly(&mut self, mut rest: ConsumerRecords) -> Result<(), IngestShutdown> {
        let partition = rest.partition;
        let begun = Instant::now();
        while !rest.bytes.is_empty() {
            let in_hand = self.shared.crashes.in_flight.clone();
            let (mut treatment, mut until) = in_hand.treatment(partition, rest.first, rest.next);
            if treatment == RecordTreatment::Apart && begun.elapsed() >= SINGLE_RECORD_TIME {
                treatment = RecordTreatment::Usual;
                until = unproven_until(rest.next, until, |at| in_hand.treatment(partition, at, rest.next));
            }
            let part = split_off(&mut rest, until);
            let all = match treatment {
                RecordTreatment::SetAside(deaths) => self.set_aside(part, deaths).await.map(|()| true)?,
                treatment => {
                    let turn = tokio::select! {
                        turn = in_hand.acquire(treatment) => turn,
                        () = self.shared.stopped() => return Err(IngestShutdown),
                    };
                    if turn.isolation == BatchIsolation::Exclusively {
                        warn!(%partition, position = part.first.0, "the process has died with this record in hand, trying it once more with nothing else going on");
                    }
                    self.store_pack(&part, turn.isolation).await?
                }
            };
            if !all {
                break;
            }
        }
        Ok(())
    }

    /// Sets a record aside and moves the position past it.
    async fn set_aside(&mut self, record: ConsumerRecords, deaths: CrashCount) -> Result<(), IngestShutdown> {
        let partition = record.partition;
        let bytes = record.bytes.slice(LENGTH_BYTES.min(record.bytes.len())..);
        if !self
            .shared
            .set_aside(partition, record.first, bytes, deaths)
            .await?
        {
            error!(%partition, position = record.first.0, "the process died of this record and there is nowhere to keep it, trying it again");
            return self.store_pack(&record, BatchIsolation::Apart).await.map(drop);
        }
        self.store
            .apply(partition, record.next, &StoreEffects::default())
            .await
    }
}

impl IngestShared {
    /// Sets aside a record that has crashed the process; returns false if there is no store to keep it.
    pub(super) async fn set_aside(
        &self,
        partition: Partition,
        offset: Offset,
        record: Bytes,
        deaths: CrashCount,
    ) -> Result<bool, IngestShutdown> {
        let Some(set_aside) = self.crashes.set_aside.clone() else {
            return Ok(false);
        };
        let queue = self.name_of(partition.queue);
        let place = RecordPosition {
            queue: &queue,
            partition,
            offset,
        };
        let details = format!(
            "The server died {} times with this record in hand, {} times with nothing else going on.",
            deaths.alone, deaths.sole
        );
        loop {
            let why = (deaths.alone, details.clone());
            let kept = set_aside.keep(place, record.clone(), SetAsideReason::KilledProcess, why);
            match kept.await {
                Ok(()) => return Ok(true),
                Err(error) => {
                    error!(%partition, %error, "cannot set a record aside, trying again");
                    self.pause(RETRY_PAUSE).await?;
                }
            }
        }
    }
}

/// Each record is preceded by its length.
const LENGTH_BYTES: usize = 4;

/// Returns the position of the first record that was alone in flight at a crash, or `end`.
fn unproven_until(
    end: Offset,
    mut until: Offset,
    treatment: impl Fn(Offset) -> (RecordTreatment, Offset),
) -> Offset {
    while until < end {
        match treatment(until) {
            (RecordTreatment::Usual | RecordTreatment::Apart, next) => until = next,
            (RecordTreatment::Exclusively | RecordTreatment::SetAside(_), _) => break,
        }
    }
    until
}

/// Splits off the records before a position.
fn split_off(rest: &mut ConsumerRecords, until: Offset) -> ConsumerRecords {
    let mut length = 0;
    for _ in rest.first.0..until.0 {
        let ahead = rest
            .bytes
            .get(length..)
            .and_then(<[u8]>::first_chunk::<LENGTH_BYTES>);
        let Some(record) = ahead else { break };
        length = (length + LENGTH_BYTES).saturating_add(u32::from_le_bytes(*record) as usize);
    }
    let bytes: Bytes = rest.bytes.split_to(length.min(rest.bytes.len()));
    // There may be gaps in the positions after the last record.
    let next = if rest.bytes.is_empty() { rest.next } else { until };
    let part = ConsumerRecords {
        partition: rest.partition,
        first: rest.first,
        next,
        bytes,
    };
    rest.first = next;
    part
}
