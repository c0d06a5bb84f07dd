//! What the ingest port promises: positions, crashes and replays.

use bytes::Bytes;
use fieldline_core::ports::{AttributeRow, Offset, SeriesDeletion, StateKey, StateRow, StoreEffects};
use fieldline_model::EntityKey;
use fieldline_model::timeseries::AttributeScope;
use uuid::Uuid;

use super::{
    ALL, SeriesBackend, apply, apply_between_records, attribute, fresh_partition, latest, long, ok, packed,
    range, save, subject, times,
};

/// Effects are seen at once, and a record is not applied twice.
pub async fn applied_effects_are_seen_and_skipped_the_second_time(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let (subject, partition) = (subject(), fresh_partition());
    assert_eq!(ok(stores.ingest.resume_position(partition).await), None);
    apply(
        &stores,
        partition,
        10,
        &[(subject, 1, "k", 1), (subject, 2, "k", 2)],
    )
    .await;
    assert_eq!(times(&stores, subject, "k").await, [1, 2]);
    assert_eq!(latest(&stores, subject, "k").await, Some((2, long(2))));
    apply(&stores, partition, 10, &[(subject, 2, "k", 99)]).await;
    assert_eq!(
        latest(&stores, subject, "k").await,
        Some((2, long(2))),
        "already applied"
    );
    let positions = ok(stores.ingest.checkpoint().await);
    assert!(positions.contains(&(partition, Offset(10))));
    let stores = backend.crash().await;
    assert_eq!(
        ok(stores.ingest.resume_position(partition).await),
        Some(Offset(10))
    );
    assert_eq!(
        times(&stores, subject, "k").await,
        [1, 2],
        "checkpointed effects are durable"
    );
    assert_eq!(latest(&stores, subject, "k").await, Some((2, long(2))));
}

/// What happens between records is seen at once, every time, becomes durable with the next checkpoint, and does not move
/// the position: the record that comes next is applied.
pub async fn what_happens_between_records_leaves_the_position(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let (subject, partition) = (subject(), fresh_partition());
    let kept = |value: &'static [u8]| StateRow {
        key: StateKey {
            subject,
            owner: Uuid::from_u128(1),
            number: 2,
        },
        value: Bytes::from_static(value),
    };
    apply_between_records(&stores, partition, &[(subject, 1, "k", 1)], vec![kept(b"first")]).await;
    assert_eq!(ok(stores.ingest.resume_position(partition).await), None);
    apply(&stores, partition, 10, &[(subject, 2, "k", 2)]).await;
    for (value, state) in [(3, &b"second"[..]), (4, b"third")] {
        apply_between_records(&stores, partition, &[(subject, 2, "k", value)], vec![kept(state)]).await;
        assert_eq!(latest(&stores, subject, "k").await, Some((2, long(value))));
        let states = ok(stores.ingest.states(partition).await);
        assert_eq!(states, [kept(state)]);
    }
    let position = ok(stores.ingest.resume_position(partition).await);
    assert_eq!(position, Some(Offset(10)));
    ok(stores.ingest.checkpoint().await);

    let stores = backend.crash().await;
    assert_eq!(latest(&stores, subject, "k").await, Some((2, long(4))));
    assert_eq!(ok(stores.ingest.states(partition).await), [kept(b"third")]);
    apply(&stores, partition, 11, &[(subject, 3, "k", 5)]).await;
    assert_eq!(times(&stores, subject, "k").await, [1, 2, 3]);
    apply_between_records(&stores, partition, &[], vec![kept(b"")]).await;
    assert_eq!(
        ok(stores.ingest.states(partition).await),
        [],
        "an empty value removes the row"
    );
}

/// After a crash, replaying from the resume position leads to the state in which each record was applied once.
pub async fn a_replay_completes_what_a_crash_cut_off(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let (subject, partition) = (subject(), fresh_partition());
    let records: Vec<Vec<(EntityKey, i64, &str, i64)>> = (0..6)
        .map(|n| vec![(subject, n / 2, "k", n), (subject, n, "j", n)])
        .collect();
    for (at, record) in records.iter().enumerate() {
        apply(&stores, partition, at as u64 + 1, record).await;
        if at == 2 {
            ok(stores.ingest.checkpoint().await);
        }
    }
    let stores = backend.crash().await;
    let resume = ok(stores.ingest.resume_position(partition).await).map_or(0, |offset| offset.0);
    assert!(
        (3..=6).contains(&resume),
        "a checkpointed record came back: {resume}"
    );
    for (at, record) in records.iter().enumerate().skip(resume as usize) {
        apply(&stores, partition, at as u64 + 1, record).await;
    }
    let expected = [(0, long(1)), (1, long(3)), (2, long(5))];
    assert_eq!(
        range(&stores, subject, "k", ALL).await,
        expected,
        "the last value of each time"
    );
    assert_eq!(latest(&stores, subject, "k").await, Some((2, long(5))));
    assert_eq!(times(&stores, subject, "j").await, [0, 1, 2, 3, 4, 5]);
}

/// A replay undoes neither writes nor deletions that people made meanwhile.
pub async fn a_replay_does_not_undo_what_people_did(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let (subject, partition) = (subject(), fresh_partition());
    let record = [(subject, 1, "deleted", 1), (subject, 1, "overwritten", 1)];
    let attributes = packed(&[("a", long(1))]);
    apply(&stores, partition, 1, &record).await;
    let client = AttributeRow {
        subject,
        scope: AttributeScope::Client,
        ts: 1,
        values: &attributes,
    };
    let effects = StoreEffects {
        states: Vec::new(),
        telemetry: Vec::new(),
        attributes: vec![client.into()],
    };
    ok(stores.ingest.apply(partition, Offset(2), &effects).await);
    let whole = SeriesDeletion {
        range: None,
        delete_latest: true,
        rewrite_latest: false,
    };
    ok(stores
        .series
        .delete(subject, &["deleted".to_owned()], whole)
        .await);
    save(&stores, subject, 1, &[("overwritten", long(2))]).await;
    ok(stores
        .attributes
        .delete(subject, AttributeScope::Client, &["a".to_owned()])
        .await);
    let stores = backend.crash().await;
    let resume = ok(stores.ingest.resume_position(partition).await).map_or(0, |offset| offset.0);
    if resume < 1 {
        apply(&stores, partition, 1, &record).await;
    }
    if resume < 2 {
        ok(stores.ingest.apply(partition, Offset(2), &effects).await);
    }
    assert_eq!(times(&stores, subject, "deleted").await, [0; 0]);
    assert_eq!(latest(&stores, subject, "deleted").await, None);
    assert_eq!(range(&stores, subject, "overwritten", ALL).await, [(1, long(2))]);
    assert_eq!(latest(&stores, subject, "overwritten").await, Some((1, long(2))));
    assert_eq!(
        attribute(&stores, subject, AttributeScope::Client, "a").await,
        None
    );
}

/// After a rewind the positions from there on belong to new records, which are applied; what was applied before stays.
pub async fn records_after_a_rewind_are_new_ones(backend: &dyn SeriesBackend) {
    let stores = backend.stores().await;
    let (subject, partition, other) = (subject(), fresh_partition(), fresh_partition());
    apply(&stores, partition, 10, &[(subject, 1, "k", 1)]).await;
    apply(&stores, other, 10, &[(subject, 2, "k", 2)]).await;
    ok(stores.ingest.checkpoint().await);
    ok(stores.ingest.rewind(partition, Offset(5)).await);
    let position = ok(stores.ingest.resume_position(partition).await);
    assert_eq!(position, Some(Offset(5)));
    let positions = ok(stores.ingest.checkpoint().await);
    assert!(positions.contains(&(partition, Offset(5))), "{positions:?}");
    assert!(positions.contains(&(other, Offset(10))), "{positions:?}");

    let stores = backend.crash().await;
    let position = ok(stores.ingest.resume_position(partition).await);
    assert_eq!(position, Some(Offset(5)), "a rewind is durable");
    apply(&stores, partition, 6, &[(subject, 3, "k", 3)]).await;
    assert_eq!(times(&stores, subject, "k").await, [1, 2, 3]);
    ok(stores.ingest.rewind(partition, Offset(20)).await);
    let unknown = fresh_partition();
    ok(stores.ingest.rewind(unknown, Offset(20)).await);
    let position = ok(stores.ingest.resume_position(partition).await);
    assert_eq!(position, Some(Offset(6)), "a rewind does not go forward");
    assert_eq!(ok(stores.ingest.resume_position(unknown).await), None);
}
