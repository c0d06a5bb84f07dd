//! The few file operations the journal needs, behind a trait so that tests can simulate crashes.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldline_core::directory::create_durably;

/// One directory.
pub(crate) trait JournalDisk: Send + Sync {
    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a file, or truncates an existing one.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Lists the names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Removes a file; open handles stay readable.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Renames a file, replacing an existing one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes creations, removals and renames durable.
    fn sync_directory(&self) -> io::Result<()>;
    /// Free space in bytes.
    fn free_bytes(&self) -> io::Result<u64>;
    /// The name of a file in messages to an operator.
    fn describe(&self, name: &str) -> String;
}

/// One file.
pub(crate) trait DiskFile: Send + Sync {
    /// Reads at a position; may return fewer bytes than requested.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;
    /// Writes at a position; may write fewer bytes than given.
    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<usize>;
    /// Makes the contents and the length durable.
    fn sync(&self) -> io::Result<()>;
    /// Truncates or extends the file.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Length of the file.
    fn len(&self) -> io::Result<u64>;
}

/// Most slices that one vectored write takes on common systems.
const MAX_SLICES: usize = 1024;

/// Writes all slices in order.
pub(crate) fn write_all_at(
    file: &dyn DiskFile,
    mut slices: &mut [IoSlice<'_>],
    mut position: u64,
) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let batch = slices.get(..MAX_SLICES).unwrap_or(slices);
        match file.write_at(batch, position) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                position += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until the buffer is full.
pub(crate) fn read_exact_at(file: &dyn DiskFile, mut buffer: &mut [u8], mut position: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, position) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                position += read as u64;
                buffer = buffer.get_mut(read..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether a call failed for lack of space, which leaves earlier writes in a known state.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// A directory of the file system, locked against a second process.
pub(crate) struct LockedDirectory {
    path: PathBuf,
    handle: File,
    _lock: File,
}

impl LockedDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        create_durably(path, 0o777)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another process uses this journal")
            }
            std::fs::TryLockError::Error(error) => error,
        })?;
        Ok(Self {
            path: path.to_owned(),
            handle: File::open(path)?,
            _lock: lock,
        })
    }
}

impl JournalDisk for LockedDirectory {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path.join(name))?;
        Ok(Arc::new(SystemFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(self.path.join(name))?;
        Ok(Arc::new(SystemFile(file)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = rustix::fs::fstatvfs(&self.handle)?;
        Ok(state.f_bavail.saturating_mul(state.f_frsize))
    }

    fn describe(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

struct SystemFile(File);

impl DiskFile for SystemFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.0.read_at(buffer, position)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&self.0, slices, position)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}
