//! The query string of a request: read once, forwarded as it came but for what a plan changes.

pub mod body;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::Refusal;

/// More parameters than this are refused: no client comes near it, PuppetDB's web server draws the
/// same line for forms, and each of them is compared with all others.
const MOST: usize = 1000;

/// The parameters of a request, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params<'r> {
    pairs: Vec<Pair<'r>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pair<'r> {
    raw: &'r str,
    name: Cow<'r, str>,
    value: Cow<'r, str>,
}

impl<'r> Params<'r> {
    /// Reads a raw query string, without its `?`.
    ///
    /// A malformed percent-escape is refused: PuppetDB drops such a value silently and answers as
    /// if there were no filter (trap T61). Bytes that are no UTF-8 become U+FFFD, as in PuppetDB.
    pub fn read(raw: &'r str) -> Result<Self, Refusal> {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.take(MOST + 1).map(Pair::read);
        let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
        if pairs.len() > MOST {
            return Err(Refusal::TooManyParameters { limit: MOST });
        }
        Ok(Self { pairs })
    }

    /// The value of `name`, if it was given exactly once.
    ///
    /// A repeated parameter is an error to PuppetDB; it is forwarded as it came (ruling 13) and
    /// decides nothing here.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.pairs.iter().filter(|pair| pair.name == name);
        match (found.next(), found.next()) {
            (Some(pair), None) => Some(&pair.value),
            _ => None,
        }
    }

    /// Whether `name` holds `true` in any case, PuppetDB's rule for boolean parameters.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The pairs to forward, each by its name and as it is written: those that `changes` does not
    /// name as they came, then the changed ones that have a value. A repeated parameter is not
    /// changed (ruling 13).
    pub(crate) fn forward(&self, changes: &[(&str, Option<String>)]) -> Vec<(String, String)> {
        let changes = || changes.iter().filter(|(name, _)| !self.repeats(name));
        let kept = self
            .pairs
            .iter()
            .filter(|pair| !changes().any(|(name, _)| *name == pair.name));
        let kept = kept.map(|pair| (pair.name.clone().into_owned(), pair.raw.to_owned()));
        let set = changes().filter_map(|(name, value)| {
            Some(((*name).to_owned(), encode(name, value.as_deref()?)))
        });
        kept.chain(set).collect()
    }

    /// The parameters in one canonical spelling, sorted by name and then by value (R204), without
    /// those in `left_out`. A repeated parameter is never left out: it is forwarded as it came.
    pub(crate) fn canonical(&self, left_out: &[&str]) -> String {
        let mut kept: Vec<(&str, &str)> = self
            .pairs()
            .filter(|(name, _)| !left_out.contains(name) || self.repeats(name))
            .collect();
        kept.sort_unstable();
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .finish()
    }

    /// Names and values, decoded, in their order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|pair| (&*pair.name, &*pair.value))
    }

    fn repeats(&self, name: &str) -> bool {
        self.pairs
            .iter()
            .filter(|pair| pair.name == name)
            .nth(1)
            .is_some()
    }
}

impl<'r> Pair<'r> {
    fn read(raw: &'r str) -> Result<Self, Refusal> {
        let (name, value) = raw.split_once('=').unwrap_or((raw, ""));
        let decoded = |text| {
            decode(text).ok_or_else(|| Refusal::MalformedEscape {
                parameter: name.to_owned(),
            })
        };
        Ok(Self {
            raw,
            name: decoded(name)?,
            value: decoded(value)?,
        })
    }
}

/// A `name=value` pair in form encoding.
pub(crate) fn encode(name: &str, value: &str) -> String {
    form_urlencoded::Serializer::new(String::new())
        .append_pair(name, value)
        .finish()
}

/// Decodes form encoding; `None` if an escape is malformed.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !escapes_are_whole(text) {
        return None;
    }
    if !text.contains(['+', '%']) {
        return Some(Cow::Borrowed(text));
    }
    let spaced = text.replace('+', " ");
    Some(Cow::Owned(
        percent_decode_str(&spaced).decode_utf8_lossy().into_owned(),
    ))
}

/// Whether each `%` is followed by two hexadecimal digits.
pub(crate) fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(params: &Params<'_>, changes: &[(&str, Option<String>)]) -> Vec<String> {
        params
            .forward(changes)
            .into_iter()
            .map(|(_, raw)| raw)
            .collect()
    }

    #[test]
    fn values_are_form_decoded() {
        let params = Params::read("query=%5B%22%3D%22+%5d&limit=%2B3&flag&x=%ff").unwrap();
        assert_eq!(params.get("query"), Some("[\"=\" ]"));
        assert_eq!(params.get("limit"), Some("+3"));
        assert_eq!(params.get("flag"), Some(""));
        assert_eq!(params.get("x"), Some("\u{fffd}"));
        assert_eq!(params.get("y"), None);
    }

    #[test]
    fn t61_a_malformed_escape_is_refused_by_name() {
        for raw in ["query=%zz", "a=1&query=%", "query=abc%4", "query=%%41"] {
            let refusal = Params::read(raw).unwrap_err();
            assert_eq!(
                refusal.to_string(),
                "the parameter 'query' holds a malformed percent-escape"
            );
        }
    }

    #[test]
    fn there_is_an_end_to_parameters() {
        let many = |count: usize| vec!["a=1"; count].join("&");
        assert!(Params::read(&many(1000)).is_ok());
        let refusal = Params::read(&many(1001)).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "the request has more than 1000 parameters"
        );
    }

    #[test]
    fn r005_what_is_not_changed_is_forwarded_as_it_came() {
        let params = Params::read("query=%5b%5D+&limit=1&origin=a%20b&x&").unwrap();
        assert_eq!(
            forwarded(&params, &[]),
            ["query=%5b%5D+", "limit=1", "origin=a%20b", "x"]
        );
        let changes = [
            ("limit", Some("7".to_owned())),
            ("offset", None),
            ("query", Some("[\"é\"]".into())),
        ];
        assert_eq!(
            forwarded(&params, &changes),
            ["origin=a%20b", "x", "limit=7", "query=%5B%22%C3%A9%22%5D"]
        );
    }

    #[test]
    fn ruling_13_a_repeated_parameter_decides_nothing_and_stays_as_it_came() {
        let params = Params::read("limit=1&offset=3&lim%69t=2").unwrap();
        assert_eq!(params.get("limit"), None);
        let changes = [("limit", Some("7".to_owned())), ("offset", None)];
        assert_eq!(forwarded(&params, &changes), ["limit=1", "lim%69t=2"]);
    }

    #[test]
    fn booleans_are_true_in_any_case_only() {
        for (raw, expected) in [
            ("true", true),
            ("TRUE", true),
            ("1", false),
            ("", false),
            ("yes", false),
        ] {
            let text = format!("include_total={raw}");
            assert_eq!(
                Params::read(&text).unwrap().is_true("include_total"),
                expected,
                "{raw}"
            );
        }
    }
}
