//! One question, as it is written in the corpus and as it goes over the wire.

use std::fmt;

use anyhow::{Context as _, Result, bail};

use crate::http::{Answer, Client, Sent};

/// Where the query API lies.
const QUERY: &str = "/pdb/query/v4";

/// How parameters travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// In the URL.
    Get,
    /// In the form body of a GET, as `curl --get`-less scripts and puppetdb-ruby send them.
    Form,
    /// As a JSON body.
    Post,
    /// Some other method.
    Other(&'static str),
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// How it is put.
    pub method: Method,
    /// Its path, encoded; with a raw query string where that is what is tested.
    pub path: String,
    /// Its parameters, not yet encoded.
    pub parameters: Vec<(String, String)>,
    /// Header fields on top of the client's own.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Option<String>,
}

impl Ask {
    /// Reads `[METHOD] PATH [ ? NAME=VALUE [ & NAME=VALUE]...] [ ! BODY] [ @ NAME: VALUE]...`.
    ///
    /// A path is below `/pdb/query/v4` unless it begins with a slash; `root` is that path itself.
    pub fn parse(line: &str) -> Result<Self> {
        let mut parts = line.split(" @ ");
        let rest = parts.next().unwrap_or_default();
        let headers = parts
            .map(|field| pair(field, ": "))
            .collect::<Result<_>>()
            .with_context(|| line.to_owned())?;
        let (rest, body) = match rest.split_once(" ! ") {
            Some((rest, body)) => (rest, Some(body.to_owned())),
            None => (rest, None),
        };
        let (head, parameters) = match rest.split_once(" ? ") {
            Some((head, listed)) => (
                head,
                listed
                    .split(" & ")
                    .map(|one| pair(one, "="))
                    .collect::<Result<_>>()
                    .with_context(|| line.to_owned())?,
            ),
            None => (rest, Vec::new()),
        };
        let (method, path) = match head.split_once(' ') {
            Some((method, path)) => (method_named(method)?, path),
            None => (Method::Get, head),
        };
        let path = match path {
            "root" => QUERY.to_owned(),
            absolute if absolute.starts_with('/') => absolute.to_owned(),
            below => format!("{QUERY}/{below}"),
        };
        Ok(Self {
            method,
            path,
            parameters,
            headers,
            body,
        })
    }

    /// The path below `/pdb/query/v4`, without a query string: empty for the root route,
    /// `None` for other APIs.
    pub fn route(&self) -> Option<&str> {
        let path = self.path.split('?').next()?;
        let below = path.strip_prefix(QUERY)?;
        match below.strip_prefix('/') {
            Some(route) => Some(route),
            None => below.is_empty().then_some(""),
        }
    }

    /// Puts it to a server.
    pub fn send(&self, client: &Client) -> Result<Answer> {
        let (method, parameters, body, kind) = match self.method {
            Method::Get => ("GET", self.parameters.as_slice(), None, None),
            Method::Form => {
                let form = form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(&self.parameters)
                    .finish();
                (
                    "GET",
                    &[][..],
                    Some(form),
                    Some("application/x-www-form-urlencoded"),
                )
            }
            Method::Post => (
                "POST",
                self.parameters.as_slice(),
                Some(self.body.clone().unwrap_or_default()),
                Some("application/json"),
            ),
            Method::Other(name) => (name, self.parameters.as_slice(), self.body.clone(), None),
        };
        let mut headers: Vec<(&str, &str)> = Vec::new();
        let own_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
        if let Some(kind) = kind
            && !self.headers.iter().any(own_type)
        {
            headers.push(("content-type", kind));
        }
        headers.extend(
            self.headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        client.send(&Sent {
            method,
            path: &self.path,
            parameters,
            headers: &headers,
            body: body.as_deref(),
        })
    }
}

impl fmt::Display for Ask {
    /// As the corpus writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.method {
            Method::Get => {}
            Method::Form => f.write_str("FORM ")?,
            Method::Post => f.write_str("POST ")?,
            Method::Other(name) => write!(f, "{name} ")?,
        }
        f.write_str(match self.path.strip_prefix(QUERY) {
            Some("") => "root",
            Some(below) if below.starts_with('/') => below.trim_start_matches('/'),
            _ => &self.path,
        })?;
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            let sign = if at == 0 { '?' } else { '&' };
            write!(f, " {sign} {name}={value}")?;
        }
        if let Some(body) = &self.body {
            write!(f, " ! {body}")?;
        }
        for (name, value) in &self.headers {
            write!(f, " @ {name}: {value}")?;
        }
        Ok(())
    }
}

fn method_named(name: &str) -> Result<Method> {
    Ok(match name {
        "GET" => Method::Get,
        "FORM" => Method::Form,
        "POST" => Method::Post,
        "HEAD" => Method::Other("HEAD"),
        "PUT" => Method::Other("PUT"),
        "DELETE" => Method::Other("DELETE"),
        _ => bail!("no method {name}"),
    })
}

fn pair(text: &str, sign: &str) -> Result<(String, String)> {
    let (name, value) = text
        .split_once(sign)
        .with_context(|| format!("{text:?} has no {sign:?}"))?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_written_the_same() {
        for line in [
            "nodes",
            "root ? query=nodes { } & limit=3",
            "POST facts ! {\"query\":[\"=\",\"name\",\"x\"]}",
            "FORM nodes ? query=null",
            "HEAD nodes",
            "/pdb/meta/v1/version",
            "nodes?query=%zz",
            "nodes ? limit=1 @ accept: text/html",
        ] {
            assert_eq!(Ask::parse(line).unwrap().to_string(), line);
        }
    }

    #[test]
    fn only_the_query_api_has_routes() {
        let route = |line: &str| Ask::parse(line).unwrap().route().map(str::to_owned);
        assert_eq!(route("root ? query=x").as_deref(), Some(""));
        assert_eq!(route("nodes?limit=1").as_deref(), Some("nodes"));
        assert_eq!(route("/pdb/meta/v1/version"), None);
    }
}
