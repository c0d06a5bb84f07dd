//! Scripts of rule nodes and calculated fields: JavaScript and TBEL on QuickJS, with limits.
//!
//! A [`Script`] is checked once, when it is made, and shared by all threads. A [`ScriptHost`] belongs to one worker
//! thread and runs scripts: it compiles a script at its first call and keeps the compiled function. All scripts
//! of a language share one realm a host, which is frozen before the first script runs, so that no script can
//! change what another one sees.

mod arg;
mod engine;
mod error;
mod globals;
mod host;
mod implicit;
mod json;
mod limits;
mod output;
mod script;
mod tbel;
mod values;
mod zones;

pub use arg::{ObjectBuilder, ScriptArg};
pub use error::{ScriptError, SyntaxError};
pub use host::ScriptHost;
pub use limits::{LangLimits, MAX_BODY, ScriptClock, ScriptInterrupt, ScriptLimits};
pub use output::{ScriptOutput, TransformedMessage};
pub use script::{Script, ScriptLang};
