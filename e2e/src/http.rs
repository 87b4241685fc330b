//! A plain HTTP client: what was answered, unchanged, whatever the status.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::HeaderMap;

use crate::records::{Record, records};

/// Longest wait for any one answer.
const PATIENCE: Duration = Duration::from_secs(90);

/// A PuppetDB, or something that answers like one.
#[derive(Clone, Debug)]
pub struct Client {
    base: String,
    agent: Agent,
}

/// One whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was asked, for messages.
    pub asked: String,
    /// HTTP status.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The body as sent.
    pub body: String,
    /// From sending the request to the last byte.
    pub took: Duration,
}

/// A request with nothing left out.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// Path as it stands, already percent-encoded.
    pub path: &'a str,
    /// Parameters, encoded here.
    pub parameters: &'a [(String, String)],
    /// Header fields.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; a GET may have one too.
    pub body: Option<&'a str>,
}

impl Client {
    /// A client of `base`, e.g. `http://127.0.0.1:8080`.
    pub fn new(base: impl Into<String>) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .build();
        Self {
            base: base.into(),
            agent: config.into(),
        }
    }

    /// The base URL.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Asks for `path` as it stands, already percent-encoded, with `parameters` encoded here.
    pub fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Answer> {
        let url = self.url(path, parameters);
        let started = Instant::now();
        let response = self.agent.get(&url).call();
        collect(url, started, response)
    }

    /// Like [`get`](Self::get) below `/pdb/query/v4/`, refusing all but a 200.
    pub fn query(&self, entity: &str, parameters: &[(&str, &str)]) -> Result<Answer> {
        let answer = self.get(&format!("/pdb/query/v4/{entity}"), parameters)?;
        ensure!(
            answer.status == 200,
            "{} answered {}: {}",
            answer.asked,
            answer.status,
            answer.body
        );
        Ok(answer)
    }

    /// Sends a JSON body.
    pub fn post(&self, path: &str, parameters: &[(&str, &str)], body: &str) -> Result<Answer> {
        let url = self.url(path, parameters);
        let started = Instant::now();
        let response = self
            .agent
            .post(&url)
            .content_type("application/json")
            .send(body);
        collect(url, started, response)
    }

    /// Sends a request of any kind.
    pub fn send(&self, sent: &Sent<'_>) -> Result<Answer> {
        let url = self.url(sent.path, sent.parameters);
        let mut request = ureq::http::Request::builder().method(sent.method).uri(&url);
        for (name, value) in sent.headers {
            request = request.header(*name, *value);
        }
        let started = Instant::now();
        let response = match sent.body {
            Some(body) => {
                let request = request.body(body.to_owned())?;
                self.agent.run(request)
            }
            None => self.agent.run(request.body(())?),
        };
        collect(url, started, response)
    }

    /// Asks with a form in the body of a GET, as PuppetDB's manual does with curl.
    pub fn form(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Answer> {
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        self.send(&Sent {
            method: "GET",
            path,
            parameters: &[],
            headers: &[("content-type", "application/x-www-form-urlencoded")],
            body: Some(&form),
        })
    }

    fn url(&self, path: &str, parameters: &[(impl AsRef<str>, impl AsRef<str>)]) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{path}{mark}{query}", self.base)
    }
}

fn collect(
    asked: String,
    started: Instant,
    response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<Answer> {
    let response = response.with_context(|| format!("no answer to {asked}"))?;
    let (head, mut body) = response.into_parts();
    let body = body
        .with_config()
        .limit(256 << 20)
        .read_to_string()
        .with_context(|| format!("the answer to {asked} broke off"))?;
    Ok(Answer {
        asked,
        status: head.status.as_u16(),
        headers: head.headers,
        body,
        took: started.elapsed(),
    })
}

impl Answer {
    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.body)
            .with_context(|| format!("{} answered {}", self.asked, self.body))
    }

    /// The body's records with their exact bytes.
    pub fn records(&self) -> Result<Vec<Record<'_>>> {
        records(&self.body).with_context(|| format!("{} answered {}", self.asked, self.body))
    }
}
