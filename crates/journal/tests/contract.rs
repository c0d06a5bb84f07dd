//! Checks the embedded journal against the contract of its port, on the real file system.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::options::ByteSize;
use fieldline_core::ports::Journal;
use fieldline_journal::{Durability, EmbeddedJournal, Options};
use fieldline_testkit::contract::journal::{self, JournalBackend};

struct Backend {
    dir: PathBuf,
    options: Options,
}

#[async_trait]
impl JournalBackend for Backend {
    async fn open(&self) -> Arc<dyn Journal> {
        Arc::new(EmbeddedJournal::open(&self.dir, &self.options).expect("it opens"))
    }
}

async fn keeps_its_promises(options: Options) {
    let dir = tempfile::tempdir().expect("a directory");
    let backend = Backend {
        dir: dir.path().join("journal"),
        options,
    };
    journal::all(&backend).await;
}

#[tokio::test]
async fn the_embedded_journal_keeps_its_promises() {
    keeps_its_promises(Options {
        min_free_disk: ByteSize(0),
        ..Options::default()
    })
    .await;
}

#[tokio::test]
async fn the_embedded_journal_keeps_its_promises_with_tiny_files_and_buffers() {
    keeps_its_promises(Options {
        durability: Durability::Interval(std::time::Duration::from_millis(5)),
        segment_bytes: ByteSize::kib(4),
        max_pending: ByteSize::kib(32),
        max_append: ByteSize::kib(16),
        min_free_disk: ByteSize(0),
        ..Options::default()
    })
    .await;
}

#[test]
fn a_second_process_cannot_open_the_same_journal() {
    let dir = tempfile::tempdir().unwrap();
    let first = EmbeddedJournal::open(dir.path(), &Options::default()).unwrap();
    let second = EmbeddedJournal::open(dir.path(), &Options::default());
    assert!(second.unwrap_err().to_string().contains("another process"));
    drop(first);
    EmbeddedJournal::open(dir.path(), &Options::default()).unwrap();
}
