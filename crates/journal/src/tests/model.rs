//! Compares random appends, crashes and restarts with a model.

use futures::FutureExt;
use proptest::prelude::*;

use super::sim::{Crash, SimDisk};
use super::{Bench, PARTITIONS, options};
use crate::{Durability, Options};
use fieldline_core::ports::{AppendFuture, Journal};

#[derive(Debug, Clone)]
enum Action {
    Append { partition: u16, sizes: Vec<usize> },
    Commit,
    Crash { kind: Crash, after: u32, seed: u64 },
    Close,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        12 => (0..PARTITIONS, prop::collection::vec(0_usize..900, 1..5))
            .prop_map(|(partition, sizes)| Action::Append { partition, sizes }),
        8 => Just(Action::Commit),
        2 => (prop_oneof![Just(Crash::Process), Just(Crash::Power)], 0_u32..8, any::<u64>())
            .prop_map(|(kind, after, seed)| Action::Crash { kind, after, seed }),
        1 => Just(Action::Close),
    ];
    prop::collection::vec(action, 1..80)
}

/// The records sent to a partition, and how many of them were known to be acknowledged.
#[derive(Default, Clone)]
struct Sent {
    records: Vec<Vec<u8>>,
    acknowledged: usize,
}

struct World {
    disk: SimDisk,
    bench: Option<Bench>,
    options: Options,
    sent: Vec<Sent>,
    waiting: Vec<(usize, usize, AppendFuture)>,
    number: u64,
}

impl World {
    fn new(options: Options, seed: u64) -> Self {
        let disk = SimDisk::seeded(seed);
        let bench = Some(Bench::open(&disk, &options).unwrap());
        Self {
            disk,
            bench,
            options,
            sent: vec![Sent::default(); usize::from(PARTITIONS)],
            waiting: Vec::new(),
            number: 0,
        }
    }

    fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().unwrap()
    }

    fn append(&mut self, partition: u16, sizes: &[usize]) {
        let records: Vec<Vec<u8>> = sizes
            .iter()
            .map(|size| {
                self.number += 1;
                let mut record = self.number.to_le_bytes().to_vec();
                record.resize(8 + size, self.number as u8);
                record
            })
            .collect();
        if let Ok(append) = self.bench().append(partition, &records) {
            let sent = &mut self.sent[usize::from(partition)];
            sent.records.extend(records);
            let end = sent.records.len();
            self.waiting.push((usize::from(partition), end, append));
        }
    }

    fn commit(&mut self) {
        self.bench().committer.tick();
        self.collect();
    }

    fn collect(&mut self) {
        for (partition, end, append) in std::mem::take(&mut self.waiting) {
            if append.now_or_never().expect("the turn completes all") == Ok(()) {
                self.sent[partition].acknowledged = end;
            }
        }
    }

    /// Stops the machine in the middle of its work, starts another on its disk, and compares.
    fn crash(&mut self, kind: Crash, after: u32, seed: u64) {
        self.disk.stop_after(after);
        self.append(0, &[700, 800]);
        self.append(1, &[300]);
        self.commit();
        self.disk = self.disk.after(kind, seed);
        self.waiting.clear();
        self.bench = None;
        self.reopen(kind);
    }

    fn reopen(&mut self, kind: Crash) {
        let bench = Bench::open(&self.disk, &self.options).expect("a crash is no reason to refuse");
        let found = bench.read_all().unwrap();
        for (sent, found) in self.sent.iter_mut().zip(found) {
            let count = found.len();
            let must = kind == Crash::Process || self.options.durability == Durability::Fsync;
            assert!(!must || count >= sent.acknowledged, "lost acknowledged records");
            assert_eq!(found, sent.records[..count], "exactly what was sent, in order");
            sent.records.truncate(count);
            sent.acknowledged = count;
        }
        self.bench = Some(bench);
    }

    fn close(&mut self) {
        self.waiting.clear();
        let Bench {
            journal,
            mut committer,
            ..
        } = self.bench.take().unwrap();
        committer.tick();
        for sent in &mut self.sent {
            sent.acknowledged = sent.records.len();
        }
        committer.end();
        assert!(
            journal.close().now_or_never().is_some(),
            "the committer has ended, so closing does not wait"
        );
        drop(journal);
        // After an orderly stop, nothing is lost even if the power fails, whatever the durability.
        self.disk = self.disk.after(Crash::Power, self.number);
        self.reopen(Crash::Process);
    }

    fn run(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Append { partition, sizes } => self.append(partition, &sizes),
                Action::Commit => self.commit(),
                Action::Crash { kind, after, seed } => self.crash(kind, after, seed),
                Action::Close => self.close(),
            }
        }
        self.crash(Crash::Process, 0, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn acknowledged_records_survive_every_crash_once_and_in_order(
        actions in actions(),
        seed in any::<u64>(),
        durability in prop_oneof![
            3 => Just(Durability::Fsync),
            1 => Just(Durability::Os),
        ],
    ) {
        World::new(Options { durability, ..options() }, seed).run(actions);
    }
}
