//! A call as its thread sees it, and why there may be none.

use std::panic::AssertUnwindSafe;

use fieldline_script::ScriptHost;
use parking_lot::Mutex;

use crate::node::NodeError;

/// Why a call was not made, or not made to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptRefusal {
    /// Too much waits already.
    #[error("too many scripts wait to be run: the limit `{limit}` is {count}")]
    Full {
        /// Name of the setting.
        limit: &'static str,
        /// Its value.
        count: usize,
    },
    /// The tenant tries out too much at a time.
    #[error("too many scripts are tried out at a time: {limit} of a tenant may run or wait")]
    TooManyTests {
        /// How many may.
        limit: usize,
    },
    /// A call of the tenant was abandoned, and has not returned yet.
    #[error("scripts of the tenant do not run: one of them cannot be stopped")]
    Lost,
    /// This call was abandoned.
    #[error("script did not stop at its time limit, and was abandoned")]
    Abandoned,
    /// What it belongs to is switched off, because a call of it was abandoned.
    #[error("script is switched off: it could not be stopped at its time limit")]
    SwitchedOff,
    /// Nobody wants its result any longer.
    #[error("script was ended: {0}")]
    Ended(&'static str),
    /// It has panicked.
    #[error("the script engine has failed")]
    Panicked,
    /// The program stops.
    #[error("script was not run: the program stops")]
    Stopped,
}

impl ScriptRefusal {
    /// Whether a limit of the tenant's own is the reason, rather than one of all tenants together.
    pub fn is_own_limit(&self) -> bool {
        match self {
            Self::Full { limit, .. } => !limit.starts_with("rules.script-waiting-total"),
            Self::TooManyTests { .. } | Self::Lost | Self::SwitchedOff => true,
            Self::Abandoned | Self::Ended(_) | Self::Panicked | Self::Stopped => false,
        }
    }
}

impl From<ScriptRefusal> for NodeError {
    fn from(refusal: ScriptRefusal) -> Self {
        Self::new(refusal.to_string())
    }
}

/// A call whose types do not matter.
pub(super) trait ScriptTask: Send + Sync {
    /// Makes it, and hands over what has come of it, unless it was refused meanwhile or the program stops.
    fn run(&self, host: &mut ScriptHost, is_stopped: &dyn Fn() -> bool);

    /// Says that there will be no result.
    fn refuse(&self, refusal: ScriptRefusal);
}

/// What makes a result of an input.
type ScriptFunction<I, R> = Box<dyn FnOnce(&mut ScriptHost, I) -> R + Send>;
/// Takes the result; where there is none, the input comes back if it was not used.
type ScriptResultCallback<I, R> = Box<dyn FnOnce(Result<R, (ScriptRefusal, Option<I>)>) + Send>;

/// A call from an input to a result.
pub(super) struct TypedScriptCall<I, R> {
    begun: Mutex<Option<(I, ScriptFunction<I, R>)>>,
    deliver: Mutex<Option<ScriptResultCallback<I, R>>>,
}

impl<I, R> TypedScriptCall<I, R> {
    pub(super) fn new(
        input: I,
        made: impl FnOnce(&mut ScriptHost, I) -> R + Send + 'static,
        deliver: impl FnOnce(Result<R, (ScriptRefusal, Option<I>)>) + Send + 'static,
    ) -> Self {
        Self {
            begun: Mutex::new(Some((input, Box::new(made)))),
            deliver: Mutex::new(Some(Box::new(deliver))),
        }
    }

    fn deliver(&self, result: Result<R, (ScriptRefusal, Option<I>)>) {
        // Not while it is locked: what it leads to may take its time.
        let deliver = self.deliver.lock().take();
        if let Some(deliver) = deliver {
            deliver(result);
        }
    }
}

impl<I: Send, R: Send> ScriptTask for TypedScriptCall<I, R> {
    fn run(&self, host: &mut ScriptHost, is_stopped: &dyn Fn() -> bool) {
        let Some((input, made)) = self.begun.lock().take() else {
            return;
        };
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| made(host, input)));
        if is_stopped() {
            // What it came to is no result: it was ended for no reason of its own.
            self.deliver.lock().take();
            return;
        }
        self.deliver(result.map_err(|_| (ScriptRefusal::Panicked, None)));
    }

    fn refuse(&self, refusal: ScriptRefusal) {
        let input = self.begun.lock().take().map(|(input, _)| input);
        self.deliver(Err((refusal, input)));
    }
}
