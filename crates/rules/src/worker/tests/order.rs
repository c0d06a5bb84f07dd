//! The order of messages where some of them fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fieldline_model::entity::{ProcessingStrategyType, SubmitStrategyType};

use super::rig::{Rig, Seen, node};
use crate::node::NodeResult;
use crate::stats::MessageCounts;
use crate::strategy::QueueStrategy;

/// Sends messages 1 to 4 of one device, the second of which fails so many times. Returns them as they came.
async fn came(submit: SubmitStrategyType, failures: usize) -> (Vec<i64>, MessageCounts) {
    let strategy = QueueStrategy {
        submit,
        batch: 1,
        processing: ProcessingStrategyType::RetryFailedAndTimedOut,
        retries: 2,
        pause: Duration::ZERO,
        max_pause: Duration::ZERO,
        timeout: Duration::from_secs(60),
        ..QueueStrategy::default()
    };
    let rig = Rig::new(1, strategy).await;
    let (device, seen, left) = (
        rig.device_in(0).await,
        Seen::default(),
        Arc::new(AtomicUsize::new(failures)),
    );
    let fails = {
        let seen = seen.clone();
        node(move |_, msg| {
            seen.note(&msg);
            let one_less = |left: usize| left.checked_sub(1);
            if msg.values_ts() == 2
                && left
                    .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less)
                    .is_ok()
            {
                return NodeResult::fail(msg, "as it should");
            }
            NodeResult::success(msg)
        })
    };
    rig.chain(vec![fails], &[]);
    rig.send(device, 1..=4).await;
    let service = rig.start().await;
    let (counts, _) = rig.finish(service).await;
    (seen.all(), counts)
}

const IN_ORDER: [SubmitStrategyType; 4] = [
    SubmitStrategyType::Batch,
    SubmitStrategyType::Sequential,
    SubmitStrategyType::SequentialByOriginator,
    SubmitStrategyType::SequentialByTenant,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_behind_one_that_is_tried_again_wait_for_it() {
    for submit in IN_ORDER {
        let (order, counts) = came(submit, 1).await;
        assert_eq!(order, [1, 2, 2, 3, 4], "{submit:?}");
        assert_eq!((counts.successful, counts.failed), (4, 0), "{submit:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_behind_one_that_is_given_up_are_still_processed() {
    for submit in IN_ORDER {
        let (order, counts) = came(submit, usize::MAX).await;
        assert_eq!(order, [1, 2, 2, 2, 3, 4], "{submit:?}");
        assert_eq!((counts.successful, counts.failed), (3, 1), "{submit:?}");
    }
}
