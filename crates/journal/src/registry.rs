//! The state of the journal besides its log: the queues, their consumer groups, and the groups' positions.
//!
//! `manifest` is durable before a queue or group is used. `positions` is replaced at every commit without waiting for
//! the disk: it survives a crash of the process; a crash of the machine may move positions back, never forward.

use std::collections::BTreeMap;
use std::fmt::Write;

use fieldline_core::ports::{JournalError, Partition, QueueId};

use crate::disk::{JournalDisk, is_full};
use crate::error::invalid;
use crate::textfile::{self, ReplaceDurability, TextFileContents};

const MANIFEST: &str = "manifest";
const POSITIONS: &str = "positions";
const MANIFEST_TITLE: &str = "fieldline-journal 1";
const POSITIONS_TITLE: &str = "fieldline-journal-positions 1";
/// Every segment begins with an entry for each partition.
const MAX_PARTITIONS: u32 = 1 << 16;
const MAX_NAME_BYTES: usize = 249;

/// Offset of each partition; 0 if missing.
pub(crate) type PartitionOffsets = BTreeMap<Partition, u64>;

/// A queue and its number of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueEntry {
    pub(crate) name: String,
    pub(crate) partitions: u16,
}

/// Queues, groups and positions, as stored on the disk.
#[derive(Debug, Default)]
pub(crate) struct QueueRegistry {
    pub(crate) log: u64,
    pub(crate) queues: Vec<QueueEntry>,
    groups: BTreeMap<(QueueId, String), PartitionOffsets>,
}

impl QueueRegistry {
    /// Reads the registry; `None` if there was never one.
    pub(crate) fn load(disk: &dyn JournalDisk) -> Result<Option<Self>, JournalError> {
        let damaged = |name: &str| {
            JournalError::Corrupt(format!(
                "{} does not pass its checks; put it back from a copy",
                disk.describe(name)
            ))
        };
        let lines = match textfile::read(disk, MANIFEST)? {
            TextFileContents::Missing => return Ok(None),
            TextFileContents::Damaged => return Err(damaged(MANIFEST)),
            TextFileContents::Lines(lines) => lines,
        };
        let mut registry = parse_manifest(&lines).ok_or_else(|| damaged(MANIFEST))?;
        match textfile::read(disk, POSITIONS)? {
            TextFileContents::Lines(lines) if registry.take_positions(&lines).is_some() => {}
            TextFileContents::Missing => {}
            _ => tracing::warn!("the journal's consumer positions were lost, consumers start over"),
        }
        Ok(Some(registry))
    }

    /// Creates and stores the registry of a new log, durably.
    pub(crate) fn create(disk: &dyn JournalDisk) -> Result<Self, JournalError> {
        let registry = Self {
            log: rand::random(),
            ..Self::default()
        };
        registry.store_manifest(disk)?;
        Ok(registry)
    }

    /// Finds or adds a queue.
    pub(crate) fn open_queue(
        &mut self,
        disk: &dyn JournalDisk,
        name: &str,
        partitions: u16,
    ) -> Result<QueueId, JournalError> {
        check_name(name)?;
        if let Some(at) = self.queues.iter().position(|queue| queue.name == name) {
            return Ok(QueueId(at as u16));
        }
        let id = u16::try_from(self.queues.len()).map_err(|_| invalid("too many queues".to_owned()))?;
        if partitions == 0 {
            return Err(invalid(format!("queue `{name}` needs at least one partition")));
        }
        let all: u32 = self.queues.iter().map(|queue| u32::from(queue.partitions)).sum();
        if all + u32::from(partitions) > MAX_PARTITIONS {
            return Err(invalid(format!(
                "more than {MAX_PARTITIONS} partitions in all queues together"
            )));
        }
        self.queues.push(QueueEntry {
            name: name.to_owned(),
            partitions,
        });
        self.store_manifest(disk)
            .inspect_err(|_| drop(self.queues.pop()))?;
        Ok(QueueId(id))
    }

    /// Number of partitions of a queue, 0 if there is no such queue.
    pub(crate) fn partitions(&self, queue: QueueId) -> u16 {
        self.queues
            .get(usize::from(queue.0))
            .map_or(0, |queue| queue.partitions)
    }

    /// Registers a group permanently; returns its positions.
    pub(crate) fn join(
        &mut self,
        disk: &dyn JournalDisk,
        queue: QueueId,
        group: &str,
    ) -> Result<PartitionOffsets, JournalError> {
        check_name(group)?;
        let key = (queue, group.to_owned());
        if let Some(positions) = self.groups.get(&key) {
            return Ok(positions.clone());
        }
        self.groups.insert(key.clone(), PartitionOffsets::new());
        self.store_manifest(disk)
            .inspect_err(|_| drop(self.groups.remove(&key)))?;
        Ok(PartitionOffsets::new())
    }

    /// Moves a group's position forward; an earlier position changes nothing.
    pub(crate) fn commit(
        &mut self,
        disk: &dyn JournalDisk,
        queue: QueueId,
        group: &str,
        partition: Partition,
        offset: u64,
    ) -> Result<(), JournalError> {
        let Some(positions) = self.groups.get_mut(&(queue, group.to_owned())) else {
            return Err(invalid(format!("group `{group}` never joined")));
        };
        let position = positions.entry(partition).or_default();
        if *position >= offset {
            return Ok(());
        }
        *position = offset;
        match self.store_positions(disk) {
            // The position is valid while the process lives, and the segments that it frees may be what makes room.
            Err(JournalError::Io { source, .. }) if is_full(&source) => {
                tracing::debug!(%partition, "no room to store a consumer position");
                Ok(())
            }
            stored => stored,
        }
    }

    /// Returns whether some group still needs records of `partition` before `end`. Until a group has joined, all are
    /// needed.
    pub(crate) fn needs(&self, partition: Partition, end: u64) -> bool {
        let mut groups = self
            .groups
            .iter()
            .filter(|((queue, _), _)| *queue == partition.queue)
            .peekable();
        groups.peek().is_none()
            || groups.any(|(_, positions)| positions.get(&partition).copied().unwrap_or(0) < end)
    }

    /// Moves back positions beyond the end of the log, which a crash of the machine without `fsync` may have shortened.
    pub(crate) fn clamp(&mut self, ends: &PartitionOffsets) {
        for ((_, group), positions) in &mut self.groups {
            for (partition, position) in positions {
                let end = ends.get(partition).copied().unwrap_or(0);
                if *position > end {
                    tracing::warn!(%partition, group, position, end, "journal lost what was consumed already");
                    *position = end;
                }
            }
        }
    }

    fn store_manifest(&self, disk: &dyn JournalDisk) -> Result<(), JournalError> {
        let mut body = format!("{MANIFEST_TITLE}\nlog {:016x}\n", self.log);
        for queue in &self.queues {
            let _ = writeln!(body, "queue {} {}", queue.partitions, queue.name);
        }
        for (queue, group) in self.groups.keys() {
            let _ = writeln!(body, "group {} {group}", queue.0);
        }
        textfile::replace(disk, MANIFEST, body, ReplaceDurability::Durable)
    }

    fn store_positions(&self, disk: &dyn JournalDisk) -> Result<(), JournalError> {
        let mut body = format!("{POSITIONS_TITLE}\nlog {:016x}\n", self.log);
        for ((_, group), positions) in &self.groups {
            for (partition, position) in positions {
                let _ = writeln!(
                    body,
                    "at {} {} {position} {group}",
                    partition.queue.0, partition.index
                );
            }
        }
        textfile::replace(disk, POSITIONS, body, ReplaceDurability::Quick)
    }

    fn take_positions(&mut self, lines: &[String]) -> Option<()> {
        let mut lines = lines.iter();
        let log = u64::from_str_radix(
            lines
                .next()
                .filter(|title| *title == POSITIONS_TITLE)
                .and_then(|_| lines.next())?
                .strip_prefix("log ")?,
            16,
        )
        .ok()?;
        if log != self.log {
            return None;
        }
        for line in lines {
            let mut words = line.strip_prefix("at ")?.splitn(4, ' ');
            let partition = Partition {
                queue: QueueId(words.next()?.parse().ok()?),
                index: words.next()?.parse().ok()?,
            };
            let position = words.next()?.parse().ok()?;
            let key = (partition.queue, words.next()?.to_owned());
            self.groups.get_mut(&key)?.insert(partition, position);
        }
        Some(())
    }
}

fn parse_manifest(lines: &[String]) -> Option<QueueRegistry> {
    let mut lines = lines.iter();
    lines.next().filter(|title| *title == MANIFEST_TITLE)?;
    let mut registry = QueueRegistry {
        log: u64::from_str_radix(lines.next()?.strip_prefix("log ")?, 16).ok()?,
        ..QueueRegistry::default()
    };
    for line in lines {
        if let Some((partitions, name)) = line.strip_prefix("queue ").and_then(|rest| rest.split_once(' ')) {
            registry.queues.push(QueueEntry {
                name: name.to_owned(),
                partitions: partitions.parse().ok()?,
            });
        } else {
            let (queue, group) = line.strip_prefix("group ")?.split_once(' ')?;
            let key = (QueueId(queue.parse().ok()?), group.to_owned());
            registry.groups.insert(key, PartitionOffsets::new());
        }
    }
    Some(registry)
}

/// A name must fit into a line of the files.
fn check_name(name: &str) -> Result<(), JournalError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        return Err(invalid(format!(
            "`{}` is no name: 1 to {MAX_NAME_BYTES} bytes without control characters are allowed",
            name.escape_debug()
        )));
    }
    Ok(())
}
