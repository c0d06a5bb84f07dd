//! TBEL to JavaScript.
//!
//! A null of TBEL is `undefined`, a map an object, a list or array a JavaScript array, a char a text of one
//! character. Ints, longs and doubles are numbers; a double whose value is whole is told from an int by QuickJS's
//! own tag (see `emit`). Methods become properties with a `$` before their name, so that a key of a map never
//! shadows one. Every statement stands on its line of the source.

mod ast;
mod emit;
mod lexer;
mod names;
mod parser;
mod scope;

use crate::error::SyntaxError;

/// Translates a body to the expression that makes its function; the body's lines start at the second line.
pub(crate) fn translate(params: &[&str], body: &str) -> Result<String, SyntaxError> {
    let tokens = lexer::tokens(body)?;
    let program = parser::parse(tokens)?;
    Ok(emit::program(params, &program))
}
