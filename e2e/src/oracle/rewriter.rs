//! The rewriter held against its rule: of the records that a query selects in a PuppetDB, the query
//! that pdbmux makes of it for that PuppetDB selects exactly those that it speaks for.
//!
//! Whether it speaks for a record is decided here a second time, from what the PuppetDBs say they
//! hold, by whole records instead of conditions.

mod rule;

use anyhow::{Context as _, Result, bail, ensure};
use pdbmux_core::merge::owners::history::{Pasts, spans_ask};
use pdbmux_core::merge::owners::{FreshnessMap, Shares};
use pdbmux_core::params::Params;
use pdbmux_core::plan::{self, Plan, freshness_ask, plan};
use pdbmux_core::round::BackendId;
use pdbmux_core::route::Route;
use pdbmux_core::settings::{Settings, Strategy};
use serde_json::{Value, json};

use super::ask::{Ask, Method};
use super::canon::Json;
use super::compare::{Difference, What, apart_as_sets, rows_apart};
use super::corpus::Case;
use super::estates::HOLDERS;
use super::field::{Outcome, Verdict, side_by_side};
use super::random::{filters, narrowed_entities};
use super::sample::Sample;
use crate::http::{Answer, Client};
use rule::Rule;

const SOURCE: &str = "pdbmux_source";

/// A rig whose backends are asked.
#[derive(Debug)]
pub struct Rewriter<'a> {
    backends: &'a [Client],
    rule: Rule,
    shares: Shares,
    settings: Settings,
}

/// A filter, and the backend that is asked.
#[derive(Debug)]
struct Asked {
    entity: &'static str,
    filter: Value,
    backend: usize,
}

impl<'a> Rewriter<'a> {
    /// Learns what the backends hold, given in configured order.
    pub fn new(backends: &'a [Client]) -> Result<Self> {
        let names: Vec<String> = HOLDERS.iter().map(|name| (*name).to_owned()).collect();
        let settings = Settings {
            backends: names.into_iter().take(backends.len()).collect(),
            strategy: Strategy::Exact,
            source: Some(SOURCE.to_owned()),
        };
        Ok(Self {
            rule: Rule::of(backends)?,
            shares: shares(backends, &settings)?,
            backends,
            settings,
        })
    }

    /// `count` filters of each entity whose feature `is_meant`, made from `seed`, each put to one of
    /// the backends.
    pub fn run(
        &self,
        seed: u64,
        count: u64,
        sample: &Sample,
        is_meant: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Outcome>> {
        let sources: Vec<&str> = self.settings.backends.iter().map(String::as_str).collect();
        let mut all = Vec::new();
        for entity in narrowed_entities().filter(|it| is_meant(&feature(it))) {
            let filters = filters(seed, count, entity, &sources, sample);
            for (filter, backend) in filters.into_iter().zip((0..self.backends.len()).cycle()) {
                all.push(Asked {
                    entity,
                    filter,
                    backend,
                });
            }
        }
        side_by_side(&all, |asked| self.judge(asked))
    }

    fn judge(&self, asked: &Asked) -> Result<Outcome> {
        let client = &self.backends[asked.backend];
        let rewritten = self.rewritten(asked)?;
        let wanted = self.wanted(asked, client)?;
        let got = rows(&put(client, &rewritten)?)?;
        let mut differences = Vec::from_iter(match (&wanted, &got) {
            // What the PuppetDB refuses it is to refuse rewritten too.
            (None, None) => None,
            (Some(wanted), Some(got)) => {
                let (missing, extra) = apart_as_sets(wanted, got);
                let counts = format!("kept {} rows, rewritten {}", wanted.len(), got.len());
                rows_apart(&counts, &missing, &extra)
            }
            (wanted, _) => Some(Difference {
                what: What::Status,
                lines: vec![match wanted {
                    Some(_) => "only the rewritten query is refused".into(),
                    None => "only the original query is refused".into(),
                }],
            }),
        });
        if let Some(first) = differences.first_mut() {
            first.lines.push(format!("asked {}", rewritten.target()));
        }
        Ok(Outcome {
            case: Case {
                feature: feature(asked.entity),
                ask: Ask {
                    method: Method::Get,
                    path: path(asked.entity),
                    parameters: vec![("query".into(), asked.filter.to_string())],
                    headers: Vec::new(),
                    body: None,
                },
            },
            verdict: if differences.is_empty() {
                Verdict::Equal
            } else {
                Verdict::Different(differences)
            },
        })
    }

    /// What pdbmux asks the backend.
    fn rewritten(&self, asked: &Asked) -> Result<plan::Ask> {
        let path = path(asked.entity);
        let raw = form_urlencoded::Serializer::new(String::new())
            .append_pair("query", &asked.filter.to_string())
            .finish();
        let route = Route::find(&path)?.context("no route")?;
        let Plan::Fan(fan) = plan(&route, &Params::read(&raw)?, &self.settings)? else {
            bail!("{path} is not asked of all");
        };
        let backend = BackendId(u16::try_from(asked.backend)?);
        let share = self.shares.of(backend).context("no share")?;
        Ok(fan.ask.within(share))
    }

    /// The records that the client's own query selects in the backend and the backend speaks for.
    /// What depends on who is asked is put in: the source, and that only an owner knows the latest
    /// report.
    fn wanted(&self, asked: &Asked, client: &Client) -> Result<Option<Vec<Json>>> {
        let name = &self.settings.backends[asked.backend];
        let source = |atom: &Value| {
            (atom[1] == SOURCE).then(|| if atom[2] == **name { always() } else { never() })
        };
        let filter = with_atoms(&asked.filter, &source);
        let stale = with_atoms(&filter, &|atom| {
            let is_latest = atom[1] == "latest_report?";
            is_latest.then(|| if atom[2] == true { never() } else { always() })
        });
        let select = |filter: &Value| {
            let query = filter.to_string();
            rows(&client.get(&path(asked.entity), &[("query", &query)])?)
        };
        let (Some(mut kept), Some(mut others)) = (select(&filter)?, select(&stale)?) else {
            return Ok(None);
        };
        let is_owned = |row: &Json| self.rule.owns(asked.backend, row);
        kept.retain(is_owned);
        others.retain(|row| !is_owned(row));
        kept.append(&mut others);
        kept.retain(|row| self.rule.speaks(asked.backend, asked.entity, row));
        Ok(Some(kept))
    }
}

/// Divides the nodes and the history as pdbmux does.
fn shares(backends: &[Client], settings: &Settings) -> Result<Shares> {
    let ids: Vec<BackendId> = (0..).map(BackendId).take(backends.len()).collect();
    let all = |ask: &plan::Ask| -> Result<Vec<String>> {
        let answers = backends.iter().map(|one| put(one, ask));
        let bodies = answers.map(|answer| {
            let Answer { status, body, .. } = answer?;
            ensure!(status == 200, "{status} {body}");
            Ok(body)
        });
        bodies.collect()
    };
    let nodes = all(&freshness_ask(Strategy::Exact))?;
    let (map, damaged) = FreshnessMap::build(&of_backends(&ids, &nodes));
    ensure!(damaged.is_empty(), "nodes are damaged: {damaged:?}");
    let source = settings.source.as_deref();
    let shares = map.shares(&ids, source, &settings.backends, usize::MAX);
    let Some(ask) = spans_ask(&shares) else {
        return Ok(shares);
    };
    let spans = all(&ask)?;
    let (pasts, damaged) = Pasts::read(&of_backends(&ids, &spans));
    ensure!(damaged.is_empty(), "reports are damaged: {damaged:?}");
    let hashes = match pasts.overlaps_ask() {
        Some(ask) => all(&ask)?,
        None => Vec::new(),
    };
    Ok(shares.with_history(&pasts, &of_backends(&ids, &hashes)))
}

fn of_backends<'b>(ids: &[BackendId], bodies: &'b [String]) -> Vec<(BackendId, &'b [u8])> {
    let bodies = bodies.iter().map(String::as_bytes);
    ids.iter().copied().zip(bodies).collect()
}

/// Puts a question of pdbmux's to a backend.
fn put(client: &Client, ask: &plan::Ask) -> Result<Answer> {
    let sent = ask.send(client.base().len(), None);
    match &sent.body {
        Some(body) => client.post(&sent.target, &[], body),
        None => client.get(&sent.target, &[]),
    }
}

fn feature(entity: &str) -> String {
    format!("rewritten: {entity}")
}

fn path(entity: &str) -> String {
    format!("/pdb/query/v4/{entity}")
}

/// The records of an answer; `None` of a refusal.
fn rows(answer: &Answer) -> Result<Option<Vec<Json>>> {
    if answer.status != 200 {
        return Ok(None);
    }
    match Json::parse(&answer.body)? {
        Json::List(rows) => Ok(Some(rows.into_iter().map(unordered).collect())),
        other => bail!("{} answered {}", answer.asked, other.spell()),
    }
}

/// PostgreSQL gathers the lists inside a record as it comes upon them.
fn unordered(json: Json) -> Json {
    match json {
        Json::List(elements) => {
            let mut elements: Vec<_> = elements.into_iter().map(unordered).collect();
            elements.sort();
            Json::List(elements)
        }
        Json::Map(fields) => {
            let fields = fields.into_iter();
            Json::Map(
                fields
                    .map(|(name, value)| (name, unordered(value)))
                    .collect(),
            )
        }
        other => other,
    }
}

/// A filter with the comparisons replaced that `other` has something for.
fn with_atoms(filter: &Value, other: &dyn Fn(&Value) -> Option<Value>) -> Value {
    match filter {
        Value::Array(parts) => match other(filter) {
            Some(replaced) => replaced,
            None => parts.iter().map(|part| with_atoms(part, other)).collect(),
        },
        leaf => leaf.clone(),
    }
}

fn always() -> Value {
    json!(["~", "certname", "."])
}

fn never() -> Value {
    json!(["~", "certname", "no such node"])
}
