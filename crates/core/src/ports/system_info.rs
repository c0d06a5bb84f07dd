//! The machine that the program runs on.

use async_trait::async_trait;

/// What the machine has, and how much of it is in use; `None` where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemResources {
    /// Processors that the program may use.
    pub cpu_count: Option<u64>,
    /// How busy all processors of the machine are, percent.
    pub cpu_usage: Option<u64>,
    /// Memory that the program may use, bytes: that of the machine, or of its container.
    pub total_memory: Option<u64>,
    /// How much of that memory is not available any longer, percent.
    pub memory_usage: Option<u64>,
    /// Size of the file system that data is kept on, bytes.
    pub total_disk: Option<u64>,
    /// How much of that file system is in use, percent.
    pub disk_usage: Option<u64>,
}

/// Says how the machine is.
#[async_trait]
pub trait SystemInfoSource: Send + Sync {
    /// How it is now.
    async fn figures(&self) -> SystemResources;
}

/// Nothing is known of it.
pub struct NoSystemInfo;

#[async_trait]
impl SystemInfoSource for NoSystemInfo {
    async fn figures(&self) -> SystemResources {
        SystemResources::default()
    }
}
