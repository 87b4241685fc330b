//! Replaying a backend's refusal without telling where the backend is.

use std::borrow::Cow;

/// What stands in the place of an address.
const STAND_IN: &str = "puppetdb";

/// The spellings of all backends' addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// In lower case, the longest first: a URL is replaced as one, not host by host.
    spellings: Vec<String>,
}

impl Addresses {
    /// `spellings` as they are configured, the longest first.
    pub(crate) fn new(spellings: impl IntoIterator<Item = String>) -> Self {
        Self {
            spellings: spellings
                .into_iter()
                .map(|text| text.to_ascii_lowercase())
                .collect(),
        }
    }

    /// `text` with every address replaced (R018), in whatever case and however it is escaped.
    pub(crate) fn strip<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut stripped = Cow::Borrowed(text);
        for spelling in &self.spellings {
            if let Some(replaced) = replace(&stripped, spelling) {
                stripped = Cow::Owned(replaced);
            }
        }
        stripped
    }
}

/// `text` with each occurrence of `spelling` replaced, or `None` if there is none.
fn replace(text: &str, spelling: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        let length = occurs(&text[at..], spelling)
            .filter(|length| stands_alone(&text[..at], &text[at + length..], spelling));
        match length {
            Some(length) => {
                out.push_str(&text[copied..at]);
                out.push_str(STAND_IN);
                at += length;
                copied = at;
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// The length in which `text` begins with `spelling`: in any case, with `/` also as JSON's `\/`, and
/// any character also percent-encoded.
fn occurs(text: &str, spelling: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    for &expected in spelling.as_bytes() {
        if expected == b'/' && bytes[at..].starts_with(b"\\/") {
            at += 2;
            continue;
        }
        if let [b'%', high, low, ..] = bytes[at..]
            && let Some(decoded) = hex(high, low)
            && decoded.to_ascii_lowercase() == expected
        {
            at += 3;
            continue;
        }
        if bytes.get(at)?.to_ascii_lowercase() != expected {
            return None;
        }
        at += 1;
    }
    text.is_char_boundary(at).then_some(at)
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    Some(digit(high)? << 4 | digit(low)?)
}

/// A host called `db` must not eat the middle of `pdbmux`: an address stands between characters that
/// no longer name would hold.
fn stands_alone(before: &str, after: &str, spelling: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins_with_name = spelling.starts_with(name);
    let ends_with_name = spelling.ends_with(name);
    let joined_before = begins_with_name && before.ends_with(name);
    let joined_after = ends_with_name && after.starts_with(name);
    !joined_before && !joined_after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(text: &str) -> String {
        let spellings = [
            "http://db.example.com:8080",
            "db.example.com:8080",
            "db.example.com",
            "10.0.0.7",
        ];
        Addresses::new(spellings.map(str::to_owned))
            .strip(text)
            .into_owned()
    }

    #[test]
    fn r018_addresses_are_replaced_in_every_spelling() {
        for text in [
            "see http://db.example.com:8080/x",
            "see HTTP://DB.Example.com:8080/x",
            r"see http:\/\/db.example.com:8080/x",
            "see http%3A%2f%2Fdb.example.com%3A8080/x",
            "see db.example.com:8080/x",
            "see db.example.com/x",
            "see 10.0.0.7/x",
            "see d%62.example.com/x",
        ] {
            assert_eq!(strip(text), "see puppetdb/x", "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_an_address_stays() {
        for text in [
            "olddb.example.com1",
            "110.0.0.7",
            "db.example.comrade",
            "dbxexample.com",
            "%zz",
            "é%",
        ] {
            assert_eq!(strip(text), text);
        }
    }

    #[test]
    fn all_occurrences_are_replaced() {
        assert_eq!(
            strip("db.example.com é db.example.com"),
            "puppetdb é puppetdb"
        );
    }
}
