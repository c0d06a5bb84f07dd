//! What is throttled or behind at present, for whom, since when and why.
//!
//! Parts of the program count what they refuse and know how far they are behind; each is an [`OverloadSource`]. The
//! [`OverloadMonitor`] asks all of them once a second and keeps *episodes*: an episode lasts as long as a source reports
//! the same trouble, with short pauses, and is remembered for an hour after its end. Counting costs the hot path one
//! locked map where something is refused, and nothing elsewhere.

mod journal;
mod refusals;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use fieldline_model::TenantId;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use crate::clock::SharedClock;

pub use journal::JournalOverload;
pub use refusals::{RefusalCounts, RefusedLimit};

/// How often the sources are asked.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// An episode ends after so many looks without trouble.
const QUIET_LOOKS: u64 = 10;
/// An episode that has ended is remembered for so many looks.
const REMEMBERED_LOOKS: u64 = 3_600;
/// Most episodes that are kept; beyond that those go first that ended first.
const MAX_EPISODES: usize = 4_096;
/// Most episodes of one tenant.
const MAX_OF_TENANT: usize = 64;

/// What sort of trouble it is. The names are those of the REST API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OverloadKind {
    /// Messages wait in a queue longer than a look.
    QueueLag,
    /// The log slows devices down: its disk or those who read it are too slow.
    Journal,
    /// A disk is full, or a store has failed.
    Disk,
    /// Messages or requests beyond a rate limit were refused.
    RateLimit,
    /// Something beyond a largest number was refused, such as sockets.
    CountLimit,
    /// A feature's use of the month is used up, or nearly so.
    ApiLimit,
    /// A tenant's messages are processed apart, since others would wait for them.
    SlowLane,
    /// Scripts went beyond their limits, or were refused.
    Scripts,
    /// Memory of a pool was refused.
    Memory,
}

impl OverloadKind {
    /// The unit of its count or level.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::QueueLag => "records",
            Self::Journal => "milliseconds",
            Self::Disk => "",
            Self::SlowLane => "messages",
            Self::Scripts => "calls",
            Self::ApiLimit => "used",
            Self::RateLimit | Self::CountLimit | Self::Memory => "refusals",
        }
    }

    /// The name in the REST API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueLag => "QUEUE_LAG",
            Self::Journal => "JOURNAL",
            Self::Disk => "DISK",
            Self::RateLimit => "RATE_LIMIT",
            Self::CountLimit => "COUNT_LIMIT",
            Self::ApiLimit => "API_LIMIT",
            Self::SlowLane => "SLOW_LANE",
            Self::Scripts => "SCRIPTS",
            Self::Memory => "MEMORY",
        }
    }
}

/// Who may know of an overload besides the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverloadScope {
    /// One tenant.
    Tenant(TenantId),
    /// All tenants, because all feel it.
    All,
}

/// The measure of an overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverloadMeasure {
    /// How often it has happened since the start of the program. There is trouble when it has grown since the last look.
    Total(u64),
    /// The present amount, such as of waiting messages. There is trouble as long as the source reports it.
    Level(u64),
}

/// Trouble as a source reports it at one look.
#[derive(Debug, Clone)]
pub struct OverloadSample {
    /// What sort of trouble.
    pub kind: OverloadKind,
    /// Whom it concerns.
    pub scope: OverloadScope,
    /// What is concerned: the name of a queue, a limit, a pool. With kind and scope it names the episode.
    pub subject: Cow<'static, str>,
    /// Its measure.
    pub measure: OverloadMeasure,
    /// The limit that was reached, if it can be written.
    pub limit: Option<String>,
    /// What has happened and why, a sentence for people.
    pub reason: Cow<'static, str>,
}

/// A part of the program that knows when it refuses something or is behind.
pub trait OverloadSource: Send + Sync {
    /// Adds what is wrong, and the totals of what ever was.
    fn collect(&self, into: &mut Vec<OverloadSample>);
}

/// An overload from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverloadEpisode {
    /// What sort of trouble.
    pub kind: OverloadKind,
    /// Whom it concerns.
    pub scope: OverloadScope,
    /// What is concerned.
    pub subject: Cow<'static, str>,
    /// When it began, milliseconds.
    pub since_ms: i64,
    /// When it was last seen, milliseconds.
    pub last_ms: i64,
    /// Whether it goes on.
    pub is_active: bool,
    /// How often something was refused in it; 0 if its measure is a level.
    pub count: u64,
    /// The amount when it was last seen, if its measure is a level.
    pub level: Option<u64>,
    /// The limit that was reached.
    pub limit: Option<String>,
    /// What has happened and why.
    pub reason: Cow<'static, str>,
}

type EpisodeKey = (OverloadKind, OverloadScope, Cow<'static, str>);

struct KeptEpisode {
    episode: OverloadEpisode,
    last_look: u64,
}

#[derive(Default)]
struct MonitorState {
    look: u64,
    episodes: FxHashMap<EpisodeKey, KeptEpisode>,
    /// The totals of the last look.
    totals: FxHashMap<EpisodeKey, u64>,
}

/// Keeps the episodes of all sources.
pub struct OverloadMonitor {
    clock: SharedClock,
    started_ms: i64,
    sources: RwLock<Vec<Arc<dyn OverloadSource>>>,
    state: Mutex<MonitorState>,
}

impl OverloadMonitor {
    /// Creates a monitor without sources.
    pub fn new(clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            started_ms: clock.now_ms(),
            clock,
            sources: RwLock::default(),
            state: Mutex::default(),
        })
    }

    /// When the monitor began to look, milliseconds.
    pub const fn started_ms(&self) -> i64 {
        self.started_ms
    }

    /// Adds a source, which is asked from now on.
    pub fn add(&self, source: Arc<dyn OverloadSource>) {
        self.sources.write().push(source);
    }

    /// Asks all sources from time to time until the program stops.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut tick = tokio::time::interval(LOOK_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !*stop.borrow() {
            tokio::select! {
                _ = tick.tick() => self.look(),
                changed = stop.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Asks all sources once.
    pub fn look(&self) {
        let mut samples = Vec::new();
        for source in self.sources.read().iter() {
            source.collect(&mut samples);
        }
        let now_ms = self.clock.now_ms();
        self.state.lock().take(samples, now_ms);
    }

    /// Returns the episodes that a tenant may know of, or all of them: those that go on first, then the latest.
    pub fn episodes(&self, tenant: Option<TenantId>) -> Vec<OverloadEpisode> {
        let state = self.state.lock();
        let is_visible = |scope: OverloadScope| match (tenant, scope) {
            (None, _) | (_, OverloadScope::All) => true,
            (Some(tenant), OverloadScope::Tenant(of)) => tenant == of,
        };
        let mut episodes: Vec<OverloadEpisode> = state
            .episodes
            .values()
            .filter(|kept| is_visible(kept.episode.scope))
            .map(|kept| OverloadEpisode {
                is_active: state.look.saturating_sub(kept.last_look) < QUIET_LOOKS,
                ..kept.episode.clone()
            })
            .collect();
        drop(state);
        episodes.sort_by(|a, b| {
            let order = |one: &OverloadEpisode| (!one.is_active, std::cmp::Reverse(one.last_ms), one.kind);
            order(a).cmp(&order(b)).then_with(|| a.subject.cmp(&b.subject))
        });
        episodes
    }
}

impl MonitorState {
    fn take(&mut self, samples: Vec<OverloadSample>, now_ms: i64) {
        self.look += 1;
        let mut totals = FxHashMap::default();
        for sample in samples {
            let key = (sample.kind, sample.scope, sample.subject.clone());
            let grown = match sample.measure {
                OverloadMeasure::Level(_) => 0,
                OverloadMeasure::Total(total) => {
                    let before = self.totals.get(&key).copied().unwrap_or(0);
                    totals.insert(key.clone(), total);
                    if total <= before {
                        continue;
                    }
                    total - before
                }
            };
            self.see(key, sample, grown, now_ms);
        }
        self.totals = totals;
        let look = self.look;
        self.episodes
            .retain(|_, kept| look.saturating_sub(kept.last_look) < REMEMBERED_LOOKS);
    }

    fn see(&mut self, key: EpisodeKey, sample: OverloadSample, grown: u64, now_ms: i64) {
        let look = self.look;
        let known = self.episodes.get_mut(&key);
        // What comes back after a pause begins anew.
        if let Some(kept) = known.filter(|kept| look.saturating_sub(kept.last_look) <= QUIET_LOOKS) {
            let episode = &mut kept.episode;
            episode.last_ms = now_ms;
            episode.count = episode.count.saturating_add(grown);
            (episode.level, episode.limit, episode.reason) =
                (level_of(sample.measure), sample.limit, sample.reason);
            kept.last_look = look;
            return;
        }
        if !self.has_room(&key) {
            return;
        }
        let episode = OverloadEpisode {
            kind: sample.kind,
            scope: sample.scope,
            subject: sample.subject,
            since_ms: now_ms,
            last_ms: now_ms,
            is_active: true,
            count: grown,
            level: level_of(sample.measure),
            limit: sample.limit,
            reason: sample.reason,
        };
        self.episodes.insert(
            key,
            KeptEpisode {
                episode,
                last_look: look,
            },
        );
    }

    /// Makes room for a new episode, at the cost of the one that ended first.
    fn has_room(&mut self, key: &EpisodeKey) -> bool {
        if self.episodes.contains_key(key) {
            return true;
        }
        let of_scope = self.episodes.keys().filter(|(_, scope, _)| *scope == key.1);
        let is_full = |count: usize, all: usize| count >= MAX_OF_TENANT || all >= MAX_EPISODES;
        if !is_full(of_scope.count(), self.episodes.len()) {
            return true;
        }
        let all_full = self.episodes.len() >= MAX_EPISODES;
        let quiet = self
            .episodes
            .iter()
            .filter(|((_, scope, _), kept)| {
                (all_full || *scope == key.1) && self.look.saturating_sub(kept.last_look) >= QUIET_LOOKS
            })
            .min_by_key(|(_, kept)| kept.last_look)
            .map(|(key, _)| key.clone());
        quiet.is_some_and(|oldest| self.episodes.remove(&oldest).is_some())
    }
}

const fn level_of(measure: OverloadMeasure) -> Option<u64> {
    match measure {
        OverloadMeasure::Level(level) => Some(level),
        OverloadMeasure::Total(_) => None,
    }
}
