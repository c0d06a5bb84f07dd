//! The scripts of one worker thread.

use std::time::{Duration, Instant};

use rquickjs::{Ctx, Value};

use crate::arg::ScriptArg;
use crate::engine::{CallFailure, RealmFunctions, ScriptEngine};
use crate::error::ScriptError;
use crate::limits::{ScriptClock, ScriptInterrupt, ScriptLimits};
use crate::output::{self, ScriptOutput, TransformedMessage};
use crate::script::{Script, ScriptLang};

/// Runs scripts. Stays on the thread that made it.
pub struct ScriptHost {
    limits: ScriptLimits,
    clock: ScriptClock,
    javascript: Option<ScriptEngine>,
    tbel: Option<ScriptEngine>,
    has_blocked: bool,
    overruns: u32,
    interrupt: ScriptInterrupt,
    /// When all calls have to have ended, whatever time each of them has.
    deadline: Option<Instant>,
}

impl ScriptHost {
    /// A host without compiled scripts.
    pub fn new(limits: ScriptLimits) -> Self {
        Self::with_clock(limits, ScriptClock::default())
    }

    /// A host that takes the time from `clock`.
    pub fn with_clock(limits: ScriptLimits, clock: ScriptClock) -> Self {
        Self {
            limits,
            clock,
            javascript: None,
            tbel: None,
            has_blocked: false,
            overruns: 0,
            interrupt: ScriptInterrupt::default(),
            deadline: None,
        }
    }

    /// What ends its calls from another thread.
    pub fn interrupt(&self) -> ScriptInterrupt {
        self.interrupt.clone()
    }

    /// Lets the calls from here on last that long together, besides the time that each of them has; `None` for as long as
    /// they like.
    pub fn limit_total_time(&mut self, time: Option<Duration>) {
        self.deadline = time.map(|time| self.clock.now() + time);
    }

    /// How long the script does not run that a call since the last question has blocked. Of several hosts that run a script,
    /// the one whose call was one too many is told.
    pub fn take_blocked(&mut self) -> Option<Duration> {
        std::mem::take(&mut self.has_blocked).then_some(self.limits.blocked_for)
    }

    /// How many calls since the last question have broken a limit.
    pub fn take_overruns(&mut self) -> u32 {
        std::mem::take(&mut self.overruns)
    }

    /// The limits.
    pub fn limits(&self) -> &ScriptLimits {
        &self.limits
    }

    /// Calls a script and returns whatever it returned.
    ///
    /// # Errors
    /// If the script is blocked, throws, breaks a limit, or an argument is no JSON though it says so.
    pub fn call(&mut self, script: &Script, args: &[ScriptArg<'_>]) -> Result<ScriptOutput, ScriptError> {
        let max = self.limits.max_result;
        self.run(script, args, |ctx, hooks, value| {
            output::output(ctx, hooks, &value, max)
        })
    }

    /// Calls a script that has to return `{msg, metadata, msgType}` or an array of such; what it left out is
    /// `None`.
    ///
    /// # Errors
    /// As [`Self::call`], and if the result has another form.
    pub fn transform(
        &mut self,
        script: &Script,
        args: &[ScriptArg<'_>],
    ) -> Result<Vec<TransformedMessage>, ScriptError> {
        let max = self.limits.max_result;
        self.run(script, args, |ctx, hooks, value| {
            output::messages(ctx, hooks, &value, max)
        })
    }

    /// Calls a script that has to return true or false.
    ///
    /// # Errors
    /// As [`Self::call`], and if the result is something else.
    pub fn filter(&mut self, script: &Script, args: &[ScriptArg<'_>]) -> Result<bool, ScriptError> {
        self.run(script, args, |_, _, value| {
            value
                .as_bool()
                .ok_or_else(|| output::wrong_type_error("boolean", &value).into())
        })
    }

    /// Calls a script that has to return a text or an array of texts.
    ///
    /// # Errors
    /// As [`Self::call`], and if the result is something else.
    pub fn labels(&mut self, script: &Script, args: &[ScriptArg<'_>]) -> Result<Vec<String>, ScriptError> {
        let max = self.limits.max_result;
        self.run(script, args, |ctx, hooks, value| {
            output::labels(ctx, hooks, &value, max)
        })
    }

    /// Drops what is compiled of a script.
    pub fn evict_script(&mut self, id: u64) {
        for engine in [&mut self.javascript, &mut self.tbel].into_iter().flatten() {
            engine.remove_cached(id);
        }
    }

    /// Bytes that the realms and compiled scripts take.
    pub fn memory(&self) -> usize {
        [&self.javascript, &self.tbel]
            .into_iter()
            .flatten()
            .map(ScriptEngine::memory)
            .sum()
    }

    fn run<R>(
        &mut self,
        script: &Script,
        args: &[ScriptArg<'_>],
        finish: impl for<'js> FnOnce(&Ctx<'js>, &RealmFunctions, Value<'js>) -> Result<R, CallFailure>,
    ) -> Result<R, ScriptError> {
        if let Some(until) = script.blocked_until_by(&self.clock) {
            return Err(ScriptError::Blocked { until });
        }
        let result = self.limited(script, args, finish);
        if let Err(error) = &result
            && error.counts_towards_block()
        {
            self.overruns = self.overruns.saturating_add(1);
            self.has_blocked |= script.count_error(self.clock.now(), &self.limits);
        }
        if let Err(ScriptError::Memory { .. } | ScriptError::Time { .. } | ScriptError::Ended) = &result {
            // What the script left half done, or keeps in its closure, goes with the runtime.
            *self.slot(script.lang()) = None;
        }
        result
    }

    fn limited<R>(
        &mut self,
        script: &Script,
        args: &[ScriptArg<'_>],
        finish: impl for<'js> FnOnce(&Ctx<'js>, &RealmFunctions, Value<'js>) -> Result<R, CallFailure>,
    ) -> Result<R, ScriptError> {
        let limit = self.limits.max_args;
        if args.iter().map(ScriptArg::size).sum::<usize>() > limit {
            return Err(ScriptError::ArgsTooLarge { limit });
        }
        let lang = script.lang();
        let mut time = self.limits.of(lang).time;
        if let Some(deadline) = self.deadline {
            time = time.min(deadline.saturating_duration_since(self.clock.now()));
        }
        if self.slot(lang).is_none() {
            let made = ScriptEngine::new(
                lang,
                self.limits.of(lang),
                self.limits.cached_scripts,
                (self.clock.clone(), self.interrupt.clone()),
            )?;
            *self.slot(lang) = Some(made);
        }
        match self.slot(lang) {
            Some(engine) => engine.call(script, args, time, finish),
            None => Err(ScriptError::runtime("the script engine is gone")),
        }
    }

    fn slot(&mut self, lang: ScriptLang) -> &mut Option<ScriptEngine> {
        match lang {
            ScriptLang::JavaScript => &mut self.javascript,
            ScriptLang::Tbel => &mut self.tbel,
        }
    }
}
