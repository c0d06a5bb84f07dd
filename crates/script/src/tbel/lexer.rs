//! Tokens of a TBEL source.

use super::ast::SourcePosition;
use crate::error::SyntaxError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TbelToken {
    Name(String),
    Int(String),
    Double(f64),
    Text(String),
    Op(&'static str),
    End,
}

#[derive(Debug, Clone)]
pub(super) struct SpannedToken {
    pub(super) token: TbelToken,
    pub(super) pos: SourcePosition,
    /// Whether it is the first of its line.
    pub(super) first: bool,
}

/// Longest first, so that a prefix does not hide a longer one.
const OPERATORS: &[&str] = &[
    ">>>=", "<<=", ">>=", ">>>", "===", "!==", "**=", "==", "!=", "<=", ">=", "&&", "||", "++", "--", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "~=", ".?", "?.", "?:", "**", "+", "-", "*", "/",
    "%", "=", "<", ">", "!", "&", "|", "^", "~", "?", ":", ";", ",", ".", "(", ")", "[", "]", "{", "}", "#",
];

struct TbelLexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    /// A place in the line and its column, from which on columns are counted: a line may be as long as the script.
    counted: (usize, u32),
}

/// Splits a source.
pub(super) fn tokens(source: &str) -> Result<Vec<SpannedToken>, SyntaxError> {
    let mut lexer = TbelLexer {
        source,
        at: 0,
        line: 1,
        line_start: 0,
        counted: (0, 1),
    };
    let mut tokens = Vec::new();
    let mut last_line = 0;
    loop {
        lexer.skip_blank()?;
        let pos = lexer.pos();
        let token = lexer.token()?;
        let end = token == TbelToken::End;
        tokens.push(SpannedToken {
            token,
            pos,
            first: pos.line != last_line,
        });
        last_line = lexer.line;
        if end {
            return Ok(tokens);
        }
    }
}

impl TbelLexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        if next == '\n' {
            self.line += 1;
            self.line_start = self.at;
        }
        Some(next)
    }

    fn pos(&mut self) -> SourcePosition {
        if self.counted.0 < self.line_start {
            self.counted = (self.line_start, 1);
        }
        let (from, column) = self.counted;
        let more = self.source[from..self.at].chars().count();
        let column = column.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        self.counted = (self.at, column);
        SourcePosition {
            line: self.line,
            column,
        }
    }

    fn error<T>(&self, pos: SourcePosition, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError {
            line: pos.line,
            column: pos.column,
            message: message.into(),
        })
    }

    fn skip_blank(&mut self) -> Result<(), SyntaxError> {
        loop {
            if self.rest().starts_with("//") {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.bump();
                }
            } else if self.rest().starts_with("/*") {
                let start = self.pos();
                while !self.rest().starts_with("*/") {
                    if self.bump().is_none() {
                        return self.error(start, "the comment has no end");
                    }
                }
                self.bump();
                self.bump();
            } else if self.peek().is_some_and(|c| c.is_whitespace() || c == '\u{feff}') {
                self.bump();
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<TbelToken, SyntaxError> {
        let Some(next) = self.peek() else {
            return Ok(TbelToken::End);
        };
        if next.is_alphabetic() || next == '_' || next == '$' {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
            {
                self.bump();
            }
            return Ok(TbelToken::Name(self.source[start..self.at].to_owned()));
        }
        let digit_follows = self.rest()[next.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        if next.is_ascii_digit() || (next == '.' && digit_follows) {
            return self.number();
        }
        if next == '"' || next == '\'' {
            return self.text(next);
        }
        match OPERATORS.iter().find(|op| self.rest().starts_with(**op)) {
            // `a ?.5 : b` is a condition, not a safe access.
            Some(&("?." | "?:")) if self.rest()[2..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.at += 1;
                Ok(TbelToken::Op("?"))
            }
            Some(op) => {
                self.at += op.len();
                Ok(TbelToken::Op(op))
            }
            None => {
                let pos = self.pos();
                self.error(pos, format!("unexpected character {next:?}"))
            }
        }
    }

    fn digits(&mut self, radix: u32) -> String {
        let mut digits = String::new();
        while let Some(next) = self.peek().filter(|c| c.is_digit(radix)) {
            digits.push(next);
            self.bump();
        }
        digits
    }

    fn number(&mut self) -> Result<TbelToken, SyntaxError> {
        let pos = self.pos();
        let lower = self.rest().get(..2).map(str::to_ascii_lowercase);
        let radix = match lower.as_deref() {
            Some("0x") => 16,
            Some("0b") => 2,
            _ => 10,
        };
        if radix != 10 {
            self.at += 2;
            let digits = self.digits(radix);
            let Ok(value) = u64::from_str_radix(&digits, radix) else {
                return self.error(pos, "the number is too large or has no digits");
            };
            // 0x80000000 and above fit no int; what fits no long is its two's complement.
            let value = value as i64;
            let long = self.peek().is_some_and(|c| matches!(c, 'L' | 'l'));
            if long {
                self.bump();
            }
            self.no_name_follows(pos)?;
            return Ok(TbelToken::Int(value.to_string()));
        }
        let mut text = self.digits(10);
        let mut double = false;
        let mut rest = self.rest().chars();
        if rest.next() == Some('.') && rest.next().is_some_and(|c| c.is_ascii_digit()) {
            self.bump();
            text.push('.');
            text.push_str(&self.digits(10));
            double = true;
        }
        if self.exponent_follows() {
            self.bump();
            text.push('e');
            if let Some(sign) = self.peek().filter(|c| matches!(c, '+' | '-')) {
                text.push(sign);
                self.bump();
            }
            text.push_str(&self.digits(10));
            double = true;
        }
        if let Some(suffix) = self.peek().filter(|c| "LlIiBbDdFf".contains(*c)) {
            self.bump();
            double |= "DdFf".contains(suffix);
        }
        self.no_name_follows(pos)?;
        if double {
            return match text.parse() {
                Ok(value) => Ok(TbelToken::Double(value)),
                Err(_) => self.error(pos, "the number cannot be read"),
            };
        }
        if text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b < b'8') {
            // As in Java, a leading zero means octal.
            let Ok(value) = i64::from_str_radix(&text, 8) else {
                return self.error(pos, "the number is too large");
            };
            return Ok(TbelToken::Int(value.to_string()));
        }
        match text.parse::<u64>() {
            // The largest is for -9223372036854775808, whose sign is an operator.
            Ok(value) if value <= 1 << 63 => Ok(TbelToken::Int(value.to_string())),
            _ => self.error(pos, format!("the number {text} is too large for a long")),
        }
    }

    fn exponent_follows(&self) -> bool {
        let mut rest = self.rest().chars();
        if !matches!(rest.next(), Some('e' | 'E')) {
            return false;
        }
        match rest.next() {
            Some('+' | '-') => rest.next().is_some_and(|c| c.is_ascii_digit()),
            other => other.is_some_and(|c| c.is_ascii_digit()),
        }
    }

    fn no_name_follows(&self, pos: SourcePosition) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(next) if next.is_alphanumeric() || next == '_' => {
                self.error(pos, "the number cannot be read")
            }
            _ => Ok(()),
        }
    }

    fn text(&mut self, quote: char) -> Result<TbelToken, SyntaxError> {
        let start = self.pos();
        self.bump();
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return self.error(start, "the text has no end"),
                Some(c) if c == quote => return Ok(TbelToken::Text(text)),
                Some('\\') => self.escape(&mut text)?,
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), SyntaxError> {
        let pos = self.pos();
        let Some(next) = self.bump() else {
            return self.error(pos, "the text has no end");
        };
        text.push(match next {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => return self.unicode(pos, text),
            '0'..='7' => {
                let mut code = next.to_digit(8).unwrap_or_default();
                let most = if next <= '3' { 2 } else { 1 };
                for _ in 0..most {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    code = code * 8 + digit;
                    self.bump();
                }
                char::from_u32(code).unwrap_or_default()
            }
            other => other,
        });
        Ok(())
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        let unit = u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| !digits.starts_with('+'))?;
        self.at += 4;
        Some(unit)
    }

    fn unicode(&mut self, pos: SourcePosition, text: &mut String) -> Result<(), SyntaxError> {
        let Some(mut code) = self.unit() else {
            return self.error(pos, "\\u needs four hexadecimal digits");
        };
        if (0xd800..0xdc00).contains(&code) && self.rest().starts_with("\\u") {
            let back = self.at;
            self.at += 2;
            match self.unit() {
                Some(low) if (0xdc00..0xe000).contains(&low) => {
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                }
                _ => self.at = back,
            }
        }
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }
}
