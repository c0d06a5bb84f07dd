use fieldline_core::options::ByteSize;

use super::*;

const LIMIT: usize = 1 << 20;

fn outbox() -> Outbox {
    let mut outbox = Outbox::new(&Options {
        max_pending: ByteSize(LIMIT as u64),
        max_append: ByteSize::kib(256),
        max_bytes: ByteSize::mib(10),
        ..Options::default()
    });
    assert_eq!(outbox.add_partitions(3), 0);
    outbox
}

fn records(count: usize, bytes: usize) -> RecordBatch {
    let mut batch = RecordBatch::new();
    for _ in 0..count {
        batch.push(&vec![7; bytes - 4]);
    }
    batch
}

fn add(outbox: &mut Outbox, slot: usize, tenant: TenantId, bytes: usize) -> Result<(), AppendError> {
    let added = outbox.add(slot, &records(1, bytes), AppendOrigin::Device(tenant));
    added.map(drop)
}

#[test]
fn what_comes_during_a_round_trip_goes_with_the_next_block() {
    let (mut outbox, tenant) = (outbox(), TenantId::new());
    add(&mut outbox, 1, tenant, 100).unwrap();
    let (slot, origin, first) = outbox.take().unwrap();
    assert_eq!((slot, origin.sequence, first.records), (1, 0, 1));
    for _ in 0..5 {
        add(&mut outbox, 1, tenant, 100).unwrap();
    }
    assert!(outbox.take().is_none(), "one is under way");
    assert_eq!(outbox.tail(1, 40), position(41, 5));
    let woken = outbox.settle(1, &first, true);
    assert!(!woken.devices && !woken.internal, "nobody was refused");
    let (_, origin, second) = outbox.take().unwrap();
    assert_eq!((origin.sequence, second.records, second.appends), (1, 5, 5));
    assert_eq!(outbox.pending_bytes, 500);
    let _ = outbox.settle(1, &second, true);
    assert_eq!((outbox.pending_bytes, outbox.tenants.len()), (0, 0));
    assert_eq!(outbox.tail(1, 42), position(42, 0));
}

#[test]
fn full_blocks_do_not_wait_for_each_other_and_a_failed_one_ends_the_run() {
    let (mut outbox, origin) = (outbox(), AppendOrigin::Internal(TenantId::NULL));
    for _ in 0..4 {
        outbox.add(0, &records(1, 200 << 10), origin).unwrap();
    }
    let sent: Vec<_> = std::iter::from_fn(|| outbox.take()).collect();
    assert_eq!(sent.len(), 3, "the last one is not full");
    assert!(outbox.oldest().is_some());
    let run = sent[0].1.run;
    assert!(sent.iter().all(|(_, origin, _)| origin.run == run));
    for (_, _, block) in &sent {
        let _ = outbox.settle(0, block, false);
    }
    let (_, origin, _) = outbox.take().unwrap();
    assert!(origin.run != run && origin.sequence == 0);
}

#[tokio::test]
async fn an_append_of_several_blocks_is_done_with_the_last_and_fails_with_any() {
    for fails in [false, true] {
        let mut outbox = outbox();
        let records = records(10_000, 10);
        let (group, _) = outbox
            .add(2, &records, AppendOrigin::Device(TenantId::NULL))
            .unwrap();
        let mut append = std::pin::pin!(fieldline_core::ports::AppendFuture::of(group));
        for number in 0..3 {
            assert!(futures::poll!(append.as_mut()).is_pending());
            let (_, _, block) = outbox.take().unwrap();
            let _ = outbox.settle(2, &block, true);
            block.complete(&if fails && number == 1 {
                Err(AppendError::DiskFull)
            } else {
                Ok(())
            });
        }
        assert_eq!(append.await.is_err(), fails);
    }
}

#[test]
fn devices_of_one_tenant_leave_room_for_others_and_are_woken_when_theirs_is_gone() {
    let (mut outbox, greedy, modest) = (outbox(), TenantId::new(), TenantId::new());
    while add(&mut outbox, 0, greedy, 50 << 10).is_ok() {}
    let taken = outbox.pending_bytes;
    assert!(taken > LIMIT / 3 && taken <= LIMIT / 2, "{taken}");
    assert!(!outbox.is_ready(AppendOrigin::Device(greedy)));
    for slot in 0..3 {
        add(&mut outbox, slot, modest, 50 << 10).unwrap();
    }
    // The platform itself is not held up by devices.
    outbox
        .add(1, &records(1, 100 << 10), AppendOrigin::Internal(greedy))
        .unwrap();
    let mut is_woken = false;
    while let Some((slot, _, block)) = outbox.take() {
        is_woken |= outbox.settle(slot, &block, true).devices;
    }
    assert!(is_woken && outbox.is_ready(AppendOrigin::Device(greedy)));
    assert_eq!((outbox.pending_bytes, outbox.tenants.len()), (0, 0));
}

#[test]
fn a_log_at_its_largest_size_takes_only_what_the_platform_needs() {
    let (mut outbox, tenant) = (outbox(), TenantId::new());
    let _ = outbox.set_log_size(10 << 20);
    assert_eq!(add(&mut outbox, 0, tenant, 10).unwrap_err(), AppendError::Busy);
    assert_eq!(outbox.refusal(), Some(AppendError::Busy));
    outbox
        .add(0, &records(1, 10), AppendOrigin::Internal(tenant))
        .unwrap();
    assert_eq!(outbox.reserve.used(), 10);
    let woken = outbox.set_log_size(1 << 20);
    assert!(woken.devices && outbox.refusal().is_none());
    assert_eq!(outbox.reserve.used(), 0);
    outbox.closing = true;
    assert_eq!(add(&mut outbox, 0, tenant, 10).unwrap_err(), AppendError::Closed);
    assert!(outbox.is_ready(AppendOrigin::Device(tenant)));
    assert_eq!(outbox.take_rest().len(), 1);
}
