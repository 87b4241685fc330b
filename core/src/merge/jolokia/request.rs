//! What a read asks for.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::rule::Place;

/// The names by which a read's numbers are combined. A bare value carries none (T69).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadRequest {
    /// Name of the MBean, or a pattern; empty if not known.
    mbean: String,
    /// Name of the attribute or, after an inner path, its last part; empty if the whole MBean is
    /// read. Several attributes are answered by an object, which names them itself.
    name: String,
}

impl ReadRequest {
    /// Reads a raw path below `/metrics/v2/read/`: `<mbean>[/<attribute>[/<inner path>]]`.
    pub fn from_path(raw: &str) -> Self {
        let parts = parts(&percent_decode_str(raw).decode_utf8_lossy());
        Self::of_parts(parts.into_iter())
    }

    /// Reads the member `request` of an answer. What it does not say stays unknown.
    pub(super) fn from_json(raw: &str) -> Self {
        let said = serde_json::from_str(raw).unwrap_or(Value::Null);
        let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
        let inner = parts(text("path"));
        let names = [text("mbean"), text("attribute")].map(str::to_owned);
        Self::of_parts(names.into_iter().chain(inner))
    }

    /// Name of the MBean, or a pattern; empty if not known.
    pub(crate) fn mbean(&self) -> &str {
        &self.mbean
    }

    fn of_parts(mut parts: impl Iterator<Item = String>) -> Self {
        Self {
            mbean: parts.next().unwrap_or_default(),
            name: parts.last().unwrap_or_default(),
        }
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.mbean.is_empty()
    }

    /// Where the value of the answer stands.
    pub(super) fn place(&self) -> Place<'_> {
        if self.mbean.contains(['*', '?']) {
            Place::MBeans
        } else {
            Place::of_mbean(&self.mbean, &self.name)
        }
    }
}

/// Cuts a path, percent-decoded already, into its parts. `!` makes the next character an ordinary
/// one; empty parts at the ends are none.
fn parts(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = path.trim_start_matches('/').chars();
    while let Some(char) = chars.next() {
        match (char, parts.last_mut()) {
            ('/', _) => parts.push(String::new()),
            ('!', Some(part)) => part.extend(chars.next()),
            (_, Some(part)) => part.push(char),
            (_, None) => {}
        }
    }
    while parts.pop_if(|part| part.is_empty()).is_some() {}
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jolokia_paths_are_cut_where_jolokia_cuts_them() {
        for (path, expected) in [
            ("", &[] as &[&str]),
            ("/", &[]),
            ("a:b=c", &["a:b=c"]),
            ("a:b=c/Value", &["a:b=c", "Value"]),
            ("a:b=c/Value/", &["a:b=c", "Value"]),
            ("a:b=c//x", &["a:b=c", "", "x"]),
            ("a:name=!/pdb!/query/Max", &["a:name=/pdb/query", "Max"]),
            ("a!!/b", &["a!", "b"]),
            ("a!\"b/c!", &["a\"b", "c"]),
            ("é!/ü/ß", &["é/ü", "ß"]),
        ] {
            assert_eq!(parts(path), expected, "{path}");
        }
    }

    #[test]
    fn t69_the_last_part_of_the_path_names_the_value() {
        for (path, mbean, name) in [
            ("java.lang:type=Runtime", "java.lang:type=Runtime", ""),
            (
                "java.lang%3Atype%3DRuntime/Uptime",
                "java.lang:type=Runtime",
                "Uptime",
            ),
            (
                "java.lang:type=Memory/HeapMemoryUsage/max",
                "java.lang:type=Memory",
                "max",
            ),
            (
                "a:name=%21%2Fpdb%21%2Fquery/Max",
                "a:name=/pdb/query",
                "Max",
            ),
            ("a:b=%FF", "a:b=\u{fffd}", ""),
        ] {
            let expected = ReadRequest {
                mbean: mbean.into(),
                name: name.into(),
            };
            assert_eq!(ReadRequest::from_path(path), expected, "{path}");
        }
    }

    #[test]
    fn t69_an_answer_that_echoes_its_request_names_the_value_too() {
        for (json, mbean, name) in [
            (r#"{"mbean":"a:b=c","type":"read"}"#, "a:b=c", ""),
            (
                r#"{"mbean":"a:b=c","attribute":"Uptime"}"#,
                "a:b=c",
                "Uptime",
            ),
            (r#"{"mbean":"a:b=c","attribute":["x","y"]}"#, "a:b=c", ""),
            (
                r#"{"mbean":"a:b=c","attribute":"x","path":"y\/z!\/1"}"#,
                "a:b=c",
                "z/1",
            ),
            (r#"{"mbean":1}"#, "", ""),
            ("[]", "", ""),
        ] {
            let expected = ReadRequest {
                mbean: mbean.into(),
                name: name.into(),
            };
            assert_eq!(ReadRequest::from_json(json), expected, "{json}");
        }
    }
}
