//! Listening sockets for many connections.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use tokio::net::{TcpListener, TcpSocket, UnixListener};

/// Length of the accept queue, as far as the operating system allows. After an outage all clients connect at once, and
/// one that finds the queue full retries only after a second.
const BACKLOG: u32 = 4_096;

/// Listens on an address, in the context of a runtime.
///
/// # Errors
/// The address is in use, not of this machine, or not permitted.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted server must not wait until the system has forgotten the old process's connections.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Listens on a Unix socket for this user and its group, in the context of a runtime. A file that a program has left behind is
/// replaced.
///
/// # Errors
/// Another program listens there, something else has the name, or the file cannot be made.
pub fn listen_locally(path: &Path) -> io::Result<UnixListener> {
    let is_left_behind = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_left_behind {
        // Whoever listens would answer.
        match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(error) => return Err(error),
        }
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}
