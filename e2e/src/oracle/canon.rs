//! JSON in one spelling, so that equal values are equal text: keys in order, no blanks, numbers
//! as they were written.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::value::RawValue;

/// A JSON value whose numbers keep their text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as written.
    Number(String),
    /// A string, decoded.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Map(BTreeMap<String, Self>),
}

impl Json {
    /// Reads a whole text.
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(serde_json::from_str(text)?)
    }

    fn read(raw: &RawValue) -> Result<Self> {
        let text = raw.get();
        Ok(match text.as_bytes().first() {
            Some(b'{') => {
                let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| Ok((name, Self::read(value)?)));
                Self::Map(fields.collect::<Result<_>>()?)
            }
            Some(b'[') => {
                let elements: Vec<&RawValue> = serde_json::from_str(text)?;
                Self::List(
                    elements
                        .into_iter()
                        .map(Self::read)
                        .collect::<Result<_>>()?,
                )
            }
            Some(b'"') => Self::Text(serde_json::from_str(text)?),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'n') => Self::Null,
            _ => Self::Number(text.to_owned()),
        })
    }

    /// Elements of an array; `None` of anything else.
    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(elements) => Some(elements),
            _ => None,
        }
    }

    /// A member of an object; `None` where there is none.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(fields) => fields.get(name),
            _ => None,
        }
    }

    /// A string's text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The one spelling.
    pub fn spell(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(text) => out.push_str(text),
            Self::Text(text) => quote(out, text),
            Self::List(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Map(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    quote(out, name);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// JSON's own escapes.
fn quote(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_key_order_are_gone_and_numbers_keep_their_text() {
        let read = Json::parse(r#"{"b": [1.0, 9007199254740993 ], "a":"\u00e9\n"}"#).unwrap();
        assert_eq!(read.spell(), r#"{"a":"é\n","b":[1.0,9007199254740993]}"#);
    }
}
