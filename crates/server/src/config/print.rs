//! `fieldline config`: the effective configuration as a TOML file that works as it is.

use std::io::{self, Write};

use toml::{Table, Value};

use super::{EffectiveConfig, SECRETS};

const WIDTH: usize = 100;

/// Writes every key with its documentation, value and source. Secrets are hidden.
pub(crate) fn print(loaded: &EffectiveConfig, out: &mut impl Write) -> io::Result<()> {
    let mut section = "";
    // Keys of the top level come first: in TOML they cannot follow a section.
    let (top, nested): (Vec<_>, Vec<_>) = loaded.keys.iter().partition(|key| !key.path.contains('.'));
    for key in top.into_iter().chain(nested) {
        let (own_section, name) = key.path.rsplit_once('.').unwrap_or(("", &key.path));
        if own_section != section {
            section = own_section;
            writeln!(out, "[{section}]")?;
        }
        for line in wrap(&key.doc) {
            writeln!(out, "# {line}")?;
        }
        let source = loaded.source(&key.path);
        match get(&loaded.values, &key.path) {
            Some(Value::Array(list)) if list.is_empty() => {
                writeln!(out, "{name} = [] # {source}; {}", key.env)?;
            }
            Some(_) if SECRETS.contains(&key.path.as_str()) => {
                // As an active line, it would become the secret of anyone who uses the output as a file.
                writeln!(out, "# {name} = \"********\" # {source}")?;
            }
            Some(value) => writeln!(out, "{name} = {value} # {source}; {}", key.env)?,
            None => writeln!(out, "# {name} is not set; {}", key.env)?,
        }
        writeln!(out)?;
    }
    Ok(())
}

fn get<'a>(values: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => values.get(path),
        Some((section, rest)) => get(values.get(section)?.as_table()?, rest),
    }
}

fn wrap(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}
