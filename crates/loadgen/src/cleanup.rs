//! Registers child servers and temporary files for removal when the process ends. Destructors remove them as well, but
//! do not run when a signal ends the process.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use crate::error::{LoadError, LoadResult};

#[derive(Default)]
struct CleanupRegistry {
    children: Vec<Pid>,
    paths: Vec<PathBuf>,
}

static CLEANUP_REGISTRY: Mutex<CleanupRegistry> = Mutex::new(CleanupRegistry {
    children: Vec::new(),
    paths: Vec::new(),
});

fn lock_registry() -> MutexGuard<'static, CleanupRegistry> {
    CLEANUP_REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Exits with a code after it has killed the registered child servers and removed the registered paths. For signal
/// handlers.
pub fn clean_up_and_exit(code: i32) -> ! {
    let left = lock_registry();
    for child in &left.children {
        // The process may have ended already, and has nothing to lose.
        let _ = kill_process(*child, Signal::KILL);
        let _ = waitpid(Some(*child), WaitOptions::empty());
    }
    for path in &left.paths {
        remove(path);
    }
    // The lock is held until the exit, so that nothing new is registered.
    std::process::exit(code)
}

fn remove(path: &Path) {
    // A path that is gone needs no removal, and a failed removal cannot be helped.
    let _ = match path.symlink_metadata() {
        Ok(about) if about.is_dir() => std::fs::remove_dir_all(path),
        _ => std::fs::remove_file(path),
    };
}

/// A file or directory that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct CleanupPath(PathBuf);

impl CleanupPath {
    /// Takes ownership of a path.
    pub(crate) fn new(path: PathBuf) -> Self {
        lock_registry().paths.push(path.clone());
        Self(path)
    }

    /// Creates a directory for temporary files.
    pub(crate) fn directory() -> LoadResult<Self> {
        let directory = TempDir::with_prefix("fieldline-bench-").map_err(|error| LoadError::Io {
            path: std::env::temp_dir(),
            error,
        })?;
        Ok(Self::new(directory.keep()))
    }

    /// The path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for CleanupPath {
    fn drop(&mut self) {
        let mut left = lock_registry();
        left.paths.retain(|path| *path != self.0);
        remove(&self.0);
    }
}

/// Registers a child process.
pub(crate) fn register_child(pid: Pid) {
    lock_registry().children.push(pid);
}

/// Checks whether a registered process has ended, and if so removes it from the registry: its process id must not be
/// signalled any more.
pub(crate) fn try_wait_child(
    pid: Pid,
    child: &mut std::process::Child,
) -> std::io::Result<Option<ExitStatus>> {
    let mut left = lock_registry();
    let ended = child.try_wait();
    if !matches!(ended, Ok(None)) {
        left.children.retain(|other| *other != pid);
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn litter_is_removed_with_all_that_is_in_it() {
        let litter = CleanupPath::directory().unwrap();
        let path = litter.path().to_owned();
        std::fs::create_dir(path.join("data")).unwrap();
        std::fs::write(path.join("data/file"), "x").unwrap();
        let file = CleanupPath::new(path.join("file"));
        std::fs::write(file.path(), "x").unwrap();
        drop(file);
        assert!(path.exists() && !path.join("file").exists());
        drop(litter);
        assert!(!path.exists() && !lock_registry().paths.contains(&path));
    }
}
