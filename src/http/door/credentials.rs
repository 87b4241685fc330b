//! What a request bears to show who asks: a token, or a user with a password.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap};

/// What PuppetDB takes tokens in.
const X_AUTHENTICATION: &str = "x-authentication";

/// What a request bears.
#[derive(PartialEq, Eq)]
pub(super) enum Credentials {
    /// A token.
    Token(Vec<u8>),
    /// A user with a password.
    User(String, String),
}

impl Credentials {
    /// All that can be read in the head of a request.
    pub(super) fn all(headers: &HeaderMap) -> Vec<Self> {
        let authorization = headers.get_all(AUTHORIZATION).into_iter();
        let authorization = authorization.filter_map(|value| of_scheme(value.as_bytes()));
        let tokens = headers.get_all(X_AUTHENTICATION).into_iter();
        let tokens = tokens.map(|value| Self::Token(value.as_bytes().to_vec()));
        authorization.chain(tokens).collect()
    }
}

/// Reads `Bearer TOKEN` (RFC 6750) or `Basic BASE64` (RFC 7617).
fn of_scheme(value: &[u8]) -> Option<Credentials> {
    let end = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = (&value[..end], value[end..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(Credentials::Token(rest.to_vec()));
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let both = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    let (user, password) = both.split_once(':')?;
    Some(Credentials::User(user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&'static str, &str)]) -> Vec<String> {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let all = Credentials::all(&headers.collect());
        let show = |one: &Credentials| match one {
            Credentials::Token(token) => format!("token {}", String::from_utf8_lossy(token)),
            Credentials::User(user, password) => format!("user {user} {password}"),
        };
        all.iter().map(show).collect()
    }

    #[test]
    fn tokens_and_passwords_are_read_wherever_clients_put_them() {
        for (name, value, expected) in [
            ("authorization", "Bearer abc", "token abc"),
            ("authorization", "bearer  a=b ", "token a=b"),
            ("x-authentication", "abc", "token abc"),
            ("authorization", "Basic dTpwOnE=", "user u p:q"),
            ("authorization", "BASIC dTo=", "user u "),
        ] {
            assert_eq!(read(&[(name, value)]), [expected], "{value}");
        }
        let both = [("authorization", "Basic dTpw"), ("x-authentication", "t")];
        assert_eq!(read(&both), ["user u p", "token t"]);
    }

    #[test]
    fn what_is_neither_is_nothing() {
        for value in [
            "",
            "abc",
            "Basic",
            "Basic !",
            "Basic dQ==",
            "Basic //86/w==",
            "Digest a",
        ] {
            assert_eq!(read(&[("authorization", value)]), [""; 0], "{value}");
        }
        assert_eq!(read(&[("cookie", "Bearer abc")]), [""; 0]);
    }
}
