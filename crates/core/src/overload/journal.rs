//! What the journal tells of its troubles.

use std::sync::Arc;

use super::{OverloadKind, OverloadMeasure, OverloadSample, OverloadScope, OverloadSource};
use crate::ports::{AppendError, HoldBackCause, Journal};

/// Asks the journal whether it refuses appends, and how long it has made senders wait.
pub struct JournalOverload(pub Arc<dyn Journal>);

impl OverloadSource for JournalOverload {
    fn collect(&self, into: &mut Vec<OverloadSample>) {
        for (cause, held) in self.0.held_back() {
            let millis = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
            let reason = match cause {
                HoldBackCause::Disk => "Devices had to wait, because the disk of the log is too slow",
                HoldBackCause::Kafka => "Devices had to wait, because Kafka is too slow or out of reach",
                HoldBackCause::Consumers => {
                    "Devices had to wait, because the log is full: storing and rule chains are slower than what devices send"
                }
            };
            into.push(OverloadSample {
                kind: OverloadKind::Journal,
                scope: OverloadScope::All,
                subject: cause.setting().into(),
                measure: OverloadMeasure::Total(millis),
                limit: None,
                reason: reason.into(),
            });
        }
        let refused = match self.0.refusal() {
            // Held back, as above.
            None | Some(AppendError::Busy | AppendError::Closed | AppendError::TooLarge { .. }) => return,
            Some(AppendError::DiskFull) => {
                "The disk of the log is full: devices are refused until there is room"
            }
            Some(AppendError::Unreachable) => {
                "Kafka is out of reach: what devices send is acknowledged once it answers again"
            }
            Some(AppendError::Failed(_)) => {
                "The log could not be written: devices are refused until the program is restarted"
            }
        };
        into.push(OverloadSample {
            kind: OverloadKind::Disk,
            scope: OverloadScope::All,
            subject: "journal".into(),
            measure: OverloadMeasure::Level(0),
            limit: None,
            reason: refused.into(),
        });
    }
}
