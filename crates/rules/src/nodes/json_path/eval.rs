//! Walking along a path. Every value that is looked at is a step of the budget, whichever filter looks, and whatever is made
//! of what is found is counted before it is made: a value that is found twice counts twice.

use std::borrow::Cow;

use fieldline_model::budget::{BudgetOverrun, EvaluationBudget};
use serde_json::{Map, Value};

use super::filter::JsonPathContext;
use super::{JsonPathError, JsonPathStep};

/// Most values that a path may find on its way.
const MAX_FOUND: usize = 100_000;

/// What a path leads to.
pub(super) enum JsonPathMatch<'v> {
    /// The only value that it can lead to.
    One(&'v Value),
    /// Some fields of an object.
    Fields(Map<String, Value>),
    /// All that it leads to.
    Many(Vec<&'v Value>),
}

impl<'v> JsonPathMatch<'v> {
    /// The values that were found as one; of a single one none is made.
    pub(super) fn into_value(
        self,
        root: &Value,
        budget: &mut EvaluationBudget,
    ) -> Result<Cow<'v, Value>, BudgetOverrun> {
        match self {
            Self::One(value) => Ok(Cow::Borrowed(value)),
            Self::Fields(fields) => Ok(Cow::Owned(Value::Object(fields))),
            Self::Many(values) => {
                for value in &values {
                    count_copy(value, root, budget)?;
                }
                Ok(Cow::Owned(Value::Array(values.into_iter().cloned().collect())))
            }
        }
    }
}

/// Counts a value that is about to be copied.
pub(super) fn count_copy(
    value: &Value,
    root: &Value,
    budget: &mut EvaluationBudget,
) -> Result<(), BudgetOverrun> {
    let bytes = size(value, budget)?;
    if !budget.has_room(bytes) {
        // Whatever takes each part of a large document once is no more than the document.
        let whole = size(root, budget)?;
        budget.allow_message(whole);
    }
    budget.make(bytes)
}

/// Bytes that a value takes in memory.
pub(super) fn size(value: &Value, budget: &mut EvaluationBudget) -> Result<usize, BudgetOverrun> {
    let own = size_of::<Value>();
    Ok(match value {
        Value::String(text) => {
            budget.read(text.len())?;
            own + text.len()
        }
        Value::Array(items) => {
            budget.step(1)?;
            let mut sum = own;
            for item in items {
                sum += size(item, budget)?;
            }
            sum
        }
        Value::Object(fields) => {
            budget.step(1)?;
            let mut sum = own;
            for (name, field) in fields {
                budget.read(name.len())?;
                // The name's text, its hash and its place in the index.
                sum += size_of::<String>() + 16 + name.len() + size(field, budget)?;
            }
            sum
        }
        _ => {
            budget.step(1)?;
            own
        }
    })
}

/// Takes the steps from a value.
pub(super) fn find<'v>(
    steps: &[JsonPathStep],
    root: &'v Value,
    from: &'v Value,
    budget: &mut EvaluationBudget,
) -> Result<JsonPathMatch<'v>, JsonPathError> {
    budget.step(2 + steps.len())?;
    let mut walk = JsonPathEvaluator {
        root,
        budget,
        definite: true,
        deep: false,
        next: Vec::new(),
    };
    let mut found = vec![from];
    for (at, step) in steps.iter().enumerate() {
        if *step == JsonPathStep::Deep {
            for value in found {
                walk.descend(value)?;
            }
            found = std::mem::take(&mut walk.next);
            (walk.definite, walk.deep) = (false, true);
            continue;
        }
        if let (JsonPathStep::Names(names), true, [Value::Object(fields)]) =
            (step, walk.definite, found.as_slice())
            && names.len() > 1
            && at + 1 == steps.len()
        {
            return walk.fields(names, fields);
        }
        for value in found {
            walk.take(step, value)?;
        }
        found = std::mem::take(&mut walk.next);
        walk.definite &= step.is_definite();
        walk.deep = false;
    }
    match found.as_slice() {
        [only] if walk.definite => Ok(JsonPathMatch::One(only)),
        _ if walk.definite => Err(JsonPathError::nothing("the path leads to nothing")),
        _ => Ok(JsonPathMatch::Many(found)),
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

/// A walk from step to step.
struct JsonPathEvaluator<'v, 'b> {
    root: &'v Value,
    budget: &'b mut EvaluationBudget,
    /// Whether the steps so far lead to one place only.
    definite: bool,
    /// Whether the step before was `..`.
    deep: bool,
    /// What the step under way has found.
    next: Vec<&'v Value>,
}

impl<'v> JsonPathEvaluator<'v, '_> {
    fn add(&mut self, value: &'v Value) -> Result<(), JsonPathError> {
        if self.next.len() == MAX_FOUND {
            return Err(JsonPathError::Overrun(BudgetOverrun {
                limit: "values that a path finds",
                figure: MAX_FOUND as u64 + 1,
                allowed: MAX_FOUND as u64,
            }));
        }
        self.budget.step(1)?;
        self.next.push(value);
        Ok(())
    }

    fn add_all(&mut self, values: impl IntoIterator<Item = &'v Value>) -> Result<(), JsonPathError> {
        values.into_iter().try_for_each(|value| self.add(value))
    }

    /// Adds a value and all lists and objects below it.
    fn descend(&mut self, value: &'v Value) -> Result<(), JsonPathError> {
        self.budget.step(1)?;
        match value {
            Value::Array(items) => {
                self.add(value)?;
                items.iter().try_for_each(|item| self.descend(item))
            }
            Value::Object(fields) => {
                self.add(value)?;
                fields.values().try_for_each(|field| self.descend(field))
            }
            _ => Ok(()),
        }
    }

    /// Several fields of one object, as an object.
    fn fields(
        &mut self,
        names: &[String],
        fields: &Map<String, Value>,
    ) -> Result<JsonPathMatch<'v>, JsonPathError> {
        let mut chosen = Map::new();
        for name in names {
            self.budget.read(name.len())?;
            if let Some(field) = fields.get(name) {
                self.budget.make(name.len())?;
                count_copy(field, self.root, self.budget)?;
                chosen.insert(name.clone(), field.clone());
            }
        }
        Ok(JsonPathMatch::Fields(chosen))
    }

    /// What is missing matters where nothing before it was a choice.
    fn missing(&self, what: impl FnOnce() -> String) -> Result<(), JsonPathError> {
        if self.definite {
            Err(JsonPathError::nothing(what()))
        } else {
            Ok(())
        }
    }

    /// Takes one step from a value.
    fn take(&mut self, step: &JsonPathStep, value: &'v Value) -> Result<(), JsonPathError> {
        self.budget.step(1)?;
        match (step, value) {
            (JsonPathStep::Names(names), Value::Object(fields)) => {
                for name in names {
                    self.budget.read(name.len())?;
                    match fields.get(name) {
                        Some(field) => self.add(field)?,
                        None if names.len() == 1 => {
                            return self.missing(|| format!("there is no field '{name}'"));
                        }
                        None => {}
                    }
                }
                Ok(())
            }
            (JsonPathStep::Names(names), _) => {
                self.missing(|| format!("'{}' is looked for in what is no object", names.join("','")))
            }
            (JsonPathStep::Indexes(indexes), Value::Array(items)) => {
                for index in indexes {
                    self.budget.step(1)?;
                    match place(*index, items.len()).and_then(|at| items.get(at)) {
                        Some(item) => self.add(item)?,
                        None if indexes.len() == 1 => {
                            return self.missing(|| format!("there is no element {index}"));
                        }
                        None => {}
                    }
                }
                Ok(())
            }
            (JsonPathStep::Slice(from, to), Value::Array(items)) => self.add_all(slice(items, *from, *to)),
            (JsonPathStep::Indexes(_) | JsonPathStep::Slice(..), _) => {
                self.missing(|| "an element is looked for in what is no array".to_owned())
            }
            (JsonPathStep::All, Value::Object(fields)) => self.add_all(fields.values()),
            (JsonPathStep::All, Value::Array(items)) => self.add_all(items),
            // Below a `..` each object is looked at for itself.
            (JsonPathStep::Filter(_), Value::Array(items)) if !self.deep => {
                items.iter().try_for_each(|item| self.choose(step, item))
            }
            (JsonPathStep::Filter(_), Value::Object(_)) => self.choose(step, value),
            _ => Ok(()),
        }
    }

    /// Adds a value that the filter of a step accepts.
    fn choose(&mut self, step: &JsonPathStep, value: &'v Value) -> Result<(), JsonPathError> {
        let looked = JsonPathContext {
            root: self.root,
            here: value,
        };
        match step {
            JsonPathStep::Filter(filter) if filter.accepts(looked, self.budget)? => self.add(value),
            _ => Ok(()),
        }
    }
}

/// Elements from a place to before another one, from the end where negative.
fn slice(items: &[Value], from: Option<i64>, to: Option<i64>) -> &[Value] {
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
    items.get(range).unwrap_or_default()
}
