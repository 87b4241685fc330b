//! The sites whose pages may ask (CORS), and the path below which all is served.

use http::Uri;

use super::super::value::ValueError;

/// Whose pages may read answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origins {
    /// Nobody's: browsers are told nothing.
    #[default]
    Nobody,
    /// Everybody's.
    Anybody,
    /// Those of these origins, as browsers write them.
    These(Vec<String>),
}

/// Reads `*`, or origins with commas between them.
pub(super) fn parse(text: &str) -> Result<Origins, ValueError> {
    if text.trim() == "*" {
        return Ok(Origins::Anybody);
    }
    let origins = text.split(',').map(|one| origin(one.trim()));
    Ok(Origins::These(origins.collect::<Result<_, _>>()?))
}

fn origin(text: &str) -> Result<String, ValueError> {
    let text = text.to_ascii_lowercase();
    let uri: Uri = text.parse().map_err(|_| ValueError::NotOrigin)?;
    let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.authority()) else {
        return Err(ValueError::NotOrigin);
    };
    // Without a path, and a user least of all.
    let whole = format!("{scheme}://{host}");
    if whole != text || text.contains('@') {
        return Err(ValueError::NotOrigin);
    }
    Ok(text)
}

pub(super) fn show(origins: &Origins) -> String {
    match origins {
        Origins::Nobody => String::new(),
        Origins::Anybody => "*".to_owned(),
        Origins::These(list) => list.join(","),
    }
}

/// Reads a path such as `/puppetdb`; a slash at its end is dropped.
pub(super) fn parse_base_path(text: &str) -> Result<Option<String>, ValueError> {
    let path = text.strip_suffix('/').unwrap_or(text);
    let mut segments = path.split('/');
    let is_absolute = segments.next() == Some("");
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'~');
    let is_plain = |it: &str| !matches!(it, "" | "." | "..") && it.bytes().all(plain);
    if path.is_empty() || !is_absolute || !segments.all(is_plain) {
        return Err(ValueError::NotBasePath);
    }
    Ok(Some(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        for (text, shown) in [
            ("*", "*"),
            ("https://board.example", "https://board.example"),
            (
                "HTTP://Board:8443, http://[::1]:80",
                "http://board:8443,http://[::1]:80",
            ),
        ] {
            assert_eq!(show(&parse(text).unwrap()), shown);
        }
        for text in [
            "board.example",
            "https://board/",
            "https://board/x",
            "https://u@board",
            "https://a,*",
            "https://a,",
            "null",
            "//a",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_base_path_is_made_of_plain_segments() {
        for (text, path) in [("/puppetdb", "/puppetdb"), ("/a/b-1.x/", "/a/b-1.x")] {
            assert_eq!(parse_base_path(text).unwrap().as_deref(), Some(path));
        }
        for text in [
            "/", "", "a", "a/b", "//a", "/a//b", "/a/..", "/./a", "/a?b", "/a%20b", "/a b",
        ] {
            assert!(parse_base_path(text).is_err(), "{text}");
        }
    }
}
