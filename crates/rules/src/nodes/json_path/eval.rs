//! Walking along a path.

use serde_json::{Map, Value};

use super::Step;

/// Most values that a path may find on its way.
const MAX_FOUND: usize = 100_000;

/// What a path leads to.
pub(super) enum Found<'v> {
    /// The only value that it can lead to.
    One(&'v Value),
    /// Some fields of an object.
    Fields(Map<String, Value>),
    /// All that it leads to.
    Many(Vec<&'v Value>),
}

impl Found<'_> {
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::One(value) => value.clone(),
            Self::Fields(fields) => Value::Object(fields),
            Self::Many(values) => Value::Array(values.into_iter().cloned().collect()),
        }
    }
}

/// Takes the steps from a value.
pub(super) fn find<'v>(steps: &[Step], root: &'v Value, from: &'v Value) -> Result<Found<'v>, String> {
    let mut found = vec![from];
    let mut definite = true;
    let mut deep = false;
    for (at, step) in steps.iter().enumerate() {
        if *step == Step::Deep {
            let mut below = Vec::new();
            found.iter().try_for_each(|value| descend(value, &mut below))?;
            (found, definite, deep) = (below, false, true);
            continue;
        }
        if let (Step::Names(names), true, [Value::Object(fields)]) = (step, definite, found.as_slice())
            && names.len() > 1
            && at + 1 == steps.len()
        {
            let chosen = names
                .iter()
                .filter_map(|name| Some((name.clone(), fields.get(name)?.clone())));
            return Ok(Found::Fields(chosen.collect()));
        }
        let mut next = Vec::new();
        for value in found {
            take(step, root, value, definite, deep, &mut next)?;
            if next.len() > MAX_FOUND {
                return Err(format!("the path finds more than {MAX_FOUND} values"));
            }
        }
        found = next;
        definite &= step.is_definite();
        deep = false;
    }
    match found.as_slice() {
        [only] if definite => Ok(Found::One(only)),
        _ if definite => Err("the path leads to nothing".to_owned()),
        _ => Ok(Found::Many(found)),
    }
}

/// The place in a list of that length, from the end where negative.
pub(super) fn place(index: i64, length: usize) -> Option<usize> {
    let at = if index < 0 {
        index.checked_add(i64::try_from(length).ok()?)?
    } else {
        index
    };
    usize::try_from(at).ok().filter(|at| *at < length)
}

fn descend<'v>(value: &'v Value, out: &mut Vec<&'v Value>) -> Result<(), String> {
    if out.len() > MAX_FOUND {
        return Err(format!("the path finds more than {MAX_FOUND} values"));
    }
    match value {
        Value::Array(items) => {
            out.push(value);
            items.iter().try_for_each(|item| descend(item, out))
        }
        Value::Object(fields) => {
            out.push(value);
            fields.values().try_for_each(|field| descend(field, out))
        }
        _ => Ok(()),
    }
}

/// Takes one step; what is missing matters where nothing before it was a choice.
fn take<'v>(
    step: &Step,
    root: &'v Value,
    value: &'v Value,
    definite: bool,
    deep: bool,
    out: &mut Vec<&'v Value>,
) -> Result<(), String> {
    let missing = |what: String| if definite { Err(what) } else { Ok(()) };
    match (step, value) {
        (Step::Names(names), Value::Object(fields)) => {
            for name in names {
                match fields.get(name) {
                    Some(field) => out.push(field),
                    None if names.len() == 1 => return missing(format!("there is no field '{name}'")),
                    None => {}
                }
            }
            Ok(())
        }
        (Step::Names(names), _) => missing(format!(
            "'{}' is looked for in what is no object",
            names.join("','")
        )),
        (Step::Indexes(indexes), Value::Array(items)) => {
            for index in indexes {
                match place(*index, items.len()).and_then(|at| items.get(at)) {
                    Some(item) => out.push(item),
                    None if indexes.len() == 1 => return missing(format!("there is no element {index}")),
                    None => {}
                }
            }
            Ok(())
        }
        (Step::Slice(from, to), Value::Array(items)) => {
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let bound = |at: i64| {
                if at < 0 {
                    at.saturating_add(length).max(0)
                } else {
                    at.min(length)
                }
            };
            let (from, to) = (bound(from.unwrap_or(0)), bound(to.unwrap_or(length)));
            let range = usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(0);
            out.extend(items.get(range).unwrap_or_default());
            Ok(())
        }
        (Step::Indexes(_) | Step::Slice(..), _) => {
            missing("an element is looked for in what is no array".to_owned())
        }
        (Step::All, Value::Object(fields)) => {
            out.extend(fields.values());
            Ok(())
        }
        (Step::All, Value::Array(items)) => {
            out.extend(items);
            Ok(())
        }
        // Below a `..` each object is looked at for itself.
        (Step::Filter(filter), Value::Array(items)) if !deep => {
            out.extend(items.iter().filter(|item| filter.accepts(root, item)));
            Ok(())
        }
        (Step::Filter(filter), Value::Object(_)) => {
            if filter.accepts(root, value) {
                out.push(value);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
