//! Reading a path.

use serde_json::Value;

use super::filter::{FilterOperand, FilterOperator, JsonPathFilter};
use super::{JsonPath, JsonPathFunction, JsonPathStep};
use crate::nodes::regex::{RegexAllowance, WholeMatch};

/// Longest path, bytes.
const MAX_LENGTH: usize = 10_000;
/// Filters and brackets within one another.
const MAX_DEPTH: usize = 32;
/// Steps, names, places and operands of a path together.
const MAX_SELECTORS: usize = 1_000;

/// Reads a whole path.
pub(super) fn parse(text: &str, regexes: &RegexAllowance) -> Result<JsonPath, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the path is empty".to_owned());
    }
    if text.len() > MAX_LENGTH {
        return Err(format!("the path is longer than {MAX_LENGTH} bytes"));
    }
    // What does not start at the root is a field of it.
    let whole = if text.starts_with(['$', '@']) {
        text.to_owned()
    } else {
        format!("$.{text}")
    };
    let mut parser = JsonPathParser {
        text: &whole,
        at: 1,
        depth: 0,
        selectors: 0,
        regexes,
    };
    let path = parser.path(false)?;
    if parser.at < whole.len() {
        return Err(parser.wrong("unexpected text"));
    }
    Ok(path)
}

struct JsonPathParser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    selectors: usize,
    regexes: &'t RegexAllowance,
}

impl<'t> JsonPathParser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, what: &str) -> String {
        format!(
            "{what} at character {}",
            self.text.get(..self.at).unwrap_or_default().chars().count() + 1
        )
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        self.skip_blanks();
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.wrong(&format!("expected `{token}`")))
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth == MAX_DEPTH {
            return Err(self.wrong("nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Counts a selector.
    fn select(&mut self) -> Result<(), String> {
        self.selectors += 1;
        if self.selectors > MAX_SELECTORS {
            return Err(self.wrong(&format!("the path has more than {MAX_SELECTORS} selectors")));
        }
        Ok(())
    }

    /// The steps behind `$` or `@`. Within a filter a name ends where an operator may begin.
    fn path(&mut self, in_filter: bool) -> Result<JsonPath, String> {
        let mut steps = Vec::new();
        loop {
            if self.rest().starts_with(['.', '[']) {
                self.select()?;
            }
            if self.eat("..") {
                steps.push(JsonPathStep::Deep);
                if !self.rest().starts_with('[') {
                    steps.push(self.dot_step(in_filter)?);
                }
            } else if self.eat(".") {
                let start = self.at;
                let name = self.name(in_filter)?;
                if self.rest().starts_with('(') {
                    let function = self.function(&name).map_err(|error| {
                        self.at = start;
                        self.wrong(&error)
                    })?;
                    return Ok(JsonPath {
                        steps,
                        function: Some(function),
                    });
                }
                steps.push(name_step(name));
            } else if self.rest().starts_with('[') {
                steps.push(self.nested(Self::bracket)?);
            } else {
                return Ok(JsonPath {
                    steps,
                    function: None,
                });
            }
        }
    }

    fn dot_step(&mut self, in_filter: bool) -> Result<JsonPathStep, String> {
        self.name(in_filter).map(name_step)
    }

    fn name(&mut self, in_filter: bool) -> Result<String, String> {
        if self.eat("*") {
            return Ok("*".to_owned());
        }
        let ends =
            |c: char| ".[(".contains(c) || (in_filter && (c.is_whitespace() || ")]=!<>&|,".contains(c)));
        let rest = self.rest();
        let name = &rest[..rest.find(ends).unwrap_or(rest.len())];
        if name.is_empty() {
            return Err(self.wrong("expected a name"));
        }
        if name.contains(char::is_whitespace) {
            return Err(self.wrong("a name with blanks has to stand in brackets and quotes"));
        }
        self.at += name.len();
        Ok(name.to_owned())
    }

    fn function(&mut self, name: &str) -> Result<JsonPathFunction, String> {
        self.eat("(");
        let function = match name {
            "length" | "size" => JsonPathFunction::Length,
            "min" => JsonPathFunction::Min,
            "max" => JsonPathFunction::Max,
            "avg" => JsonPathFunction::Avg,
            "sum" => JsonPathFunction::Sum,
            "stddev" => JsonPathFunction::StdDev,
            "keys" => JsonPathFunction::Keys,
            "first" => JsonPathFunction::First,
            "last" => JsonPathFunction::Last,
            "index" => {
                self.skip_blanks();
                JsonPathFunction::Index(self.integer()?.ok_or("expected a number")?)
            }
            other => return Err(format!("unknown function `{other}`")),
        };
        self.skip_blanks();
        if self.eat(")") {
            Ok(function)
        } else {
            Err("expected `)`".to_owned())
        }
    }

    fn bracket(&mut self) -> Result<JsonPathStep, String> {
        self.expect("[")?;
        self.skip_blanks();
        let step = match self.rest().chars().next() {
            Some('*') => {
                self.eat("*");
                JsonPathStep::All
            }
            Some('?') => {
                self.eat("?");
                self.expect("(")?;
                let filter = self.any()?;
                self.expect(")")?;
                JsonPathStep::Filter(filter)
            }
            Some('\'' | '"') => {
                let mut names = vec![self.quoted()?];
                self.skip_blanks();
                while self.eat(",") {
                    self.select()?;
                    self.skip_blanks();
                    names.push(self.quoted()?);
                    self.skip_blanks();
                }
                JsonPathStep::Names(names)
            }
            _ => self.places()?,
        };
        self.expect("]")?;
        Ok(step)
    }

    fn places(&mut self) -> Result<JsonPathStep, String> {
        let first = self.integer()?;
        self.skip_blanks();
        if self.eat(":") {
            self.skip_blanks();
            return Ok(JsonPathStep::Slice(first, self.integer()?));
        }
        let mut indexes = vec![first.ok_or_else(|| self.wrong("expected a name, a number, `*` or `?`"))?];
        while self.eat(",") {
            self.select()?;
            self.skip_blanks();
            indexes.push(self.integer()?.ok_or_else(|| self.wrong("expected a number"))?);
            self.skip_blanks();
        }
        Ok(JsonPathStep::Indexes(indexes))
    }

    fn integer(&mut self) -> Result<Option<i64>, String> {
        let rest = self.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if count == 0 {
            return Ok(None);
        }
        let length = rest.len() - digits.len() + count;
        let number = rest[..length]
            .parse()
            .map_err(|_| self.wrong("the number is too large"))?;
        self.at += length;
        Ok(Some(number))
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut chars = self.rest().char_indices();
        let Some((_, quote @ ('\'' | '"'))) = chars.next() else {
            return Err(self.wrong("expected a quote"));
        };
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, other)) => text.push(other),
                    None => break,
                },
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err(self.wrong("the quote does not end"))
    }

    fn any(&mut self) -> Result<JsonPathFilter, String> {
        let mut filters = vec![self.all()?];
        loop {
            self.skip_blanks();
            if !self.eat("||") {
                return Ok(if filters.len() == 1 {
                    filters.remove(0)
                } else {
                    JsonPathFilter::Any(filters)
                });
            }
            filters.push(self.all()?);
        }
    }

    fn all(&mut self) -> Result<JsonPathFilter, String> {
        let mut filters = vec![self.condition()?];
        loop {
            self.skip_blanks();
            if !self.eat("&&") {
                return Ok(if filters.len() == 1 {
                    filters.remove(0)
                } else {
                    JsonPathFilter::All(filters)
                });
            }
            filters.push(self.condition()?);
        }
    }

    fn condition(&mut self) -> Result<JsonPathFilter, String> {
        self.skip_blanks();
        if self.rest().starts_with('!') && !self.rest().starts_with("!=") {
            self.eat("!");
            return Ok(JsonPathFilter::Not(Box::new(self.nested(Self::condition)?)));
        }
        if self.eat("(") {
            let filter = self.nested(Self::any)?;
            self.expect(")")?;
            return Ok(filter);
        }
        let left = self.operand()?;
        self.skip_blanks();
        let Some(operator) = self.operator() else {
            return Ok(JsonPathFilter::Exists(left));
        };
        self.skip_blanks();
        Ok(JsonPathFilter::Compare(left, operator, self.operand()?))
    }

    fn operator(&mut self) -> Option<FilterOperator> {
        if let Some((_, operator)) = FilterOperator::SIGNS.into_iter().find(|(sign, _)| self.eat(sign)) {
            return Some(operator);
        }
        let rest = self.rest();
        let word = &rest[..rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len())];
        let (_, operator) = FilterOperator::WORDS
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(word))?;
        self.at += word.len();
        Some(operator)
    }

    fn operand(&mut self) -> Result<FilterOperand, String> {
        self.select()?;
        let rest = self.rest();
        match rest.chars().next() {
            Some('@') => {
                self.at += 1;
                self.nested(|parser| parser.path(true)).map(FilterOperand::Here)
            }
            Some('$') => {
                self.at += 1;
                self.nested(|parser| parser.path(true)).map(FilterOperand::Root)
            }
            Some('\'' | '"') => Ok(FilterOperand::Value(self.quoted()?.into())),
            Some('/') => self.regex(),
            Some('[' | '{') => {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                match values.next() {
                    Some(Ok(value)) => {
                        self.at += values.byte_offset();
                        Ok(FilterOperand::Value(value))
                    }
                    _ => self.list(),
                }
            }
            Some(_) => {
                let ends = |c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c));
                let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
                let value = serde_json::from_str(word).map_err(|_| self.wrong("expected a value"))?;
                self.at += word.len();
                Ok(FilterOperand::Value(value))
            }
            None => Err(self.wrong("expected a value")),
        }
    }

    /// A list whose texts stand in single quotes, which JSON does not know.
    fn list(&mut self) -> Result<FilterOperand, String> {
        self.expect("[")?;
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            match self.nested(Self::operand)? {
                FilterOperand::Value(value) => items.push(value),
                _ => return Err(self.wrong("expected a value")),
            }
            self.skip_blanks();
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]")?;
        Ok(FilterOperand::Value(items.into()))
    }

    fn regex(&mut self) -> Result<FilterOperand, String> {
        self.eat("/");
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.find(|c| {
            let ends = c == '/' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.ok_or_else(|| self.wrong("the regular expression does not end"))?;
        let after = &rest[end + 1..];
        let flags = &after[..after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len())];
        let known: String = flags.chars().filter(|flag| "imsxu".contains(*flag)).collect();
        let pattern = WholeMatch::new(&rest[..end].replace(r"\/", "/"), &known, self.regexes)
            .map_err(|error| self.wrong(&error))?;
        self.at += end + 1 + flags.len();
        Ok(FilterOperand::Regex(pattern))
    }
}

fn name_step(name: String) -> JsonPathStep {
    if name == "*" {
        JsonPathStep::All
    } else {
        JsonPathStep::Names(vec![name])
    }
}
