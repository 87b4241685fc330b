//! The parameters of a query, from a query string or a JSON body.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::estate::Estate;
use crate::fault::Fault;
use crate::order::{self, Order};
use crate::render::Style;
use crate::schema::Entity;
use crate::select::Window;

/// Which parameters a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// Those of a collection.
    Paging,
    /// Those, and the window of distinct resources.
    Events,
    /// Those of events, and how to count them.
    Counts,
    /// Those without any effect on which rows there are.
    Record,
    Nothing,
}

const GENERAL: &[&str] = &[
    "optimize_drop_unused_joins",
    "include_facts_expiration",
    "include_package_inventory",
    "explain",
    "origin",
    "timeout",
    "pretty",
];
const PAGING: &[&str] = &["query", "limit", "offset", "order_by", "include_total"];
const DISTINCT: &[&str] = &[
    "distinct_resources",
    "distinct_start_time",
    "distinct_end_time",
];
const COUNTS: &[&str] = &["summarize_by", "count_by", "counts_filter"];

impl Accepts {
    fn names(self) -> Vec<&'static str> {
        let lists: &[&[&str]] = match self {
            Self::Paging => &[GENERAL, PAGING],
            Self::Events => &[GENERAL, PAGING, DISTINCT],
            Self::Counts => &[GENERAL, PAGING, DISTINCT, COUNTS],
            Self::Record => &[GENERAL],
            Self::Nothing => &[],
        };
        lists.concat()
    }
}

/// The parameters of one request, each at most once.
#[derive(Debug, Default)]
pub(crate) struct Params(BTreeMap<String, String>);

/// The PuppetDB versions that know `timeout` begin with 8.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timeout {
    Known,
    Unknown,
}

impl Timeout {
    /// What a PuppetDB of the estate's version makes of it.
    pub(crate) fn of(estate: &Estate) -> Self {
        if estate.is_at_least(8, 0) {
            Self::Known
        } else {
            Self::Unknown
        }
    }
}

impl Params {
    /// Reads a query string or a form. A value with a malformed percent-escape is lost, as in
    /// PuppetDB's own web server.
    pub(crate) fn from_form(form: &[u8]) -> Result<Self, Fault> {
        let mut params = Self::default();
        for pair in form.split(|byte| *byte == b'&') {
            if !is_well_escaped(pair) {
                continue;
            }
            for (name, value) in form_urlencoded::parse(pair) {
                params.insert(name.into_owned(), value.into_owned())?;
            }
        }
        Ok(params)
    }

    /// Reads the body of a POST: one JSON object, or nothing.
    pub(crate) fn from_body(body: &[u8]) -> Result<Self, Fault> {
        let mut params = Self::default();
        if body.trim_ascii().is_empty() {
            return Ok(params);
        }
        let text = String::from_utf8_lossy(body);
        let Value::Object(members) = parse_json(&text)? else {
            return Err(Fault::Refused("the body is no JSON object".to_owned()));
        };
        for (name, value) in members {
            let text = match (name.as_str(), value) {
                (_, Value::Null) => continue,
                ("order_by", Value::String(text)) => {
                    return Err(Fault::Refused(format!(
                        "Illegal value '{text}' for :order_by; expected an array of maps."
                    )));
                }
                (_, Value::String(text)) => text,
                (_, other) => other.to_string(),
            };
            params.insert(name, text)?;
        }
        Ok(params)
    }

    fn insert(&mut self, name: String, value: String) -> Result<(), Fault> {
        match self.0.insert(name, value) {
            None => Ok(()),
            Some(_) => Err(Fault::Broken(
                "class clojure.lang.PersistentVector cannot be cast to class java.lang.String"
                    .to_owned(),
            )),
        }
    }

    /// Refuses names that the route does not take, and the general ones that would change rows.
    pub(crate) fn check(&self, accepts: Accepts, timeout: Timeout) -> Result<(), Fault> {
        let known = accepts.names();
        let taken =
            |name: &str| known.contains(&name) && (name != "timeout" || timeout == Timeout::Known);
        if let Some(name) = self.0.keys().find(|name| !taken(name)) {
            return Err(Fault::Refused(format!(
                "Unsupported query parameter '{name}'"
            )));
        }
        for name in [
            "include_facts_expiration",
            "include_package_inventory",
            "distinct_resources",
        ] {
            if self.is_true(name) {
                return Err(Fault::unsupported(name));
            }
        }
        match self.text("explain") {
            Some("analyze") => Err(Fault::unsupported("explain")),
            Some(other) => Err(Fault::Refused(format!(
                "Illegal value '{other}' for :explain; expected `analyze`."
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The query as AST; absent, empty, blank and `null` all mean none.
    pub(crate) fn query(&self) -> Result<Option<Value>, Fault> {
        let text = self.text("query").unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(None);
        }
        parse_json(text).map(|ast| Some(ast).filter(|ast| !ast.is_null()))
    }

    /// The orders asked for; `None` if the parameter is absent.
    pub(crate) fn orders(&self, entity: Entity) -> Result<Option<Vec<Order>>, Fault> {
        let text = self.text("order_by");
        text.map(|text| order::parse(entity, text)).transpose()
    }

    pub(crate) fn window(&self) -> Result<Window, Fault> {
        let limit = match self.text("limit") {
            None => None,
            Some(text) => Some(integer(text).filter(|it| *it > 0).ok_or_else(|| {
                Fault::Refused(format!(
                    "Illegal value '{text}' for :limit; expected a positive non-zero integer."
                ))
            })?),
        };
        let offset = match self.text("offset") {
            None => 0,
            Some(text) => integer(text).ok_or_else(|| {
                Fault::Refused(format!(
                    "Illegal value '{text}' for :offset; expected a non-negative integer."
                ))
            })?,
        };
        Ok(Window { limit, offset })
    }

    /// Whether a boolean parameter is on; anything but `true`, in any case, is off.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.text(name)
            .is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn style(&self) -> Style {
        if self.is_true("pretty") {
            Style::Pretty
        } else {
            Style::Compact
        }
    }
}

fn is_well_escaped(pair: &[u8]) -> bool {
    let mut escapes = pair.split(|byte| *byte == b'%').skip(1);
    escapes.all(|tail| tail.len() >= 2 && tail[..2].iter().all(u8::is_ascii_hexdigit))
}

/// Java's `Integer.parseInt`, of what is not negative.
fn integer(text: &str) -> Option<usize> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i32>().ok()?.try_into().ok()
}

fn parse_json(text: &str) -> Result<Value, Fault> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let first = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(syntax(text, &error)),
        None => return Ok(Value::Null),
    };
    match values.next() {
        None => Ok(first),
        Some(Ok(_)) => Err(Fault::Refused(format!(
            "Only one query may be sent in a request. Found JSON {text}"
        ))),
        Some(Err(error)) => Err(syntax(text, &error)),
    }
}

/// PuppetDB's four parts: where, the line, a caret, why.
fn syntax(text: &str, error: &serde_json::Error) -> Fault {
    let (line, column) = (error.line(), error.column());
    let source = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let caret = " ".repeat(column.saturating_sub(1));
    Fault::Refused(format!(
        "Json parse error at line {line}, column {column}:\n\n{source}\n{caret}^\n\n{error}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T>(result: Result<T, Fault>) -> String {
        match result {
            Err(Fault::Refused(text)) => text,
            _ => String::new(),
        }
    }

    #[test]
    fn limits_and_offsets_are_java_integers() {
        for (text, limit) in [
            ("1", 1),
            ("+3", 3),
            ("03", 3),
            ("2147483647", 2_147_483_647),
        ] {
            let form = format!("limit={}", text.replace('+', "%2B"));
            let window = Params::from_form(form.as_bytes())
                .unwrap()
                .window()
                .unwrap();
            assert_eq!(window.limit, Some(limit), "{text}");
        }
        for text in ["", "0", "-1", "1.5", "1e2", "+2", "2147483648", "x"] {
            let params = Params::from_form(format!("limit={text}").as_bytes()).unwrap();
            let shown = text.replace('+', " ");
            assert_eq!(
                refusal(params.window()),
                format!(
                    "Illegal value '{shown}' for :limit; expected a positive non-zero integer."
                )
            );
        }
        let params = Params::from_form(b"offset=-1").unwrap();
        assert_eq!(
            refusal(params.window()),
            "Illegal value '-1' for :offset; expected a non-negative integer."
        );
    }

    #[test]
    fn each_route_names_the_parameter_it_does_not_take() {
        for (form, accepts, culprit) in [
            ("foo=1", Accepts::Paging, "foo"),
            ("Limit=1", Accepts::Paging, "Limit"),
            ("ast_only=true", Accepts::Paging, "ast_only"),
            ("summarize_by=certname", Accepts::Events, "summarize_by"),
            (
                "distinct_resources=false",
                Accepts::Paging,
                "distinct_resources",
            ),
            ("query=", Accepts::Record, "query"),
            ("pretty=true", Accepts::Nothing, "pretty"),
        ] {
            let params = Params::from_form(form.as_bytes()).unwrap();
            assert_eq!(
                refusal(params.check(accepts, Timeout::Known)),
                format!("Unsupported query parameter '{culprit}'")
            );
        }
        let params = Params::from_form(b"timeout=1").unwrap();
        assert!(params.check(Accepts::Paging, Timeout::Known).is_ok());
        assert!(params.check(Accepts::Paging, Timeout::Unknown).is_err());
    }

    #[test]
    fn a_repeated_parameter_is_a_server_error() {
        let repeated = Params::from_form(b"limit=1&limit=2");
        assert!(matches!(repeated, Err(Fault::Broken(_))));
    }

    #[test]
    fn a_query_is_one_json_value_or_nothing() {
        for text in ["", "query=", "query=+", "query=null", "query=%zz"] {
            let params = Params::from_form(text.as_bytes()).unwrap();
            assert_eq!(params.query(), Ok(None), "{text}");
        }
        let params = Params::from_form(b"query=nodes+%7B%7D").unwrap();
        let text = refusal(params.query());
        let parts: Vec<_> = text.split("\n\n").collect();
        assert!(
            text.starts_with("Json parse error at line 1, column "),
            "{text}"
        );
        assert_eq!(parts.len(), 3, "{text}");
        assert!(
            parts[1].starts_with("nodes {}\n ") && parts[1].ends_with('^'),
            "{text}"
        );
        let params = Params::from_form(b"query=%5B%22and%22%5D+%5B%5D").unwrap();
        assert!(refusal(params.query()).starts_with("Only one query may be sent"));
    }

    #[test]
    fn a_body_carries_typed_values() {
        let body = br#"{"query": ["=", "certname", "x"], "limit": 2, "offset": "1",
            "order_by": [{"field": "certname"}], "include_total": true, "pretty": null}"#;
        let params = Params::from_body(body).unwrap();
        assert_eq!(
            params.query(),
            Ok(Some(serde_json::json!(["=", "certname", "x"])))
        );
        assert_eq!(
            params.window(),
            Ok(Window {
                limit: Some(2),
                offset: 1
            })
        );
        assert_eq!(
            params.orders(Entity::Nodes).unwrap().map(|it| it.len()),
            Some(1)
        );
        assert!(params.is_true("include_total"));
        let text = refusal(Params::from_body(br#"{"order_by": "[]"}"#));
        assert!(text.contains("expected an array of maps."));
        assert!(Params::from_body(b" ").is_ok());
    }
}
