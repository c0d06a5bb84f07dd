//! Information about processes and the machine, read from Linux's `/proc`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::report::MachineSpec;

pub use cpu::CpuTime;

mod cpu;

/// State of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The memory of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// Resident memory in bytes, file pages included.
    pub rss_bytes: u64,
    /// Resident memory that no file backs, in bytes.
    pub anon_bytes: u64,
}

impl ProcessSample {
    /// Samples a process of this machine; `None` if it does not exist.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::read(&Path::new("/proc").join(pid.to_string()))
    }

    /// Samples this process.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::read(Path::new("/proc/self"))
    }

    fn read(directory: &Path) -> Option<Self> {
        // A process that has ended but was not reaped yet has no memory left.
        let status = read(&directory.join("status"))?;
        Some(Self {
            rss_bytes: parse_kib(&status, "VmRSS:").unwrap_or(0),
            anon_bytes: parse_kib(&status, "RssAnon:").unwrap_or(0),
        })
    }
}

/// Returns the process that listens on a TCP port of this machine: the first one if several share the port, `None` if
/// there is none or it belongs to another user.
#[must_use]
pub fn pid_listening_on(port: u16) -> Option<u32> {
    let mut sockets = HashSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for inode in listening_inodes(&read(Path::new(table)).unwrap_or_default(), port) {
            sockets.insert(format!("socket:[{inode}]"));
        }
    }
    if sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids: Vec<u32> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids.into_iter().find(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd"));
        files.into_iter().flatten().flatten().any(|file| {
            let target = fs::read_link(file.path());
            target.is_ok_and(|target| target.to_str().is_some_and(|name| sockets.contains(name)))
        })
    })
}

/// Describes the machine that this process runs on.
#[must_use]
pub fn machine() -> MachineSpec {
    let text = |path: &str| read(Path::new(path)).unwrap_or_default();
    let unknown = || "unknown".to_owned();
    let (kernel, release) = (
        text("/proc/sys/kernel/ostype"),
        text("/proc/sys/kernel/osrelease"),
    );
    let system = format!("{} {}", kernel.trim(), release.trim());
    MachineSpec {
        cores: thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: parse_kib(&text("/proc/meminfo"), "MemTotal:").unwrap_or(0),
        processor: parse_processor(&text("/proc/cpuinfo")).unwrap_or_else(unknown),
        system: match system.trim() {
            "" => unknown(),
            system => system.to_owned(),
        },
    }
}

/// Raises the number of files, and so of connections, that this process may open to the allowed maximum, and returns
/// it.
#[must_use]
pub fn raise_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    // An unlimited maximum is more than the kernel grants here.
    let granted = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    granted.unwrap_or(u64::MAX)
}

fn read(path: &Path) -> Option<String> {
    // Program names need not be valid Unicode.
    fs::read(path)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A size in bytes from a table of `Name:   1234 kB` lines.
fn parse_kib(table: &str, name: &str) -> Option<u64> {
    let value = table.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the name of the processor; ARM has only a part number.
fn parse_processor(cpuinfo: &str) -> Option<String> {
    let value = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    };
    value("model name")
        .or_else(|| value("Model"))
        .or_else(|| value("CPU part").map(|part| format!("ARM part {part}")))
}

/// Returns the inodes of the sockets that listen on a port, from `/proc/net/tcp` or `/proc/net/tcp6`.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let rows = table.lines().skip(1).filter_map(|row| {
        let mut fields = row.split_ascii_whitespace().skip(1);
        let (_, local_port) = fields.next()?.rsplit_once(':')?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        (state == LISTEN && u16::from_str_radix(local_port, 16) == Ok(port)).then_some(inode)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process;

    use super::*;

    #[test]
    fn the_listening_socket_of_a_port_is_found_in_either_table() {
        let v4 = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0\n\
            \x20  1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0 20 4\n\
            \x20  2: 00000000:075B 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4713 1 0 100 0\n";
        let v6 = "  sl  local_address                         remote_address                        st\n\
            \x20  0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A \
            00000000:00000000 00:00000000 00000000     0        0 99 1 0 100 0 0 10 0\n";
        assert_eq!(listening_inodes(v4, 8080), [4711]);
        assert_eq!(listening_inodes(v4, 1883), [4713]);
        assert_eq!(listening_inodes(v4, 54321), [0; 0]);
        assert_eq!(listening_inodes(v6, 8080), [99]);
        assert_eq!(listening_inodes("header\ngarbage\n 1: x", 8080), [0; 0]);
    }

    #[test]
    fn sizes_come_in_kibibytes() {
        let status = "Name:\tx\nVmRSS:\t    1536 kB\nRssAnon:\t 512 kB\n";
        assert_eq!(parse_kib(status, "VmRSS:"), Some(1536 * 1024));
        assert_eq!(parse_kib(status, "RssAnon:"), Some(512 * 1024));
        assert_eq!(parse_kib(status, "VmSwap:"), None);
    }

    #[test]
    fn a_processor_has_a_name_or_a_part_number() {
        let x86 = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n";
        assert_eq!(parse_processor(x86).as_deref(), Some("Some CPU @ 3 GHz"));
        let arm = "processor\t: 0\nCPU part\t: 0xd0c\n";
        assert_eq!(parse_processor(arm).as_deref(), Some("ARM part 0xd0c"));
        assert_eq!(parse_processor("model name\t:\n"), None);
    }

    #[test]
    fn this_process_is_found_by_the_port_it_listens_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(pid_listening_on(port), Some(process::id()));
        assert_eq!(pid_listening_on(0), None);
    }

    #[test]
    fn this_process_uses_memory_and_the_machine_is_known() {
        let own = ProcessSample::own().unwrap();
        assert!(own.rss_bytes >= own.anon_bytes && own.anon_bytes > 0, "{own:?}");
        assert!(ProcessSample::of(process::id()).is_some());
        assert_eq!(ProcessSample::of(u32::MAX), None);
        let machine = machine();
        assert!(
            machine.cores > 0 && machine.memory_bytes > own.rss_bytes,
            "{machine:?}"
        );
        assert!(machine.system.starts_with("Linux "), "{machine:?}");
    }

    #[test]
    fn the_file_limit_ends_at_what_is_allowed() {
        let limit = raise_file_limit();
        let Rlimit { current, .. } = getrlimit(Resource::Nofile);
        assert_eq!(limit, current.unwrap_or(u64::MAX));
        assert_eq!(limit, raise_file_limit());
    }
}
