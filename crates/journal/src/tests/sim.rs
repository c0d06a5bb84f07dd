//! A simulated disk in memory. At a power failure, each unsynced sector is lost, torn or written.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::disk::{DiskFile, JournalDisk};

const SECTOR: usize = 512;

/// The kinds of crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crash {
    /// The process is killed: everything written remains.
    Process,
    /// The power fails: any part of the unsynced data remains.
    Power,
}

#[derive(Clone, Default)]
struct Inode {
    durable: Vec<u8>,
    now: Vec<u8>,
    /// The ranges that the next sync writes. A failed sync forgets them, as kernels do.
    dirty: Vec<Range<usize>>,
}

impl Inode {
    fn sync(&mut self) {
        self.durable.resize(self.now.len(), 0);
        for range in self.dirty.drain(..) {
            let end = range.end.min(self.now.len());
            let start = range.start.min(end);
            self.durable[start..end].copy_from_slice(&self.now[start..end]);
        }
    }
}

#[derive(Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    capacity: Option<usize>,
    fail_writes: bool,
    fail_syncs: bool,
    /// Counts down with each write and sync; at 0 the machine stops.
    fuse: Option<u32>,
    rng: Option<StdRng>,
}

impl State {
    fn used(&self) -> usize {
        self.names
            .values()
            .filter_map(|id| self.inodes.get(*id))
            .map(|inode| inode.now.len())
            .sum()
    }

    /// Counts an operation; fails once the machine has stopped.
    fn burn(&mut self) -> io::Result<()> {
        match &mut self.fuse {
            Some(0) => Err(io::Error::other("the machine has stopped")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// The disk; clones share it.
#[derive(Clone, Default)]
pub(super) struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    pub(super) fn seeded(seed: u64) -> Self {
        let disk = Self::default();
        disk.0.lock().rng = Some(StdRng::seed_from_u64(seed));
        disk
    }

    /// Stops the machine after this many more writes and syncs.
    pub(super) fn stop_after(&self, operations: u32) {
        self.0.lock().fuse = Some(operations);
    }

    pub(super) fn set_capacity(&self, bytes: Option<usize>) {
        self.0.lock().capacity = bytes;
    }

    pub(super) fn fail_writes(&self, fail: bool) {
        self.0.lock().fail_writes = fail;
    }

    pub(super) fn fail_syncs(&self, fail: bool) {
        self.0.lock().fail_syncs = fail;
    }

    pub(super) fn used(&self) -> usize {
        self.0.lock().used()
    }

    /// Names and lengths of the segments.
    pub(super) fn segments(&self) -> Vec<(String, usize)> {
        let state = self.0.lock();
        let segments = state.names.iter().filter(|(name, _)| name.ends_with(".log"));
        segments
            .map(|(name, id)| (name.clone(), state.inodes[*id].now.len()))
            .collect()
    }

    /// Flips one bit of a file.
    pub(super) fn flip(&self, name: &str, at: usize, mask: u8) {
        let mut state = self.0.lock();
        let id = state.names[name];
        let inode = &mut state.inodes[id];
        inode.now[at] ^= mask;
        inode.durable.clone_from(&inode.now);
    }

    /// Returns the disk as another machine finds it after the crash.
    pub(super) fn after(&self, crash: Crash, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let state = self.0.lock();
        let mut after = State {
            inodes: state.inodes.clone(),
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            ..State::default()
        };
        if crash == Crash::Power {
            for inode in &mut after.inodes {
                inode.now = torn(inode, &mut rng);
                inode.durable.clone_from(&inode.now);
                inode.dirty.clear();
            }
            after.names = torn_names(&state, &mut rng);
            after.durable_names = after.names.clone();
        }
        after.rng = Some(rng);
        Self(Arc::new(Mutex::new(after)))
    }
}

/// Each sector is old or new, the length anywhere in between, and bytes never written are zeros.
fn torn(inode: &Inode, rng: &mut StdRng) -> Vec<u8> {
    let (old, new) = (&inode.durable, &inode.now);
    let (short, long) = (old.len().min(new.len()), old.len().max(new.len()));
    let length = rng.random_range(short..=long);
    let mut result = vec![0; length];
    for (index, sector) in result.chunks_mut(SECTOR).enumerate() {
        let source = if rng.random_bool(0.5) { new } else { old };
        let start = (index * SECTOR).min(source.len());
        let end = (start + sector.len()).min(source.len());
        sector[..end - start].copy_from_slice(&source[start..end]);
    }
    result
}

/// Each change of the directory happened or not.
fn torn_names(state: &State, rng: &mut StdRng) -> BTreeMap<String, usize> {
    let mut names = state.durable_names.clone();
    let all = state.names.keys().chain(state.durable_names.keys());
    for name in all {
        if rng.random_bool(0.5) {
            match state.names.get(name) {
                Some(id) => names.insert(name.clone(), *id),
                None => names.remove(name),
            };
        }
    }
    names
}

impl JournalDisk for SimDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.0.lock();
        let id = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(SimFile {
            disk: self.clone(),
            id,
        }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.burn()?;
        let id = state.inodes.len();
        state.inodes.push(Inode::default());
        state.names.insert(name.to_owned(), id);
        Ok(Arc::new(SimFile {
            disk: self.clone(),
            id,
        }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().names.keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.burn()?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.burn()?;
        let id = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), id);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.burn()?;
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.0.lock();
        let capacity = state.capacity.unwrap_or(1 << 40);
        Ok(capacity.saturating_sub(state.used()) as u64)
    }

    fn describe(&self, name: &str) -> String {
        name.to_owned()
    }
}

struct SimFile {
    disk: SimDisk,
    id: usize,
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let state = self.disk.0.lock();
        let bytes = &state.inodes[self.id].now;
        let start = (position as usize).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<usize> {
        let mut state = self.disk.0.lock();
        if state.fail_writes {
            return Err(io::Error::other("injected"));
        }
        let mut bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        // Some writes are short, including the one at which the machine stops.
        if let Some(rng) = &mut state.rng
            && bytes.len() > 1
            && rng.random_bool(0.3)
        {
            let count = rng.random_range(1..bytes.len());
            bytes.truncate(count);
        }
        state.burn()?;
        if let Some(capacity) = state.capacity {
            let room = capacity.saturating_sub(state.used());
            if room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            bytes.truncate(room);
        }
        let file = &mut state.inodes[self.id].now;
        let start = position as usize;
        if file.len() < start + bytes.len() {
            file.resize(start + bytes.len(), 0);
        }
        file[start..start + bytes.len()].copy_from_slice(&bytes);
        state.inodes[self.id].dirty.push(start..start + bytes.len());
        Ok(bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        if state.fail_syncs {
            state.inodes[self.id].dirty.clear();
            return Err(io::Error::other("injected"));
        }
        state.burn()?;
        state.inodes[self.id].sync();
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.burn()?;
        state.inodes[self.id].now.resize(length as usize, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().inodes[self.id].now.len() as u64)
    }
}
