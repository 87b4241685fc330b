//! The part of PostgreSQL's regular expressions that clients of PuppetDB use: literals, `.`, classes,
//! anchors, groups, alternatives and quantifiers.
//!
//! Whether a text matches is all that is asked, so a match is a set of positions that moves through
//! the pattern. That needs no backtracking: the cost is bounded by pattern times text.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

use crate::fault::Fault;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Vec<Node>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Any,
    OneOf(Vec<Range>),
    NoneOf(Vec<Range>),
    Start,
    End,
    Group(Vec<Vec<Node>>),
    Repeat {
        node: Box<Node>,
        least: usize,
        most: Option<usize>,
    },
}

type Range = std::ops::RangeInclusive<char>;
type Positions = BTreeSet<usize>;

/// More repetitions than this are no pattern a sample needs to run.
const MOST_REPEATS: usize = 255;

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let mut input = text.chars().peekable();
        let alternatives = alternatives(&mut input, text)?;
        match input.next() {
            None => Ok(Self(alternatives)),
            Some(_) => Err(invalid("parentheses () not balanced")),
        }
    }

    /// Whether the pattern occurs anywhere in `text`.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let everywhere = (0..=text.len()).collect();
        !any(&self.0, &text, &everywhere).is_empty()
    }
}

fn any(alternatives: &[Vec<Node>], text: &[char], from: &Positions) -> Positions {
    let follow = |nodes: &Vec<Node>| {
        nodes
            .iter()
            .fold(from.clone(), |from, node| step(node, text, &from))
    };
    alternatives.iter().flat_map(follow).collect()
}

/// Where a match of `node` that begins at one of `from` can end.
fn step(node: &Node, text: &[char], from: &Positions) -> Positions {
    let advance = |wanted: &dyn Fn(&char) -> bool| {
        let hit = |at: &&usize| text.get(**at).is_some_and(wanted);
        from.iter().filter(hit).map(|at| at + 1).collect()
    };
    let stay = |place: usize| from.iter().copied().filter(|at| *at == place).collect();
    match node {
        Node::Any => advance(&|_| true),
        Node::OneOf(ranges) => advance(&|c| ranges.iter().any(|range| range.contains(c))),
        Node::NoneOf(ranges) => advance(&|c| !ranges.iter().any(|range| range.contains(c))),
        Node::Start => stay(0),
        Node::End => stay(text.len()),
        Node::Group(alternatives) => any(alternatives, text, from),
        Node::Repeat { node, least, most } => repeat(node, *least, *most, text, from),
    }
}

fn repeat(
    node: &Node,
    least: usize,
    most: Option<usize>,
    text: &[char],
    from: &Positions,
) -> Positions {
    let mut front = from.clone();
    for _ in 0..least {
        front = step(node, text, &front);
    }
    let mut reached = front.clone();
    let mut left = most.map(|most| most - least);
    while !front.is_empty() && left != Some(0) {
        front = &step(node, text, &front) - &reached;
        reached.extend(&front);
        left = left.map(|left| left - 1);
    }
    reached
}

type Input<'t> = Peekable<Chars<'t>>;

fn alternatives(input: &mut Input<'_>, whole: &str) -> Result<Vec<Vec<Node>>, Fault> {
    let mut all = vec![Vec::new()];
    while let Some(&next) = input.peek() {
        if next == ')' {
            break;
        }
        input.next();
        if next == '|' {
            all.push(Vec::new());
            continue;
        }
        let node = atom(next, input, whole)?;
        let node = quantified(node, input, whole)?;
        if let Some(last) = all.last_mut() {
            last.push(node);
        }
    }
    Ok(all)
}

fn atom(first: char, input: &mut Input<'_>, whole: &str) -> Result<Node, Fault> {
    Ok(match first {
        '.' => Node::Any,
        '^' => Node::Start,
        '$' => Node::End,
        '(' => {
            if input.next_if_eq(&'?').is_some() && input.next() != Some(':') {
                return Err(unsupported(whole));
            }
            let group = alternatives(input, whole)?;
            if input.next() != Some(')') {
                return Err(invalid("parentheses () not balanced"));
            }
            Node::Group(group)
        }
        '[' => bracket(input, whole)?,
        '*' | '+' | '?' => return Err(invalid("quantifier operand invalid")),
        '{' => return Err(unsupported(whole)),
        '\\' => escape(input, whole)?,
        literal => Node::OneOf(vec![literal..=literal]),
    })
}

fn escape(input: &mut Input<'_>, whole: &str) -> Result<Node, Fault> {
    let Some(c) = input.next() else {
        return Err(invalid("invalid escape \\ sequence"));
    };
    if let Some(ranges) = shorthand(c.to_ascii_lowercase()) {
        let negated = c.is_ascii_uppercase();
        return Ok(if negated {
            Node::NoneOf(ranges)
        } else {
            Node::OneOf(ranges)
        });
    }
    if c.is_alphanumeric() {
        return Err(unsupported(whole));
    }
    Ok(Node::OneOf(vec![c..=c]))
}

fn shorthand(c: char) -> Option<Vec<Range>> {
    match c {
        'd' => Some(vec!['0'..='9']),
        'w' => Some(vec!['0'..='9', 'A'..='Z', 'a'..='z', '_'..='_']),
        's' => Some(vec![' '..=' ', '\t'..='\r']),
        _ => None,
    }
}

fn bracket(input: &mut Input<'_>, whole: &str) -> Result<Node, Fault> {
    let negated = input.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        let open = invalid("brackets [] not balanced");
        let low = match input.next().ok_or(open)? {
            ']' if !ranges.is_empty() => break,
            '[' if matches!(input.peek(), Some(':' | '.' | '=')) => return Err(unsupported(whole)),
            '\\' => match input.next() {
                Some(c) if shorthand(c).is_some() => {
                    ranges.extend(shorthand(c).into_iter().flatten());
                    continue;
                }
                Some(c) if !c.is_alphanumeric() => c,
                _ => return Err(unsupported(whole)),
            },
            low => low,
        };
        let mut ahead = input.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                *input = ahead;
                high
            }
            _ => low,
        };
        if high == '\\' {
            return Err(unsupported(whole));
        }
        if low > high {
            return Err(invalid("invalid character range"));
        }
        ranges.push(low..=high);
    }
    Ok(if negated {
        Node::NoneOf(ranges)
    } else {
        Node::OneOf(ranges)
    })
}

fn quantified(node: Node, input: &mut Input<'_>, whole: &str) -> Result<Node, Fault> {
    let (least, most) = match input.peek() {
        Some('*') => (0, None),
        Some('+') => (1, None),
        Some('?') => (0, Some(1)),
        Some('{') => bounds(input, whole)?,
        _ => return Ok(node),
    };
    input.next();
    if matches!(input.peek(), Some('*' | '+' | '?' | '{')) {
        return Err(unsupported(whole));
    }
    let node = Box::new(node);
    Ok(Node::Repeat { node, least, most })
}

/// `{n}`, `{n,}` or `{n,m}`, up to the closing brace.
fn bounds(input: &mut Input<'_>, whole: &str) -> Result<(usize, Option<usize>), Fault> {
    input.next();
    let mut text = String::new();
    while let Some(c) = input.next_if(|c| *c != '}') {
        text.push(c);
    }
    let number = |text: &str| match text.parse() {
        Ok(number) if number <= MOST_REPEATS => Ok(number),
        _ => Err(unsupported(whole)),
    };
    let (least, most) = match text.split_once(',') {
        None => (number(&text)?, Some(number(&text)?)),
        Some((least, "")) => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    if most.is_some_and(|most| most < least) {
        return Err(invalid("invalid repetition count(s)"));
    }
    Ok((least, most))
}

fn invalid(why: &str) -> Fault {
    Fault::Refused(format!("ERROR: invalid regular expression: {why}"))
}

fn unsupported(pattern: &str) -> Fault {
    Fault::unsupported(format!("the regular expression {pattern}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_anywhere_unless_anchored() {
        for (pattern, yes, no) in [
            ("web", "my-web-1", "we-b"),
            ("^web", "web-1", "my-web"),
            ("web$", "my-web", "web-1"),
            ("^$", "", "x"),
            ("", "anything", "\u{0}never"),
            ("^a.c$", "a\nc", "ac"),
            ("^a*b+c?$", "bbc", "ac"),
            ("^(web|db)-[0-9]+$", "db-12", "mail-1"),
            ("^(a|b)*c$", "ababc", "abdc"),
            ("^(a*)*$", "aaa", "ab"),
            ("^[^a-c]$", "d", "b"),
            ("^[]x]$", "]", "y"),
            ("^[a\\-]$", "-", "b"),
            ("^[a-]$", "-", "b"),
            (r"\.example\.org$", "a.example.org", "aXexample.org"),
            (r"^\d{2,3}$", "123", "1234"),
            (r"^\w+\s\W$", "ab !", "ab c"),
            ("^x{2}$", "xx", "xxx"),
            ("^x{2,}$", "xxxx", "x"),
            ("^(?:ab)+$", "abab", "aba"),
            ("^\u{e9}+$", "\u{e9}\u{e9}", "e"),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            assert!(parsed.is_match(yes), "{pattern} on {yes}");
            assert!(
                pattern.is_empty() || !parsed.is_match(no),
                "{pattern} on {no}"
            );
        }
    }

    #[test]
    fn what_postgresql_refuses_is_refused_in_its_words() {
        for pattern in ["(", ")", "a)", "[a", "*a", "[b-a]", "a{3,2}", "\\"] {
            let Err(Fault::Refused(text)) = Pattern::parse(pattern) else {
                panic!("{pattern} is accepted");
            };
            assert!(
                text.starts_with("ERROR: invalid regular expression: "),
                "{text}"
            );
        }
    }

    #[test]
    fn forms_outside_the_subset_are_refused_not_guessed() {
        for pattern in [
            r"(a)\1",
            "(?=a)",
            "a*?",
            "[[:alpha:]]",
            r"\yweb",
            "a{,3}",
            "a{999}",
        ] {
            let Err(Fault::Refused(text)) = Pattern::parse(pattern) else {
                panic!("{pattern} is accepted");
            };
            assert!(text.contains("does not evaluate"), "{text}");
        }
    }

    #[test]
    fn nested_quantifiers_do_not_explode() {
        let pattern = Pattern::parse("^(a|a)*(a|aa)*b$").unwrap();
        assert!(!pattern.is_match(&"a".repeat(2000)));
    }
}
