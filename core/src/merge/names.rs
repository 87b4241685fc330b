//! Lists of names become one sorted list.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::damage::{Damage, Damaged, sift};
use crate::json::{quote, unquote};
use crate::paging::Direction;

/// Every name of several lists, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names<'b> {
    /// The names as JSON strings, quotes included, each spelled as the first backend that lists it
    /// spells it. `None` if no body was a list: that is no answer, not an empty one.
    pub names: Option<Vec<Cow<'b, str>>>,
    /// The bodies that were not arrays of strings.
    pub damaged: Damaged,
}

/// Unites the bodies of `/fact-names`, given in configured order (R086, R087), and lists them by
/// bytes in one direction (ruling 8).
///
/// Names are the same if their characters are, however they are escaped. `extra` is the name of the
/// source fact while it is injected: it is listed once, whether a backend has it or not (R091,
/// R092). The whole union is returned; its length is the total (R090) and the window is cut
/// afterwards (R089).
pub fn union<'b>(bodies: &[&'b [u8]], direction: Direction, extra: Option<&str>) -> Names<'b> {
    let (lists, damaged) = sift(bodies, read);
    if lists.is_empty() {
        return Names {
            names: None,
            damaged,
        };
    }
    let mut spellings = BTreeMap::new();
    for (name, spelling) in lists.into_iter().flat_map(|(_, list)| list) {
        spellings.entry(name).or_insert(Cow::Borrowed(spelling));
    }
    if let Some(extra) = extra {
        let name = Cow::Owned(extra.to_owned());
        spellings
            .entry(name)
            .or_insert_with(|| Cow::Owned(quote(extra)));
    }
    let sorted = spellings.into_values();
    let names = match direction {
        Direction::Asc => sorted.collect(),
        Direction::Desc => sorted.rev().collect(),
    };
    Names {
        names: Some(names),
        damaged,
    }
}

/// The names of one body, each with its spelling.
fn read(body: &[u8]) -> Result<Vec<(Cow<'_, str>, &str)>, Damage> {
    let raw: Vec<&RawValue> =
        serde_json::from_slice(body).map_err(|error| Damage::of(&error, Damage::NotNames))?;
    raw.into_iter()
        .map(|raw| Some((unquote(raw.get().as_bytes())?, raw.get())))
        .collect::<Option<_>>()
        .ok_or(Damage::NotNames)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(bodies: &[&str], direction: Direction, extra: Option<&str>) -> Option<String> {
        let bodies: Vec<&[u8]> = bodies.iter().map(|body| body.as_bytes()).collect();
        let names = union(&bodies, direction, extra).names?;
        Some(names.join(","))
    }

    #[test]
    fn r086_each_name_is_listed_once_and_r087_in_the_order_asked() {
        let bodies = [r#"["os","networking"]"#, "[ \"uptime\" ,\n\"os\"]", "[]"];
        for (direction, expected) in [
            (Direction::Asc, r#""networking","os","uptime""#),
            (Direction::Desc, r#""uptime","os","networking""#),
        ] {
            assert_eq!(listed(&bodies, direction, None).as_deref(), Some(expected));
        }
    }

    #[test]
    fn names_are_compared_unescaped_and_spelled_as_by_the_first() {
        let bodies = [r#"["a\/b","\u00e9"]"#, r#"["a/b","é","Z"]"#];
        let expected = r#""Z","a\/b","\u00e9""#;
        assert_eq!(
            listed(&bodies, Direction::Asc, None).as_deref(),
            Some(expected)
        );
    }

    #[test]
    fn r091_the_source_name_is_listed_once_even_if_a_backend_has_such_a_fact() {
        for bodies in [
            [r#"["a","z"]"#, "[]"],
            [r#"["a","z","src"]"#, r#"["src","a"]"#],
        ] {
            let expected = r#""a","src","z""#;
            assert_eq!(
                listed(&bodies, Direction::Asc, Some("src")).as_deref(),
                Some(expected)
            );
        }
        let odd = listed(&["[]"], Direction::Asc, Some("a\"b"));
        assert_eq!(odd.as_deref(), Some(r#""a\"b""#));
    }

    #[test]
    fn r092_without_injection_nothing_is_added() {
        assert_eq!(
            listed(&[r#"["a"]"#], Direction::Asc, None).as_deref(),
            Some("\"a\"")
        );
    }

    #[test]
    fn a_body_that_is_no_array_of_strings_is_damaged_whole() {
        for (body, damage) in [
            ("{}", Damage::NotNames),
            ("\"a\"", Damage::NotNames),
            (r#"["a",1]"#, Damage::NotNames),
            (r#"["\ud800"]"#, Damage::NotNames),
            (r#"["a","b"#, Damage::Malformed { line: 1, column: 7 }),
            ("<html>", Damage::Malformed { line: 1, column: 1 }),
            ("", Damage::Malformed { line: 1, column: 0 }),
        ] {
            let merged = union(&[b"[\"x\"]", body.as_bytes()], Direction::Asc, None);
            assert_eq!(merged.damaged, [(1, damage)], "{body}");
            assert_eq!(merged.names, Some(vec![Cow::Borrowed("\"x\"")]), "{body}");
        }
    }

    #[test]
    fn no_list_at_all_is_no_answer_even_with_the_source_name() {
        assert_eq!(listed(&["{}"], Direction::Asc, Some("src")), None);
        assert_eq!(listed(&[], Direction::Asc, Some("src")), None);
    }
}
