//! Java's regular expressions, as credentials of the broker's clients have them: bounded to compile, and to match.
//!
//! Most rules name a topic, or all topics below one. These are compared as texts: that is faster, and takes as much memory
//! as the text.

use fancy_regex::{Regex, RegexBuilder};

/// Longest expression, bytes.
pub(super) const MAX_EXPRESSION: usize = 2_000;
/// Longest text that is matched, bytes; no topic is longer.
const MAX_TEXT: usize = 65_535;
/// Memory of a compiled expression, and of what matching keeps, bytes.
const MAX_COMPILED: usize = 256 << 10;
/// Steps back that matching one text may take.
const MAX_BACKTRACKS: usize = 10_000;
/// About what a compiled expression takes, bytes.
const REGEX_COST: usize = 16 << 10;

/// Characters that mean something else than themselves.
const META: &[char] = &[
    '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}', '\\',
];
/// What ends a line in Java, and so is not what a dot stands for.
const LINE_ENDS: &[char] = &['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// An expression that a whole text has to match.
#[derive(Debug)]
pub(super) enum WholePattern {
    /// This text.
    Text(Box<str>),
    /// Any text of one line that begins with this one.
    Prefix(Box<str>),
    /// Anything else.
    Regex(Box<Regex>),
}

impl WholePattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is no expression, or too large.
    pub(super) fn new(expression: &str) -> Result<Self, String> {
        Ok(match literal(expression) {
            Some((text, false)) => Self::Text(text.into()),
            Some((text, true)) => Self::Prefix(text.into()),
            None => Self::Regex(Box::new(build(expression, |translated| {
                format!(r"\A(?:{translated})\z")
            })?)),
        })
    }

    /// Whether a whole text matches. One whose matching takes too many steps does not: it is granted nothing.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.decide(text).unwrap_or(false)
    }

    /// Like [`Self::matches`], for what is kept out: a text whose matching takes too many steps may match.
    pub(super) fn may_match(&self, text: &str) -> bool {
        self.decide(text).unwrap_or(true)
    }

    /// Whether a whole text matches; `None` where that takes too long to say.
    fn decide(&self, text: &str) -> Option<bool> {
        match self {
            Self::Text(own) => Some(**own == *text),
            Self::Prefix(own) => {
                let rest = text.strip_prefix(&**own);
                Some(rest.is_some_and(|rest| !rest.contains(LINE_ENDS)))
            }
            Self::Regex(regex) if text.len() <= MAX_TEXT => regex.is_match(text).ok(),
            Self::Regex(_) => None,
        }
    }

    /// About the memory that it takes, bytes.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Text(text) | Self::Prefix(text) => text.len(),
            Self::Regex(_) => REGEX_COST,
        }
    }
}

/// An expression that is looked for in a text.
#[derive(Debug)]
pub(super) struct PartPattern(Regex);

impl PartPattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is no expression, or too large.
    pub(super) fn new(expression: &str) -> Result<Self, String> {
        build(expression, |translated| translated).map(Self)
    }

    /// Whether a part of a text matches.
    pub(super) fn finds(&self, text: &str) -> bool {
        text.len() <= MAX_TEXT && self.0.is_match(text).unwrap_or(false)
    }
}

/// An expression that stands for a text.
pub(super) fn quoted(text: &str) -> String {
    fancy_regex::escape(text).into_owned()
}

fn build(expression: &str, around: impl FnOnce(String) -> String) -> Result<Regex, String> {
    if expression.len() > MAX_EXPRESSION {
        return Err(format!(
            "a regular expression is {} bytes long, allowed are {MAX_EXPRESSION}",
            expression.len()
        ));
    }
    // By itself, so that no expression closes the group that it stands in.
    let translated = translated(expression);
    let compiled = |text: &str| {
        RegexBuilder::new(text)
            .backtrack_limit(MAX_BACKTRACKS)
            .delegate_size_limit(MAX_COMPILED)
            .delegate_dfa_size_limit(MAX_COMPILED)
            .max_prog_size(MAX_EXPRESSION * 8)
            .build()
            .map_err(|error| error.to_string())
    };
    let alone = compiled(&translated)?;
    let whole = around(translated);
    if whole == alone.as_str() {
        return Ok(alone);
    }
    compiled(&whole)
}

/// The text that an expression begins with, and whether any text may follow; `None` where it stands for more than that.
fn literal(expression: &str) -> Option<(String, bool)> {
    if expression.len() > MAX_EXPRESSION {
        return None;
    }
    let mut text = String::with_capacity(expression.len());
    let mut rest = expression;
    loop {
        if rest == ".*" {
            return Some((text, true));
        }
        let Some(next) = rest.chars().next() else {
            return Some((text, false));
        };
        if let Some(inside) = rest.strip_prefix(r"\Q") {
            let (inside, after) = inside.split_once(r"\E").unwrap_or((inside, ""));
            text.push_str(inside);
            rest = after;
            continue;
        }
        let char = match next {
            '\\' => {
                rest = &rest[1..];
                rest.chars().next().filter(|escaped| !escaped.is_alphanumeric())?
            }
            next if META.contains(&next) => return None,
            next => next,
        };
        text.push(char);
        rest = &rest[char.len_utf8()..];
    }
}

/// An expression in the words of the library: a quotation is escaped, and what stands for digits, letters and spaces stands
/// for those of ASCII, as in Java.
fn translated(expression: &str) -> String {
    let mut text = String::with_capacity(expression.len() + 16);
    let mut rest = expression;
    while let Some(next) = rest.chars().next() {
        if let Some(inside) = rest.strip_prefix(r"\Q") {
            let (inside, after) = inside.split_once(r"\E").unwrap_or((inside, ""));
            text.push_str(&fancy_regex::escape(inside));
            rest = after;
            continue;
        }
        if next != '\\' {
            text.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        }
        let escaped = rest[1..].chars().next();
        match escaped {
            Some('d') => text.push_str("[0-9]"),
            Some('D') => text.push_str("[^0-9]"),
            Some('w') => text.push_str("[a-zA-Z_0-9]"),
            Some('W') => text.push_str("[^a-zA-Z_0-9]"),
            Some('s') => text.push_str(r"[ \t\n\x0B\x0C\r]"),
            Some('S') => text.push_str(r"[^ \t\n\x0B\x0C\r]"),
            other => {
                text.push('\\');
                text.extend(other);
            }
        }
        rest = &rest[1 + escaped.map_or(0, char::len_utf8)..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(expression: &str, text: &str) -> bool {
        WholePattern::new(expression)
            .expect("an expression")
            .matches(text)
    }

    #[test]
    fn the_whole_text_has_to_match() {
        for (expression, text, is_match) in [
            (".*", "", true),
            (".*", "a/b", true),
            (".*", "a\nb", false),
            ("a/b", "a/b", true),
            ("a/b", "a/b/c", false),
            ("a/.*", "a/b/c", true),
            ("a/.*", "b/a/c", false),
            (r"\$SYS/.*", "$SYS/x", true),
            (r"\Qa.b\E/.*", "a.b/c", true),
            (r"\Qa.b\E/.*", "axb/c", false),
            (r"\Qa.b", "a.b", true),
            ("a|b/.*", "b/c", true),
            ("a|b/.*", "a/c", false),
            ("sensors/[0-9]+/t", "sensors/12/t", true),
            ("sensors/[0-9]+/t", "sensors/12/t/x", false),
            (r"s/\d+", "s/12", true),
            (r"s/\d+", "s/\u{664}", false),
            (r"s/[\w-]+", "s/a_b-1", true),
            (r"s/[\w-]+", "s/é", false),
            (r"\\Q.", r"\Qx", true),
            ("(?!secret/).*", "open/a", true),
            ("(?!secret/).*", "secret/a", false),
            ("a.", "aé", true),
            ("ab*", "abbb", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(expression, text), is_match, "{expression} {text:?}");
        }
    }

    #[test]
    fn plain_rules_need_no_regular_expression() {
        for (expression, text, is_prefix) in [
            (".*", "", true),
            ("a/b", "a/b", false),
            ("a-1/_/.*", "a-1/_/", true),
            (r"a\.b\+/.*", "a.b+/", true),
            (r"\Qx|y\E/.*", "x|y/", true),
        ] {
            assert_eq!(literal(expression), Some((text.to_owned(), is_prefix)));
        }
        for expression in ["a+", "a.b", r"a\d", "(a)", "a.*b", ".*.*", r"a\", "[a]"] {
            assert_eq!(literal(expression), None, "{expression}");
        }
    }

    #[test]
    fn expressions_are_bounded() {
        assert!(WholePattern::new(&"a".repeat(MAX_EXPRESSION + 1)).is_err());
        for wrong in ["(", "a)(b", "*", r"(?:\w{100}){200}", r"(?:\w{1000}){1000}"] {
            assert!(WholePattern::new(wrong).is_err(), "{wrong}");
            assert!(PartPattern::new(wrong).is_err(), "{wrong}");
        }
        // It looks back without end, and so does not match.
        assert!(!matches("(?=a)(a|a)*(?=b)b", &"a".repeat(200)));
    }

    #[test]
    fn what_takes_too_many_steps_may_match() {
        let pattern = WholePattern::new("(?:(?!trusted).)*").expect("an expression");
        for long in ["x".repeat(11_000), "x".repeat(MAX_TEXT + 1)] {
            assert!(!pattern.matches(&long) && pattern.may_match(&long));
        }
        assert!(pattern.may_match("x") && !pattern.may_match("trusted"));
    }

    #[test]
    fn a_part_is_found_anywhere() {
        let pattern = PartPattern::new("device-[0-9]").expect("an expression");
        assert!(pattern.finds("a device-1 of many"));
        assert!(!pattern.finds("a device"));
        let quoted = quoted("a.b$");
        assert!(matches(&format!("{quoted}/.*"), "a.b$/c"));
    }
}
