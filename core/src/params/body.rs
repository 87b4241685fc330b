//! Parameters in a body, and the query string that says the same.

use crate::json::{Kind, kind, quote};
use crate::params::Params;

/// What PuppetDB takes for a parameter in a JSON body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// An array alone, where a query string has its text.
    Array,
    /// A number, or its text.
    Number,
    /// A boolean, or its text.
    Bool,
    /// Text.
    Text,
}

impl Takes {
    fn of(name: &str) -> Self {
        match name {
            "order_by" | "counts_filter" => Self::Array,
            "limit" | "offset" => Self::Number,
            "ast_only"
            | "distinct_resources"
            | "include_facts_expiration"
            | "include_package_inventory"
            | "include_total"
            | "optimize_drop_unused_joins"
            | "pretty" => Self::Bool,
            _ => Self::Text,
        }
    }
}

/// The parameters as the JSON object that a POST carries; `None` if there is none that says the
/// same: a name may repeat, or what must be an array be something else.
///
/// A query stays text, which PuppetDB reads as it reads that of a GET.
pub(crate) fn to_json(params: &Params<'_>) -> Option<String> {
    let mut members: Vec<String> = Vec::new();
    for (name, value) in params.pairs() {
        params.get(name)?;
        let value = match Takes::of(name) {
            Takes::Array => is_array(value).then(|| value.to_owned())?,
            Takes::Number if is_plain_number(value) => value.to_owned(),
            Takes::Bool => value.eq_ignore_ascii_case("true").to_string(),
            Takes::Number | Takes::Text => quote(value),
        };
        members.push(format!("{}:{value}", quote(name)));
    }
    Some(format!("{{{}}}", members.join(",")))
}

/// Whether `text` is one JSON array, by the full grammar.
fn is_array(text: &str) -> bool {
    kind(text.trim_ascii_start().as_bytes()) == Kind::Array
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

/// Whether `text` is a whole number as JSON writes it, of a size that every reader takes. What a
/// backend refuses is left as text, for it to refuse in the words that it has for text.
fn is_plain_number(text: &str) -> bool {
    text.parse::<u32>()
        .is_ok_and(|number| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(query: &str) -> Option<String> {
        to_json(&Params::read(query).unwrap())
    }

    #[test]
    fn parameters_become_an_object_of_the_types_that_puppetdb_takes() {
        for (query, expected) in [
            ("", "{}"),
            (
                "query=%5B%22%3D%22,1.0e5%5D+",
                r#"{"query":"[\"=\",1.0e5] "}"#,
            ),
            ("query=nodes+%7B%7D", r#"{"query":"nodes {}"}"#),
            ("query=null&x=%ff", r#"{"query":"null","x":"�"}"#),
            (
                "order_by=[%7B%22field%22:%22name%22%7D]&counts_filter=+[%22%3E%22,1]",
                r#"{"order_by":[{"field":"name"}],"counts_filter": [">",1]}"#,
            ),
            ("limit=7&offset=0", r#"{"limit":7,"offset":0}"#),
            (
                "include_total=TRUE&pretty=1&distinct_resources=",
                r#"{"include_total":true,"pretty":false,"distinct_resources":false}"#,
            ),
            (
                "origin=true&timeout=10&a%22b=c&=d",
                r#"{"origin":"true","timeout":"10","a\"b":"c","":"d"}"#,
            ),
        ] {
            assert_eq!(json(query).as_deref(), Some(expected), "{query}");
        }
    }

    #[test]
    fn a_number_that_json_writes_otherwise_stays_text() {
        for text in ["%2B3", "03", "", "-1", "1.5", "1e2", "+2", "99999999999"] {
            let shown = Params::read(&format!("x={text}"))
                .unwrap()
                .get("x")
                .map(quote)
                .unwrap();
            let expected = format!(r#"{{"limit":{shown}}}"#);
            assert_eq!(json(&format!("limit={text}")), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_no_object_can_say_has_none() {
        for query in [
            "query=a&query=b",
            "limit=1&a=1&limit=1",
            "order_by=",
            "order_by=null",
            "order_by={}",
            "order_by=[]]",
            "order_by=[01]",
            "order_by=certname",
            "counts_filter=x",
        ] {
            assert_eq!(json(query), None, "{query}");
        }
    }
}
