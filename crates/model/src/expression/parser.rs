//! From the text of an expression to its program, by precedence climbing.

use super::{ExpressionError, MathFunction, MathOp};

/// Deepest nesting of brackets, signs and powers: the parser calls itself.
const MAX_DEPTH: usize = 128;

const ADDITION: u8 = 1;
const MULTIPLICATION: u8 = 2;
const SIGN: u8 = 3;
const POWER: u8 = 4;

type ParseResult<T> = Result<T, ExpressionError>;

pub(super) fn parse<'t>(text: &'t str, variables: &[&'t str]) -> ParseResult<Vec<MathOp>> {
    if text.trim().is_empty() {
        return Err(ExpressionError::new(0, "Expression can not be empty"));
    }
    let mut parser = ExpressionParser {
        text,
        at: 0,
        names: names(variables),
        program: Vec::new(),
        depth: 0,
        after_number: false,
    };
    parser.expression(0)?;
    match parser.peek() {
        None => Ok(parser.program),
        Some(letter) => Err(parser.unexpected(letter)),
    }
}

/// What a name stands for.
#[derive(Debug, Clone, Copy)]
enum NameMeaning {
    Operand(MathOp),
    Function(MathFunction),
}

/// All names, the longest first. Looking through them takes as long wherever a word stands in the expression: products of
/// names without an operator are as many as there are letters.
fn names<'t>(variables: &[&'t str]) -> Vec<(&'t str, NameMeaning)> {
    let variables = variables
        .iter()
        .enumerate()
        .filter(|(_, name)| name.starts_with(is_name_start) && name.chars().all(is_name_letter))
        .filter_map(|(index, name)| {
            Some((
                *name,
                NameMeaning::Operand(MathOp::Variable(u16::try_from(index).ok()?)),
            ))
        });
    let constants = [
        ("pi", std::f64::consts::PI),
        ("π", std::f64::consts::PI),
        ("e", std::f64::consts::E),
        ("φ", 1.618_033_988_74),
    ];
    let constants = constants.map(|(name, number)| (name, NameMeaning::Operand(MathOp::Number(number))));
    let functions = MathFunction::ALL
        .iter()
        .map(|function| (function.name(), NameMeaning::Function(*function)));
    let mut names: Vec<_> = variables.chain(constants).chain(functions).collect();
    // Of equal names the first one counts: a variable hides a constant.
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

struct ExpressionParser<'t> {
    text: &'t str,
    at: usize,
    /// What a word may begin with, the longest first.
    names: Vec<(&'t str, NameMeaning)>,
    program: Vec<MathOp>,
    depth: usize,
    /// Whether a bare number was read last, which must not be followed by another.
    after_number: bool,
}

impl<'t> ExpressionParser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next letter that is no white space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn skip(&mut self, letter: char) {
        self.after_number = false;
        self.at += letter.len_utf8();
    }

    fn unexpected(&self, letter: char) -> ExpressionError {
        ExpressionError::new(self.at, format!("Unable to parse char '{letter}'"))
    }

    /// An operand and all operators behind it that bind at least as strongly as `least`.
    fn expression(&mut self, least: u8) -> ParseResult<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExpressionError::new(
                self.at,
                "the expression is nested too deeply",
            ));
        }
        self.operand()?;
        while let Some(letter) = self.peek() {
            let Some((op, binds, implied)) = operator(letter) else {
                break;
            };
            if binds < least {
                break;
            }
            if implied {
                if self.after_number && (letter.is_ascii_digit() || letter == '.') {
                    return Err(self.unexpected(letter));
                }
            } else {
                self.skip(letter);
            }
            // Only powers go from right to left.
            let right = if binds == POWER { POWER } else { binds + 1 };
            self.expression(right)?;
            self.program.push(op);
        }
        self.depth -= 1;
        Ok(())
    }

    /// A number, variable, call or bracket, with its sign.
    fn operand(&mut self) -> ParseResult<()> {
        let Some(letter) = self.peek() else {
            return Err(ExpressionError::new(self.at, "an operand is missing"));
        };
        match letter {
            '+' | '-' => {
                self.skip(letter);
                self.expression(SIGN)?;
                if letter == '-' {
                    self.program.push(MathOp::Negate);
                }
                Ok(())
            }
            '(' | '[' | '{' => {
                self.skip(letter);
                self.expression(0)?;
                self.close()
            }
            '0'..='9' | '.' => self.number(),
            letter if is_name_start(letter) => self.name(),
            other => Err(self.unexpected(other)),
        }
    }

    fn close(&mut self) -> ParseResult<()> {
        match self.peek() {
            Some(letter @ (')' | ']' | '}')) => {
                self.skip(letter);
                Ok(())
            }
            Some(letter) => Err(self.unexpected(letter)),
            None => Err(ExpressionError::new(self.at, "a closing bracket is missing")),
        }
    }

    fn number(&mut self) -> ParseResult<()> {
        let rest = self.rest().as_bytes();
        let digits = |from: usize| {
            let tail = rest.get(from..).unwrap_or_default();
            from + tail
                .iter()
                .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
                .count()
        };
        let mut end = digits(0);
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let signed = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            // Without digits behind it, it is the constant.
            if rest.get(end + 1 + signed).is_some_and(u8::is_ascii_digit) {
                end = digits(end + 1 + signed);
            }
        }
        let text = self.rest().get(..end).unwrap_or_default();
        let number: f64 = text
            .parse()
            .map_err(|_| ExpressionError::new(self.at, format!("`{text}` is not a number")))?;
        self.program.push(MathOp::Number(number));
        self.at += end;
        self.after_number = true;
        Ok(())
    }

    /// The longest variable, constant or function that the word here begins with.
    fn name(&mut self) -> ParseResult<()> {
        self.after_number = false;
        let rest = self.rest();
        let Some((name, meaning)) = self.names.iter().find(|(name, _)| rest.starts_with(name)) else {
            let end = rest.find(|letter: char| !is_name_letter(letter));
            let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            return Err(ExpressionError::new(
                self.at,
                format!("Unknown function or variable '{word}'"),
            ));
        };
        self.at += name.len();
        match *meaning {
            NameMeaning::Operand(op) => {
                self.program.push(op);
                Ok(())
            }
            NameMeaning::Function(function) => self.call(function),
        }
    }

    fn call(&mut self, function: MathFunction) -> ParseResult<()> {
        let name = function.name();
        match self.peek() {
            Some(letter @ ('(' | '[' | '{')) => self.skip(letter),
            _ => {
                return Err(ExpressionError::new(
                    self.at,
                    format!("a bracket is missing behind function '{name}'"),
                ));
            }
        }
        let mut arguments = 1;
        self.expression(0)?;
        while self.peek() == Some(',') {
            self.skip(',');
            self.expression(0)?;
            arguments += 1;
        }
        self.close()?;
        if arguments != function.arguments() {
            return Err(ExpressionError::new(
                self.at,
                format!(
                    "function '{name}' takes {} argument(s), not {arguments}",
                    function.arguments()
                ),
            ));
        }
        self.program.push(MathOp::Call(function));
        Ok(())
    }
}

/// The operator that a letter is, how strongly it binds, and whether it is only implied.
fn operator(letter: char) -> Option<(MathOp, u8, bool)> {
    Some(match letter {
        '+' => (MathOp::Add, ADDITION, false),
        '-' => (MathOp::Subtract, ADDITION, false),
        '*' => (MathOp::Multiply, MULTIPLICATION, false),
        '/' | '÷' => (MathOp::Divide, MULTIPLICATION, false),
        '%' => (MathOp::Modulo, MULTIPLICATION, false),
        '^' => (MathOp::Power, POWER, false),
        '(' | '[' | '{' | '0'..='9' | '.' => (MathOp::Multiply, MULTIPLICATION, true),
        letter if is_name_start(letter) => (MathOp::Multiply, MULTIPLICATION, true),
        _ => return None,
    })
}

fn is_name_start(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '.'
}
