//! A script that was checked, and whether it is blocked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::engine;
use crate::error::SyntaxError;
use crate::limits::{MAX_BODY, ScriptClock, ScriptLimits};

/// Language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScriptLang {
    /// ECMAScript.
    JavaScript,
    /// The expression language of ThingsBoard.
    Tbel,
}

/// A script: a function body with named parameters. Clones share everything.
#[derive(Debug, Clone)]
pub struct Script(Arc<ScriptInner>);

#[derive(Debug)]
struct ScriptInner {
    id: u64,
    lang: ScriptLang,
    params: Vec<String>,
    /// An expression that makes the function; the body's lines start at its second line.
    source: String,
    errors: Mutex<ScriptErrorCounter>,
    /// Whether there was an error that counts; spares the others the lock.
    suspect: AtomicBool,
}

#[derive(Debug, Default)]
struct ScriptErrorCounter {
    count: u32,
    /// When the errors are forgotten, and the script runs again if it is blocked.
    expire: Option<Instant>,
    blocked: bool,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Script {
    /// Translates and checks a body whose parameters are `params`.
    ///
    /// # Errors
    /// If the body is longer than [`MAX_BODY`], or is no program of the language.
    pub fn new(lang: ScriptLang, params: &[&str], body: &str) -> Result<Self, SyntaxError> {
        let whole = |message: String| SyntaxError {
            line: 1,
            column: 1,
            message,
        };
        if body.len() > MAX_BODY && body.chars().count() > MAX_BODY {
            return Err(whole(format!("the script is longer than {MAX_BODY} characters")));
        }
        if let Some(name) = params.iter().find(|name| !is_name(name)) {
            return Err(whole(format!("{name:?} is not a name that a script can use")));
        }
        let source = engine::source(lang, params, body)?;
        engine::check(lang, &source)?;
        Ok(Self(Arc::new(ScriptInner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            lang,
            params: params.iter().map(|&name| name.to_owned()).collect(),
            source,
            errors: Mutex::default(),
            suspect: AtomicBool::new(false),
        })))
    }

    /// A number no other script of the process has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The language.
    pub fn lang(&self) -> ScriptLang {
        self.0.lang
    }

    /// Names of the parameters.
    pub fn params(&self) -> &[String] {
        &self.0.params
    }

    /// Until when the script is blocked, if it is at `now`.
    pub fn blocked_until(&self, now: Instant) -> Option<Instant> {
        let errors = self.0.errors.lock();
        errors.expire.filter(|&until| errors.blocked && now < until)
    }

    /// As [`Self::blocked_until`], but asks the clock only if there was an error.
    pub(crate) fn blocked_until_by(&self, clock: &ScriptClock) -> Option<Instant> {
        if !self.0.suspect.load(Ordering::Relaxed) {
            return None;
        }
        self.blocked_until(clock.now())
    }

    pub(crate) fn source(&self) -> &str {
        &self.0.source
    }

    /// Counts an error of a call. Returns whether the script is blocked because of this one.
    pub(crate) fn count_error(&self, now: Instant, limits: &ScriptLimits) -> bool {
        let mut errors = self.0.errors.lock();
        if errors.expire.is_some_and(|until| until <= now) {
            (errors.count, errors.blocked) = (0, false);
        }
        let was_blocked = errors.blocked;
        errors.count += 1;
        errors.expire = Some(now + limits.blocked_for);
        errors.blocked = errors.count >= limits.max_errors.max(1);
        self.0.suspect.store(true, Ordering::Relaxed);
        errors.blocked && !was_blocked
    }
}

fn is_name(name: &str) -> bool {
    let start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    name.chars().next().is_some_and(start) && name.chars().all(|c| start(c) || c.is_numeric())
}
