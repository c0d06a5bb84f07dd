//! Limits of the operating system.

use tracing::{info, warn};

/// Raises the number of files and connections the process may have open as far as it is allowed to.
#[expect(unsafe_code, reason = "the limit is only to be had through the C library")]
pub(crate) fn raise_open_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls only read and write the struct they are given, which lives on this stack frame.
    let raised = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
        }
    };
    if raised {
        info!(files = limit.rlim_cur, "open files allowed");
    } else {
        warn!("cannot raise the number of open files");
    }
}
