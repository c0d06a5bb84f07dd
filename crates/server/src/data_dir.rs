//! The data directory: where what is kept, and that only one process uses it.

use std::fs::{File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A data directory that this process has to itself.
pub(crate) struct DataDir {
    root: PathBuf,
    _lock: File,
}

/// Addresses the servers have bound, for whoever started the program with port 0.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Listening {
    pub(crate) http: SocketAddr,
    pub(crate) mqtt: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mqtts: Option<SocketAddr>,
}

impl DataDir {
    /// Creates the directory if needed and locks it until the process ends, however it ends.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        // What devices and people say is nobody else's business on the machine.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(root.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    "another process is using it",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let dir = Self {
            root: root.to_owned(),
            _lock: lock,
        };
        dir.remove_listening()?;
        Ok(dir)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    pub(crate) fn series(&self) -> PathBuf {
        self.root.join("series")
    }

    pub(crate) fn entities(&self) -> PathBuf {
        self.root.join("entities.db")
    }

    pub(crate) fn token_key(&self) -> PathBuf {
        self.root.join("jwt.key")
    }

    fn listening_file(&self) -> PathBuf {
        self.root.join("listening.json")
    }

    /// Takes back where the servers listen, because they no longer do.
    pub(crate) fn remove_listening(&self) -> io::Result<()> {
        match std::fs::remove_file(self.listening_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes down where the servers listen; whoever reads the file sees all of it or nothing.
    pub(crate) fn write_listening(&self, listening: &Listening) -> io::Result<()> {
        let draft = self.root.join("listening.json.new");
        std::fs::write(&draft, serde_json::to_vec(listening)?)?;
        std::fs::rename(draft, self.listening_file())
    }
}
