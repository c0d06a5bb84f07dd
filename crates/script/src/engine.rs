//! One QuickJS runtime with one realm: compiles scripts of a language and calls them within limits.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::Args;
use rquickjs::{Array, Context, Ctx, Function, Object, Persistent, Runtime, Value};

use crate::arg::{ArgBuildError, ScriptArg};
use crate::error::{ScriptError, SyntaxError};
use crate::globals;
use crate::json;
use crate::limits::{LangLimits, ScriptClock, ScriptInterrupt};
use crate::script::{Script, ScriptLang};
use crate::tbel;
use crate::values::ValueDialect;

/// Native stack that a script may use, bytes; well below what threads have.
const STACK: usize = 384 << 10;
/// Memory beyond that of the realm at which cycles are looked for, bytes.
const GC_THRESHOLD: usize = 512 << 10;
/// Compilations after which the memory of the realm and its functions is measured again.
const MEASURE_EVERY: u32 = 64;

type RealmIntrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);
type CheckIntrinsics = (intrinsic::Eval, intrinsic::RegExpCompiler, intrinsic::RegExp);

/// Functions of the realm that the host calls.
pub(crate) struct RealmFunctions {
    single: Persistent<Function<'static>>,
    rolling: Persistent<Function<'static>>,
    well_formed: Persistent<Function<'static>>,
    /// That of the realm, which can be interrupted; the library of TBEL has none.
    stringify: Option<Persistent<Function<'static>>>,
    pub(crate) dialect: Rc<ValueDialect>,
}

impl RealmFunctions {
    fn new<'js>(ctx: &Ctx<'js>, dialect: Rc<ValueDialect>, made: &Object<'js>) -> rquickjs::Result<Self> {
        let save = |name: &str| -> rquickjs::Result<_> {
            Ok(Persistent::save(ctx, made.get::<_, Function<'js>>(name)?))
        };
        Ok(Self {
            single: save("single")?,
            rolling: save("rolling")?,
            well_formed: save("wellFormed")?,
            stringify: save("stringify").ok(),
            dialect,
        })
    }

    pub(crate) fn single<'js>(
        &self,
        ctx: &Ctx<'js>,
        ts: Value<'js>,
        value: Value<'js>,
    ) -> rquickjs::Result<Value<'js>> {
        self.single.clone().restore(ctx)?.call((ts, value))
    }

    pub(crate) fn rolling<'js>(
        &self,
        ctx: &Ctx<'js>,
        window: (Value<'js>, Value<'js>),
        times: Array<'js>,
        values: Array<'js>,
    ) -> rquickjs::Result<Value<'js>> {
        self.rolling
            .clone()
            .restore(ctx)?
            .call((window.0, window.1, times, values))
    }

    /// A value as JSON, or no text where JSON cannot say it.
    pub(crate) fn stringify<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Value<'js>> {
        match &self.stringify {
            Some(stringify) => stringify.clone().restore(ctx)?.call((value,)),
            None => Ok(match ctx.json_stringify(value)? {
                Some(text) => text.into_value(),
                None => Value::new_undefined(ctx.clone()),
            }),
        }
    }

    /// A text with lone surrogates replaced, which UTF-8 cannot carry.
    pub(crate) fn well_formed<'js>(
        &self,
        ctx: &Ctx<'js>,
        text: &rquickjs::String<'js>,
    ) -> rquickjs::Result<String> {
        self.well_formed
            .clone()
            .restore(ctx)?
            .call::<_, String>((text.clone(),))
    }
}

/// What the interrupt handler looks at.
struct InterruptState {
    clock: ScriptClock,
    interrupt: ScriptInterrupt,
    time: Cell<Duration>,
    deadline: Cell<Option<Instant>>,
    fired: Cell<bool>,
    ended: Cell<bool>,
}

impl InterruptState {
    fn start(&self, time: Duration) {
        self.fired.set(false);
        self.ended.set(false);
        self.time.set(time);
        self.deadline.set(Some(self.clock.now() + time));
    }

    fn check(&self) -> bool {
        if self.interrupt.is_set() {
            self.ended.set(true);
            return true;
        }
        let over = self
            .deadline
            .get()
            .is_some_and(|deadline| self.clock.now() >= deadline);
        if over {
            self.fired.set(true);
        }
        over
    }

    /// Why it has stopped the script, where it has.
    fn stop_reason(&self) -> Option<ScriptError> {
        if self.ended.get() {
            return Some(ScriptError::Ended);
        }
        let limit = self.time.get();
        self.fired.get().then_some(ScriptError::Time { limit })
    }
}

struct CachedFunction {
    function: Persistent<Function<'static>>,
    used: u64,
}

/// Fields are in the order in which they must go: functions before the context, the runtime last.
pub(crate) struct ScriptEngine {
    cache: HashMap<u64, CachedFunction>,
    hooks: RealmFunctions,
    context: Context,
    runtime: Runtime,
    watch: Rc<InterruptState>,
    limits: LangLimits,
    capacity: usize,
    calls: u64,
    compiled: u32,
    /// Memory of the realm and the compiled functions, bytes.
    base: usize,
}

impl ScriptEngine {
    pub(crate) fn new(
        lang: ScriptLang,
        limits: LangLimits,
        capacity: usize,
        watched: (ScriptClock, ScriptInterrupt),
    ) -> Result<Self, ScriptError> {
        Self::make(lang, limits, capacity, watched)
            .map_err(|error| ScriptError::runtime(format!("the script engine cannot start: {error}")))
    }

    fn make(
        lang: ScriptLang,
        limits: LangLimits,
        capacity: usize,
        (clock, interrupt): (ScriptClock, ScriptInterrupt),
    ) -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK);
        let context = Context::custom::<RealmIntrinsics>(&runtime)?;
        let hooks = context.with(|ctx| {
            let dialect = Rc::new(ValueDialect::new(lang));
            let made = globals::prepare(&ctx, &dialect)?;
            RealmFunctions::new(&ctx, dialect, &made)
        })?;
        let watch = Rc::new(InterruptState {
            clock,
            interrupt,
            time: Cell::new(limits.time),
            deadline: Cell::new(None),
            fired: Cell::new(false),
            ended: Cell::new(false),
        });
        let seen = Rc::clone(&watch);
        runtime.set_interrupt_handler(Some(Box::new(move || seen.check())));
        let mut engine = Self {
            cache: HashMap::new(),
            hooks,
            context,
            runtime,
            watch,
            limits,
            capacity: capacity.max(1),
            calls: 0,
            compiled: 0,
            base: 0,
        };
        engine.measure();
        Ok(engine)
    }

    fn measure(&mut self) {
        self.base = usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0);
        self.apply_memory_limit();
    }

    fn apply_memory_limit(&self) {
        self.runtime
            .set_memory_limit(self.base.saturating_add(self.limits.memory));
    }

    pub(crate) fn remove_cached(&mut self, id: u64) {
        self.cache.remove(&id);
    }

    /// Bytes the runtime holds now.
    pub(crate) fn memory(&self) -> usize {
        usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0)
    }

    fn function(&mut self, script: &Script) -> Result<Persistent<Function<'static>>, ScriptError> {
        self.calls += 1;
        if let Some(compiled) = self.cache.get_mut(&script.id()) {
            compiled.used = self.calls;
            return Ok(compiled.function.clone());
        }
        if self.cache.len() >= self.capacity {
            self.evict();
        }
        let made = self.context.with(|ctx| {
            let function = ctx.eval_with_options::<Function<'_>, _>(script.source(), options());
            match function {
                Ok(function) => Ok(Persistent::save(&ctx, function)),
                Err(error) => Err(self.failure(&ctx, &error)),
            }
        })?;
        self.cache.insert(
            script.id(),
            CachedFunction {
                function: made.clone(),
                used: self.calls,
            },
        );
        self.compiled += 1;
        if self.compiled.is_multiple_of(MEASURE_EVERY) {
            self.measure();
        } else {
            self.base += 4096 + script.source().len() * 8;
            self.apply_memory_limit();
        }
        Ok(made)
    }

    /// Drops the tenth that was not used for longest.
    fn evict(&mut self) {
        let mut used: Vec<u64> = self.cache.values().map(|compiled| compiled.used).collect();
        let tenth = used.len() / 10;
        let (_, &mut limit, _) = used.select_nth_unstable(tenth);
        self.cache.retain(|_, compiled| compiled.used > limit);
    }

    /// Calls a script, and makes of its result what `finish` does, all within the limits.
    pub(crate) fn call<R>(
        &mut self,
        script: &Script,
        args: &[ScriptArg<'_>],
        time: Duration,
        finish: impl for<'js> FnOnce(&Ctx<'js>, &RealmFunctions, Value<'js>) -> Result<R, CallFailure>,
    ) -> Result<R, ScriptError> {
        self.watch.start(time);
        // A call that is over before it begins needs no look at the clock by the script.
        if self.watch.check()
            && let Some(stopped) = self.watch.stop_reason()
        {
            self.watch.deadline.set(None);
            return Err(stopped);
        }
        // Cycles that the call before left must be collected before they cost this one its memory.
        self.runtime
            .set_gc_threshold(self.base + self.base / 2 + GC_THRESHOLD);
        let result = self.function(script).and_then(|function| {
            self.context.with(|ctx| {
                let done =
                    run(&ctx, &self.hooks, function, args).and_then(|value| finish(&ctx, &self.hooks, value));
                done.map_err(|stop| match stop {
                    CallFailure::Engine(error) => self.failure(&ctx, &error),
                    CallFailure::Script(error) => error,
                })
            })
        });
        let result = self.drain().and(result);
        self.watch.deadline.set(None);
        result
    }

    /// Runs what the script left in the queue of promises, so that nothing of it outlives the call.
    fn drain(&self) -> Result<(), ScriptError> {
        while self.runtime.is_job_pending() {
            if self.watch.check()
                && let Some(stopped) = self.watch.stop_reason()
            {
                return Err(stopped);
            }
            // What a job throws reaches nobody; only running out of time or memory matters.
            if self.runtime.execute_pending_job().is_err() {
                let thrown = self.context.with(|ctx| take_exception(&ctx, &self.hooks));
                if matches!(thrown, ScriptException::OutOfMemory) && self.watch.stop_reason().is_none() {
                    return Err(ScriptError::Memory {
                        limit: self.limits.memory,
                    });
                }
            }
        }
        self.watch.stop_reason().map_or(Ok(()), Err)
    }

    fn failure(&self, ctx: &Ctx<'_>, error: &rquickjs::Error) -> ScriptError {
        let thrown = matches!(error, rquickjs::Error::Exception).then(|| take_exception(ctx, &self.hooks));
        if let Some(stopped) = self.watch.stop_reason() {
            return stopped;
        }
        match (thrown, error) {
            (Some(ScriptException::OutOfMemory), _) | (None, rquickjs::Error::Allocation) => {
                ScriptError::Memory {
                    limit: self.limits.memory,
                }
            }
            (Some(ScriptException::Other { message, line }), _) => ScriptError::Runtime { message, line },
            (None, error) => ScriptError::runtime(error.to_string()),
        }
    }
}

/// Why a call stopped.
pub(crate) enum CallFailure {
    /// The engine said so; what was thrown waits in the context.
    Engine(rquickjs::Error),
    /// Known already.
    Script(ScriptError),
}

impl From<rquickjs::Error> for CallFailure {
    fn from(error: rquickjs::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<ScriptError> for CallFailure {
    fn from(error: ScriptError) -> Self {
        Self::Script(error)
    }
}

fn run<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    function: Persistent<Function<'static>>,
    args: &[ScriptArg<'_>],
) -> Result<Value<'js>, CallFailure> {
    hooks.dialect.exact.clear();
    let function = function.restore(ctx)?;
    let mut call = Args::new(ctx.clone(), args.len());
    for (at, arg) in args.iter().enumerate() {
        let value = arg.build(ctx, hooks).map_err(|error| match error {
            ArgBuildError::Engine(error) => CallFailure::Engine(error),
            ArgBuildError::Json(message) => {
                ScriptError::runtime(format!("argument {} is not valid JSON: {message}", at + 1)).into()
            }
        })?;
        call.push_arg(value)?;
    }
    Ok(function.call_arg(call)?)
}

fn options() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(globals::SCRIPT_FILE.to_owned());
    options
}

enum ScriptException {
    OutOfMemory,
    Other { message: String, line: Option<u32> },
}

/// Takes what was thrown out of the context.
fn take_exception(ctx: &Ctx<'_>, hooks: &RealmFunctions) -> ScriptException {
    let value = ctx.catch();
    if let Some(error) = value.as_object().filter(|object| object.is_error()) {
        let name = error.get::<_, String>("name").unwrap_or_default();
        let message = error.get::<_, String>("message").unwrap_or_default();
        // A rope of texts takes no memory until it is too long.
        if name == "InternalError" && matches!(message.as_str(), "out of memory" | "string too long") {
            return ScriptException::OutOfMemory;
        }
        let stack = error.get::<_, String>("stack").unwrap_or_default();
        let message = match name.as_str() {
            "Error" | "" => message,
            _ if hooks.dialect.lang == ScriptLang::Tbel => globals::explain_message(&message),
            _ => format!("{name}: {message}"),
        };
        return ScriptException::Other {
            message,
            line: place(&stack).map(|(line, _)| line),
        };
    }
    if value.is_null() {
        // Nothing at all waits when the engine could not even make an error.
        return ScriptException::OutOfMemory;
    }
    let message =
        json::display(ctx, hooks, &value, 1000).unwrap_or_else(|_| "an object was thrown".to_owned());
    ScriptException::Other { message, line: None }
}

/// Line and column of the body, from the innermost frame that is the script's.
fn place(stack: &str) -> Option<(u32, u32)> {
    let at = stack.find(globals::SCRIPT_FILE)?;
    let mut numbers = stack[at + globals::SCRIPT_FILE.len()..]
        .strip_prefix(':')?
        .split(|c: char| !c.is_ascii_digit());
    let line: u32 = numbers.next()?.parse().ok()?;
    let column = numbers.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    Some((line.saturating_sub(1).max(1), column))
}

/// The expression that makes the function of a body; its lines start at the second line.
pub(crate) fn source(lang: ScriptLang, params: &[&str], body: &str) -> Result<String, SyntaxError> {
    match lang {
        ScriptLang::JavaScript => Ok(globals::javascript(params, body)),
        ScriptLang::Tbel => tbel::translate(params, body),
    }
}

/// Compiles an expression in a realm of its own, to see whether it is a program.
pub(crate) fn check(lang: ScriptLang, source: &str) -> Result<(), SyntaxError> {
    let fail = |error: &dyn std::fmt::Display| SyntaxError {
        line: 1,
        column: 1,
        message: format!("the script cannot be checked: {error}"),
    };
    let runtime = Runtime::new().map_err(|error| fail(&error))?;
    runtime.set_max_stack_size(STACK);
    runtime.set_memory_limit(32 << 20);
    let deadline = Instant::now() + Duration::from_secs(2);
    runtime.set_interrupt_handler(Some(Box::new(move || Instant::now() >= deadline)));
    let context = Context::custom::<CheckIntrinsics>(&runtime).map_err(|error| fail(&error))?;
    context.with(|ctx| {
        if lang == ScriptLang::Tbel {
            ctx.eval::<(), _>(globals::CHECK_TBEL)
                .map_err(|error| fail(&error))?;
        }
        let Err(error) = ctx.eval_with_options::<Function<'_>, _>(source, options()) else {
            return Ok(());
        };
        if !matches!(error, rquickjs::Error::Exception) {
            return Err(fail(&error));
        }
        let value = ctx.catch();
        let Some(error) = value.as_object() else {
            return Err(fail(&"it cannot be compiled"));
        };
        let message = error.get::<_, String>("message").unwrap_or_default();
        let stack = error.get::<_, String>("stack").unwrap_or_default();
        let (line, column) = place(&stack).unwrap_or((1, 1));
        let message = match lang {
            ScriptLang::JavaScript => message,
            ScriptLang::Tbel => globals::explain_message(&message),
        };
        Err(SyntaxError {
            line,
            column,
            message,
        })
    })
}
