//! Parameters in a body, and the query string that says the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::Refusal;
use crate::json::{Kind, kind, quote, unquote};
use crate::params::Params;

/// What PuppetDB takes for a parameter in a JSON body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// AST as an array, or a query's text.
    Query,
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
            "query" => Self::Query,
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

/// The query string that says what `body` says, the JSON object of a POST; a blank body says nothing.
///
/// A value is the text that a URL would hold: that of a string, else the JSON as it is written, so
/// that no number of a query changes. `null` counts as absent, and of a repeated name the last, as
/// in PuppetDB. An object has no order, so the names are sorted.
pub fn from_json(body: &[u8]) -> Result<String, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(String::new());
    }
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_slice(body).map_err(|error| not_an_object(&error))?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in &members {
        if let Some(value) = text(name, value.get())? {
            query.append_pair(name, &value);
        }
    }
    Ok(query.finish())
}

fn not_an_object(error: &serde_json::Error) -> Refusal {
    let problem = match error.classify() {
        // The reader's own words repeat the whole value.
        Category::Data => "it is JSON of another kind".to_owned(),
        Category::Io | Category::Syntax | Category::Eof => error.to_string(),
    };
    Refusal::BodyNotAnObject { problem }
}

/// The text that says in a URL what the JSON `raw` says in a body; `None` for `null`.
fn text<'r>(name: &str, raw: &'r str) -> Result<Option<Cow<'r, str>>, Refusal> {
    match (Takes::of(name), kind(raw.as_bytes())) {
        (_, Kind::Null) => Ok(None),
        (Takes::Array | Takes::Query, Kind::Array) => Ok(Some(raw.into())),
        (Takes::Array, _) => Err(Refusal::BodyNotAnArray {
            name: name.to_owned(),
        }),
        (_, Kind::String) => match unquote(raw.as_bytes()) {
            Some(text) => Ok(Some(text)),
            None => Err(Refusal::BodyNotUnicode {
                name: name.to_owned(),
            }),
        },
        (Takes::Query, _) => Err(Refusal::BodyQuery),
        // A backend says of these what it takes.
        (Takes::Number | Takes::Bool | Takes::Text, _) => Ok(Some(raw.into())),
    }
}

/// The query string of a GET whose body is a form: what its URL says and what the form says.
///
/// A form may hold bytes that no URL may, so it is encoded anew.
pub fn from_form(url: &str, form: &[u8]) -> Result<String, Refusal> {
    let form = String::from_utf8_lossy(form);
    let form = Params::read(&form)?;
    let form = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form.pairs())
        .finish();
    let parts = [url, &form].into_iter().filter(|part| !part.is_empty());
    Ok(parts.collect::<Vec<_>>().join("&"))
}

/// The parameters as the JSON object that a POST carries; `None` if there is none that says the
/// same: a name may repeat, or what must be an array be something else.
///
/// A query stays text, which PuppetDB reads as it reads that of a GET.
pub fn to_json(params: &Params<'_>) -> Option<String> {
    let mut members: Vec<String> = Vec::new();
    for (name, value) in params.pairs() {
        params.get(name)?;
        let value = match Takes::of(name) {
            Takes::Array => is_array(value).then(|| value.to_owned())?,
            Takes::Number if is_plain_number(value) => value.to_owned(),
            Takes::Bool => value.eq_ignore_ascii_case("true").to_string(),
            Takes::Query | Takes::Number | Takes::Text => quote(value),
        };
        members.push(format!("{}:{value}", quote(name)));
    }
    Some(format!("{{{}}}", members.join(",")))
}

/// Whether `text` is one JSON array, by the full grammar.
fn is_array(text: &str) -> bool {
    kind(text.trim_ascii_start().as_bytes()) == Kind::Array
        && serde_json::from_str::<&RawValue>(text).is_ok()
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

    fn query(body: &str) -> Result<String, String> {
        from_json(body.as_bytes()).map_err(|refusal| refusal.to_string())
    }

    /// What a body says of one parameter.
    fn value(name: &str, json: &str) -> Option<String> {
        let query = query(&format!("{{\"{name}\":{json}}}")).unwrap();
        let params = Params::read(&query).unwrap();
        params.get(name).map(str::to_owned)
    }

    #[test]
    fn a_body_that_says_nothing_is_no_parameters() {
        for body in [
            "",
            " \r\n\t",
            "{}",
            " { } ",
            r#"{"query":null,"limit":null}"#,
        ] {
            assert_eq!(query(body).as_deref(), Ok(""), "{body}");
        }
    }

    #[test]
    fn a_member_is_the_parameter_that_a_url_would_hold() {
        for (name, json, expected) in [
            (
                "query",
                r#""nodes { certname ~ \"a+b&c=d\" }""#,
                r#"nodes { certname ~ "a+b&c=d" }"#,
            ),
            ("query", r#""[\"=\", \"a\", 1.0]""#, r#"["=", "a", 1.0]"#),
            ("query", r#""null""#, "null"),
            ("query", r#""""#, ""),
            // Not a digit, blank or escape of AST changes.
            (
                "query",
                "[\"=\",\n\t\"a\\u0062\", 1.50e+3]",
                "[\"=\",\n\t\"a\\u0062\", 1.50e+3]",
            ),
            (
                "query",
                "[12345678901234567890.0]",
                "[12345678901234567890.0]",
            ),
            (
                "order_by",
                r#"[ {"field" : "certname"} ]"#,
                r#"[ {"field" : "certname"} ]"#,
            ),
            (
                "counts_filter",
                r#"[">","failures",0]"#,
                r#"[">","failures",0]"#,
            ),
            ("limit", "3", "3"),
            ("limit", r#""+3""#, "+3"),
            ("limit", "1.0", "1.0"),
            ("include_total", "true", "true"),
            ("include_total", r#""TRUE""#, "TRUE"),
            ("summarize_by", r#""certname""#, "certname"),
            ("origin", r#""\u00e9\ud83d\ude00 é""#, "é😀 é"),
            ("nosuch", r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        ] {
            assert_eq!(
                value(name, json).as_deref(),
                Some(expected),
                "{name}: {json}"
            );
        }
    }

    #[test]
    fn names_are_sorted_and_the_last_of_a_repeated_name_counts() {
        let body = r#"{"query":"a","limit":1,"\u0071uery":"b","x":1,"x":null}"#;
        assert_eq!(query(body).as_deref(), Ok("limit=1&query=b"));
    }

    #[test]
    fn what_puppetdb_takes_as_an_array_alone_is_refused_as_anything_else() {
        for name in ["order_by", "counts_filter"] {
            for json in [r#""[]""#, r#""""#, "{}", "1", "true"] {
                assert_eq!(
                    query(&format!("{{\"{name}\":{json}}}")),
                    Err(format!("'{name}' takes an array in a body"))
                );
            }
        }
    }

    #[test]
    fn a_bad_body_is_refused_in_one_sentence() {
        let object = "a POST holds its parameters in a JSON object, which this body is not: ";
        for (body, expected) in [
            ("[]", "it is JSON of another kind"),
            ("null", "it is JSON of another kind"),
            ("\"query\"", "it is JSON of another kind"),
            ("query=x", "expected value at line 1 column 1"),
            ("{", "EOF while parsing an object at line 1 column 1"),
            ("{}{}", "trailing characters at line 1 column 3"),
            ("{\"query\":\"x\",}", "trailing comma at line 1 column 14"),
            ("{\"query\":[01]}", "invalid number at line 1 column 12"),
            ("\u{feff}{}", "expected value at line 1 column 1"),
        ] {
            assert_eq!(query(body), Err(format!("{object}{expected}")), "{body}");
        }
        let refusal = from_json(b"{\"query\":\"\xff\"}").unwrap_err();
        assert!(refusal.to_string().starts_with(object), "{refusal}");
        for json in ["1", "true", "{}"] {
            assert_eq!(
                query(&format!("{{\"query\":{json}}}")),
                Err("'query' takes an array or text in a body".to_owned())
            );
        }
        assert_eq!(
            query(r#"{"origin":"\ud800"}"#),
            Err("'origin' holds an escape that stands for no character".to_owned())
        );
    }

    #[test]
    fn a_form_adds_to_the_url_and_is_encoded_so_that_a_url_can_hold_it() {
        let form = |url: &str, form: &[u8]| from_form(url, form).map_err(|it| it.to_string());
        for (url, body, expected) in [
            ("", "query=null", "query=null"),
            ("limit=1", "", "limit=1"),
            ("limit=%31&x", "offset=2", "limit=%31&x&offset=2"),
            ("limit=1", "limit=2", "limit=1&limit=2"),
            (
                "",
                "query=[\"=\", \"é\"]\n&a",
                "query=%5B%22%3D%22%2C+%22%C3%A9%22%5D%0A&a=",
            ),
            (
                "",
                "query=%5B%22a%20b%22%5D&query=b",
                "query=%5B%22a+b%22%5D&query=b",
            ),
        ] {
            assert_eq!(
                form(url, body.as_bytes()).as_deref(),
                Ok(expected),
                "{url} {body}"
            );
        }
        assert_eq!(form("", b"x=\xff").as_deref(), Ok("x=%EF%BF%BD"));
        assert_eq!(
            form("", b"query=%zz"),
            Err("the parameter 'query' holds a malformed percent-escape".to_owned())
        );
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
