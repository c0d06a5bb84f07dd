//! Regular expressions that people write into configurations: bounded to compile, and to match.
//!
//! Most take time by the length of a text times that of the expression; those that look around or back may take steps back
//! without end. Neither library says how much it did, so that the time of matching is counted besides.

use std::cell::Cell;
use std::time::{Duration, Instant};

use fancy_regex::{Regex, RegexBuilder};

use fieldline_model::budget::{BudgetOverrun, EvaluationBudget, within};

/// Longest expression, bytes.
const MAX_EXPRESSION: usize = 2_000;
/// Memory of a compiled expression, and of what matching keeps, bytes.
const MAX_COMPILED: usize = 512 << 10;
/// Steps back that matching one text may take.
const MAX_BACKTRACKS: usize = 10_000;
/// Longest text that is matched, bytes.
const MAX_TEXT: usize = 64 << 10;
/// Expressions of one chain.
const MAX_EXPRESSIONS: usize = 500;
/// Time that compiling the expressions of one chain may take: some hundred times what ordinary ones do.
const MAX_COMPILE_TIME: Duration = Duration::from_secs(1);

/// What a chain may still compile of expressions.
#[derive(Debug, Default)]
pub(crate) struct RegexAllowance {
    count: Cell<usize>,
    time: Cell<Duration>,
}

impl RegexAllowance {
    fn take(&self) -> Result<(), String> {
        if self.count.get() == MAX_EXPRESSIONS {
            return Err(format!(
                "a rule chain may have {MAX_EXPRESSIONS} regular expressions at most"
            ));
        }
        if self.time.get() > MAX_COMPILE_TIME {
            return Err(format!(
                "the regular expressions of the rule chain take more than {} ms to compile",
                MAX_COMPILE_TIME.as_millis()
            ));
        }
        self.count.set(self.count.get() + 1);
        Ok(())
    }
}

/// An expression that a whole text has to match.
#[derive(Debug, Clone)]
pub(crate) struct WholeMatch(Regex);

impl PartialEq for WholeMatch {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl WholeMatch {
    /// Compiles an expression, with flags such as `i`.
    ///
    /// # Errors
    /// It is no expression, is too large, or the chain has too many.
    pub(crate) fn new(text: &str, flags: &str, allowance: &RegexAllowance) -> Result<Self, String> {
        if text.len() > MAX_EXPRESSION {
            return Err(format!(
                "a regular expression is {} bytes long, allowed are {MAX_EXPRESSION}",
                text.len()
            ));
        }
        allowance.take()?;
        let flags = match flags {
            "" => String::new(),
            flags => format!("(?{flags})"),
        };
        let began = Instant::now();
        let regex = RegexBuilder::new(&format!(r"{flags}\A(?:{text})\z"))
            .backtrack_limit(MAX_BACKTRACKS)
            .delegate_size_limit(MAX_COMPILED)
            .delegate_dfa_size_limit(MAX_COMPILED)
            .max_prog_size(MAX_EXPRESSION * 8)
            .build();
        allowance.time.set(allowance.time.get() + began.elapsed());
        regex.map(Self).map_err(|error| format!("`{text}`: {error}"))
    }

    /// Whether a text matches. One whose matching takes too many steps back does not.
    ///
    /// # Errors
    /// The text is too long, or the message has taken too much of the evaluation.
    pub(crate) fn matches(&self, text: &str, budget: &mut EvaluationBudget) -> Result<bool, BudgetOverrun> {
        within(
            "bytes of a text that a regular expression is matched with",
            text.len() as u64,
            MAX_TEXT as u64,
        )?;
        budget.step(4 + text.len() / 16)?;
        let began = Instant::now();
        let matched = self.0.is_match(text).unwrap_or(false);
        budget.regex_since(began)?;
        Ok(matched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(text: &str) -> Result<WholeMatch, String> {
        WholeMatch::new(text, "", &RegexAllowance::default())
    }

    #[test]
    fn expressions_are_bounded_when_they_are_compiled() {
        assert!(compile(&"a".repeat(MAX_EXPRESSION)).is_ok());
        assert_eq!(
            compile(&"a".repeat(MAX_EXPRESSION + 1)).unwrap_err(),
            "a regular expression is 2001 bytes long, allowed are 2000"
        );
        assert!(compile(r"\w{100}{100}").is_err(), "too large once it is compiled");
        assert!(compile(r"[\w.]+@\w+(\.\w+)+").is_ok());
    }

    #[test]
    fn a_chain_has_so_many_expressions_and_no_more() {
        let allowance = RegexAllowance::default();
        for _ in 0..MAX_EXPRESSIONS {
            WholeMatch::new("a", "", &allowance).unwrap();
        }
        let refused = WholeMatch::new("a", "", &allowance).unwrap_err();
        assert_eq!(refused, "a rule chain may have 500 regular expressions at most");
        let slow = RegexAllowance::default();
        slow.time.set(MAX_COMPILE_TIME + Duration::from_millis(1));
        let refused = WholeMatch::new("a", "", &slow).unwrap_err();
        assert!(refused.contains("1000 ms to compile"), "{refused}");
    }

    #[test]
    fn matching_counts() {
        let regex = compile("(?=a)(a|a)*(?=b)b").unwrap();
        let mut budget = EvaluationBudget::new();
        assert_eq!(regex.matches("ab", &mut budget), Ok(true));
        assert_eq!(
            regex.matches(&"a".repeat(200), &mut budget),
            Ok(false),
            "ends in time"
        );
        let refused = regex.matches(&"a".repeat(MAX_TEXT + 1), &mut budget).unwrap_err();
        assert_eq!(refused.figure, 65_537);
        let plain = compile("b*").unwrap();
        let text = "b".repeat(MAX_TEXT);
        let overrun = (0..1_000).find_map(|_| plain.matches(&text, &mut budget).err());
        assert!(overrun.is_some(), "steps run out");
    }
}
