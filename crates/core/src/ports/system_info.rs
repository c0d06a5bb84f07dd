//! The machine that the program runs on.

use async_trait::async_trait;

/// The resources of the machine and their use; `None` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemResources {
    /// Processors that the program may use.
    pub cpu_count: Option<u64>,
    /// Load of all processors of the machine, percent.
    pub cpu_usage: Option<u64>,
    /// Memory that the program may use, bytes: that of the machine, or of its container.
    pub total_memory: Option<u64>,
    /// Share of that memory that is not available, percent.
    pub memory_usage: Option<u64>,
    /// Size of the file system of the data, bytes.
    pub total_disk: Option<u64>,
    /// Share of that file system in use, percent.
    pub disk_usage: Option<u64>,
}

/// Measures the resources of the machine.
#[async_trait]
pub trait SystemInfoSource: Send + Sync {
    /// The present figures.
    async fn figures(&self) -> SystemResources;
}

/// For programs that know nothing of the machine.
pub struct NoSystemInfo;

#[async_trait]
impl SystemInfoSource for NoSystemInfo {
    async fn figures(&self) -> SystemResources {
        SystemResources::default()
    }
}
