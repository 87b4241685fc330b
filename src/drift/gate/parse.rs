//! Reading a gate.

use super::{COUNTS, Comparison, Count, Gate, GateError, GateTrouble, Number};
use crate::drift::place;

/// How deep an expression may go.
const DEEPEST: usize = 64;

/// A word of an expression, with its column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token<'t> {
    column: usize,
    /// Empty at the end.
    text: &'t str,
}

pub(super) fn parse(text: &str, backends: &[String]) -> Result<Gate, GateError> {
    let mut parser = Parser {
        text,
        at: 0,
        backends,
    };
    let gate = parser.any(0)?;
    let rest = parser.next();
    if rest.text.is_empty() {
        Ok(gate)
    } else {
        Err(rest.instead_of("\"and\", \"or\" or the end"))
    }
}

impl Token<'_> {
    fn but(&self, why: GateTrouble) -> GateError {
        GateError {
            column: self.column,
            why,
        }
    }

    fn instead_of(&self, wanted: &'static str) -> GateError {
        let found = match self.text {
            "" => "the end".to_owned(),
            text => format!("{text:?}"),
        };
        self.but(GateTrouble::Unexpected { wanted, found })
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    backends: &'t [String],
}

impl<'t> Parser<'t> {
    fn any(&mut self, depth: usize) -> Result<Gate, GateError> {
        let mut gate = self.all(depth)?;
        while self.takes("or") {
            gate = Gate::Or(Box::new(gate), Box::new(self.all(depth)?));
        }
        Ok(gate)
    }

    fn all(&mut self, depth: usize) -> Result<Gate, GateError> {
        let mut gate = self.one(depth)?;
        while self.takes("and") {
            gate = Gate::And(Box::new(gate), Box::new(self.one(depth)?));
        }
        Ok(gate)
    }

    fn one(&mut self, depth: usize) -> Result<Gate, GateError> {
        let first = self.peek();
        if depth > DEEPEST {
            return Err(first.but(GateTrouble::TooDeep));
        }
        match first.text {
            "not" => {
                self.next();
                Ok(Gate::Not(Box::new(self.one(depth + 1)?)))
            }
            "(" => {
                self.next();
                let gate = self.any(depth + 1)?;
                self.closed()?;
                Ok(gate)
            }
            _ => {
                let left = self.number("a count, a number, \"not\" or \"(\"")?;
                let comparison = self.comparison()?;
                let right = self.number("a count or a number")?;
                Ok(Gate::Compare(left, comparison, right))
            }
        }
    }

    fn number(&mut self, wanted: &'static str) -> Result<Number, GateError> {
        let word = self.next();
        if word.text.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.text.parse::<u64>();
            return number.map(Number::Plain).map_err(|why| {
                use std::num::IntErrorKind::PosOverflow;
                match why.kind() {
                    PosOverflow => word.but(GateTrouble::TooLarge),
                    _ => word.instead_of(wanted),
                }
            });
        }
        if !word.text.starts_with(is_word) {
            return Err(word.instead_of(wanted));
        }
        let count = count(&word)?;
        if !self.takes("(") {
            return Ok(Number::OfAll(count));
        }
        let name = self.next();
        if !name.text.starts_with(is_word) {
            return Err(name.instead_of("the name of a backend"));
        }
        let backend = place(self.backends, name.text).ok_or_else(|| {
            name.but(GateTrouble::NoBackend {
                name: name.text.to_owned(),
                known: self.backends.join(", "),
            })
        })?;
        self.closed()?;
        Ok(Number::Of(count, backend))
    }

    fn comparison(&mut self) -> Result<Comparison, GateError> {
        let sign = self.next();
        match sign.text {
            "==" => Ok(Comparison::Equal),
            "!=" => Ok(Comparison::Unequal),
            "<" => Ok(Comparison::Less),
            "<=" => Ok(Comparison::AtMost),
            ">" => Ok(Comparison::More),
            ">=" => Ok(Comparison::AtLeast),
            _ => Err(sign.instead_of("one of == != < <= > >=")),
        }
    }

    fn closed(&mut self) -> Result<(), GateError> {
        let end = self.next();
        if end.text == ")" {
            Ok(())
        } else {
            Err(end.instead_of("\")\""))
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_it = self.peek().text == word;
        if is_it {
            self.next();
        }
        is_it
    }

    fn peek(&self) -> Token<'t> {
        let rest = &self.text[self.at..];
        let start = rest.find(|c: char| !c.is_whitespace());
        let start = self.at + start.unwrap_or(rest.len());
        let rest = &self.text[start..];
        let first = rest.chars().next();
        let length = match first {
            None => 0,
            Some(c) if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            Some('=' | '!' | '<' | '>') if rest[1..].starts_with('=') => 2,
            Some(c) => c.len_utf8(),
        };
        Token {
            column: self.text[..start].chars().count() + 1,
            text: &rest[..length],
        }
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        let rest = &self.text[self.at..];
        let blank = rest.len() - rest.trim_start().len();
        self.at += blank + token.text.len();
        token
    }
}

/// What numbers, counts and the names of backends are made of.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

fn count(word: &Token<'_>) -> Result<Count, GateError> {
    let known = COUNTS.iter().find(|(name, _)| *name == word.text);
    let no_count = || word.but(GateTrouble::NoCount(word.text.to_owned()));
    known.map(|(_, count)| *count).ok_or_else(no_count)
}
