//! What a call may use.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::script::ScriptLang;

/// Longest script body, characters.
pub const MAX_BODY: usize = 50_000;

/// Limits that differ by language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LangLimits {
    /// Longest run of one call.
    pub time: Duration,
    /// Memory that one call may take, bytes.
    pub memory: usize,
}

/// Limits of the calls of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptLimits {
    /// Time and memory of JavaScript.
    pub javascript: LangLimits,
    /// Time and memory of TBEL.
    pub tbel: LangLimits,
    /// Longest arguments of a call together, characters.
    pub max_args: usize,
    /// Longest result of a call, characters of JSON.
    pub max_result: usize,
    /// Errors of time, memory or size until a script is blocked.
    pub max_errors: u32,
    /// How long a script is blocked; errors that lie further apart than this do not add up.
    pub blocked_for: Duration,
    /// Compiled scripts a host keeps of each language; the least recently used goes first.
    pub cached_scripts: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            javascript: LangLimits {
                time: Duration::from_millis(8000),
                memory: 100 << 20,
            },
            tbel: LangLimits {
                time: Duration::from_millis(500),
                memory: 8 << 20,
            },
            max_args: 100_000,
            max_result: 300_000,
            max_errors: 3,
            blocked_for: Duration::from_secs(60),
            cached_scripts: 1000,
        }
    }
}

impl ScriptLimits {
    pub(crate) fn of(&self, lang: ScriptLang) -> LangLimits {
        match lang {
            ScriptLang::JavaScript => self.javascript,
            ScriptLang::Tbel => self.tbel,
        }
    }
}

/// Ends the call that a host is at, from another thread. Clones share the switch.
#[derive(Debug, Clone, Default)]
pub struct ScriptInterrupt(Arc<AtomicBool>);

impl ScriptInterrupt {
    /// Ends the call that is under way, and every one that is begun before [`Self::clear`].
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets calls be made again.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether calls are to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where a host gets the time from.
#[derive(Clone)]
pub struct ScriptClock(Arc<dyn Fn() -> Instant + Send + Sync>);

impl ScriptClock {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        (self.0)()
    }
}

impl Default for ScriptClock {
    fn default() -> Self {
        Self::new(Instant::now)
    }
}

impl fmt::Debug for ScriptClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
