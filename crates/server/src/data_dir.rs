//! The data directory: the paths in it, and the lock that lets only one process use it.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fieldline_api::DevicePorts;
use fieldline_core::directory::create_durably;
use serde::Serialize;

/// A data directory that this process has locked.
pub(crate) struct DataDir {
    root: PathBuf,
    _lock: File,
}

/// Addresses the servers have bound, for a caller that started the program with port 0.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BoundAddresses {
    pub(crate) http: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probes: Option<SocketAddr>,
    pub(crate) mqtt: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mqtts: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) coap: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) coaps: Option<SocketAddr>,
    #[serde(flatten)]
    pub(crate) broker: BrokerAddresses,
}

/// Addresses that the publish/subscribe broker has bound.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct BrokerAddresses {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broker: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broker_tls: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broker_websocket: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broker_websocket_tls: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broker_unix: Option<PathBuf>,
}

impl BrokerAddresses {
    /// The addresses with the scheme that clients know them by.
    pub(crate) fn by_scheme(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        [
            ("mqtt", self.broker),
            ("mqtts", self.broker_tls),
            ("ws", self.broker_websocket),
            ("wss", self.broker_websocket_tls),
        ]
        .into_iter()
        .filter_map(|(scheme, address)| address.map(|address| (scheme, address)))
    }
}

impl BoundAddresses {
    /// Returns the ports of the servers for devices.
    pub(crate) fn device_ports(&self) -> DevicePorts {
        let port = |address: SocketAddr| address.port();
        DevicePorts {
            http: self.http.port(),
            mqtt: self.mqtt.port(),
            mqtts: self.mqtts.map(port),
            coap: self.coap.map(port),
            coaps: self.coaps.map(port),
        }
    }
}

impl DataDir {
    /// Creates the directory if needed and locks it until the process ends, however it ends.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        // Other users of the machine must not read the data of devices and people.
        create_durably(root, 0o700)?;
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

    /// Whether the directory holds the demo's accounts with well-known passwords. If `asked_for`, a new directory is
    /// marked to get them, and one that is in use without them is refused.
    pub(crate) fn is_demo(&self, asked_for: bool) -> io::Result<bool> {
        let mark = self.root.join("demo");
        if mark.try_exists()? {
            return Ok(true);
        }
        if !asked_for {
            return Ok(false);
        }
        for used in [self.entities(), self.journal(), self.series()] {
            if used.try_exists()? {
                return Err(io::Error::other(
                    "it is in use without the demo, and `--demo` would add accounts with well-known passwords to it; name \
                     another directory for the demo",
                ));
            }
        }
        // Synced to disk before the first of the accounts is stored.
        let mut file = File::create(&mark)?;
        file.write_all(b"This directory has accounts with well-known passwords.\n")?;
        file.sync_all()?;
        File::open(&self.root)?.sync_all()?;
        Ok(true)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    pub(crate) fn series(&self) -> PathBuf {
        self.root.join("series")
    }

    /// The journal of the publish/subscribe broker.
    pub(crate) fn broker_journal(&self) -> PathBuf {
        self.root.join("broker").join("journal")
    }

    /// The sessions and messages of the publish/subscribe broker.
    pub(crate) fn broker_store(&self) -> PathBuf {
        self.root.join("broker").join("store")
    }

    pub(crate) fn entities(&self) -> PathBuf {
        self.root.join("entities.db")
    }

    pub(crate) fn token_key(&self) -> PathBuf {
        self.root.join("jwt.key")
    }

    /// Copies the key of tokens and the mark of a demo from another directory, where this one has none.
    pub(crate) fn take_key_and_mark(&self, other: &Self) -> io::Result<()> {
        for (from, to) in [
            (other.token_key(), self.token_key()),
            (other.root.join("demo"), self.root.join("demo")),
        ] {
            if to.try_exists()? || !from.try_exists()? {
                continue;
            }
            let mut options = File::options();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let draft = to.with_extension("new");
            let mut file = options.open(&draft)?;
            file.write_all(&std::fs::read(from)?)?;
            file.sync_all()?;
            std::fs::rename(draft, to)?;
        }
        File::open(&self.root)?.sync_all()
    }

    fn listening_file(&self) -> PathBuf {
        self.root.join("listening.json")
    }

    /// Removes the file with the bound addresses, because the servers no longer listen.
    pub(crate) fn remove_listening(&self) -> io::Result<()> {
        match std::fs::remove_file(self.listening_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes the file with the bound addresses; a reader sees all of it or nothing.
    pub(crate) fn write_listening(&self, listening: &BoundAddresses) -> io::Result<()> {
        let draft = self.root.join("listening.json.new");
        std::fs::write(&draft, serde_json::to_vec(listening)?)?;
        std::fs::rename(draft, self.listening_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stays_a_demo_and_one_in_use_does_not_become_one() {
        let root = tempfile::tempdir().unwrap();
        let demo = DataDir::open(&root.path().join("demo-data")).unwrap();
        assert!(!demo.is_demo(false).unwrap());
        assert!(demo.is_demo(true).unwrap());
        std::fs::write(demo.entities(), "").unwrap();
        assert!(demo.is_demo(false).unwrap() && demo.is_demo(true).unwrap());

        let used = DataDir::open(&root.path().join("data")).unwrap();
        std::fs::write(used.entities(), "").unwrap();
        assert!(used.is_demo(true).is_err());
        assert!(!used.is_demo(false).unwrap());
    }
}
