//! Scripts of rule nodes and calculated fields: JavaScript and TBEL on QuickJS, with limits.
//!
//! A [`Script`] is checked once, when it is made, and shared by all threads. A [`Host`] belongs to one worker
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

pub use arg::{Arg, ObjectBuilder};
pub use error::{ScriptError, SyntaxError};
pub use host::Host;
pub use limits::{Clock, Interrupt, LangLimits, Limits, MAX_BODY};
pub use output::{Output, Parts};
pub use script::{Lang, Script};
