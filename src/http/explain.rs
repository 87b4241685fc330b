//! `X-Pdbmux-Explain: 1`: why an answer is what it is, in the place of the answer.

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use pdbmux_core::json::Records;
use pdbmux_core::merge::prior::Prior;
use pdbmux_core::merge::{Fan, Merge};
use pdbmux_core::plan::{Ask, Doubt, Plan, Scope, Turns};
use pdbmux_core::settings::Strategy;
use serde_json::{Value, json};

use super::body::Body;
use super::fan::Conclusion;
use super::respond;
use super::serve::App;
use crate::upstream::trace::{Notes, Step, Trace};

const HEADER: &str = "x-pdbmux-explain";

/// Whether a client asks for the reasons instead of the answer.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    headers
        .get(HEADER)
        .is_some_and(|value| value == "1" || value == "true")
}

impl App {
    /// Does what `plan` says and tells what was done. The backends are asked in any case, so that
    /// there is something to tell; what is cached stays as it is.
    pub(super) async fn explain(self: &Arc<Self>, plan: Plan) -> Response<Body> {
        let trace = Trace::new();
        let told = describe(&plan);
        let outcome = trace
            .follow(async {
                match plan {
                    Plan::Fan(fan) => concluded(&self.fan_within(fan, usize::MAX).await),
                    Plan::Turns(ask, turns, uncertain) => {
                        let response = self.pass_on(&ask, &turns, uncertain).await;
                        json!({ "status": response.status().as_u16() })
                    }
                    Plan::Parent(ask, turns, fan) => match self.parent(&ask, &turns).await {
                        None => concluded(&self.fan_within(fan, usize::MAX).await),
                        Some(refused) => json!({ "status": refused.status().as_u16() }),
                    },
                    Plan::Translate(_) => json!({ "status": 500 }),
                    Plan::Nothing(total) => json!({ "status": 200, "total": total, "rows": 0 }),
                    Plan::Write => json!({ "status": 501 }),
                }
            })
            .await;
        let notes = trace.notes();
        let reasons = json!({
            "merge": strategy(self.settings.strategy),
            "plan": told,
            "done_instead": notes.instead.as_deref().map(describe_fan),
            "backends": self.shares_of(&notes),
            "asked": notes.steps.iter().map(|step| self.step(step)).collect::<Vec<_>>(),
            "outcome": outcome,
        });
        respond::json(StatusCode::OK, format!("{reasons:#}\n"))
    }

    /// What each backend spoke for, where that was decided.
    fn shares_of(&self, notes: &Notes) -> Value {
        let told = notes.shares.iter().map(|(backend, share)| {
            let mut left_out: Vec<_> = share.stale().collect();
            left_out.sort_unstable();
            json!({
                "backend": self.name(*backend),
                "owns": share.nodes(),
                "left_out": left_out,
            })
        });
        told.collect()
    }

    fn step(&self, step: &Step) -> Value {
        let mut told = json!({
            "backend": self.name(step.member.backend),
            "method": if step.sent.body.is_some() { "POST" } else { "GET" },
            "target": step.sent.target,
            "began_ms": millis(step.began),
            "took_ms": millis(step.took),
        });
        let backend = self.upstream.backend(step.member.backend);
        if backend.members().len() > 1 {
            told["member"] = json!(self.upstream.member(step.member).name);
        }
        if let Some(body) = &step.sent.body {
            told["body"] = serde_json::from_str(body).unwrap_or_else(|_| json!(body));
        }
        match &step.result {
            Err(reason) => told["failure"] = json!(reason),
            Ok((status, body)) => {
                told["status"] = json!(status);
                if let Some(body) = body {
                    told["bytes"] = json!(body.len());
                    told["rows"] = json!(rows(body));
                    if *status >= 400 {
                        let said = String::from_utf8_lossy(body);
                        told["said"] = json!(self.addresses.strip(&said));
                    }
                }
            }
        }
        told
    }
}

fn concluded(conclusion: &Conclusion) -> Value {
    match conclusion {
        Conclusion::Answer {
            standing, pieces, ..
        } => json!({
            "status": 200,
            "bytes": pieces.len(),
            "total": standing.total,
            "contributed": standing.contributed,
            "configured": standing.configured,
            "missing": missing(&standing.missing),
            "not_exact": standing.doubts,
        }),
        Conclusion::Stream { standing, .. } => json!({
            "status": 200,
            "total": standing.total,
            "missing": missing(&standing.missing),
        }),
        Conclusion::Replay(received) => json!({ "status": received.status, "replayed": true }),
        Conclusion::Nothing(without) => json!({ "status": 502, "missing": missing(without) }),
        Conclusion::Unfoldable(error) => json!({ "status": 502, "why": error.to_string() }),
        Conclusion::Full(_) => json!({ "status": 503, "why": "no room for the answers" }),
    }
}

fn missing(without: &[(String, String)]) -> Value {
    let told = without.iter();
    told.map(|(backend, reason)| json!({ "backend": backend, "reason": reason }))
        .collect()
}

fn describe(plan: &Plan) -> Value {
    match plan {
        Plan::Nothing(_) => json!({ "does": "answer without asking: there can be no record" }),
        Plan::Write => json!({ "does": "refuse a write" }),
        Plan::Turns(ask, turns, uncertain) => {
            let mut told = describe_turns(ask, turns);
            told["first"] = describe_priors(&uncertain.priors);
            told["not_exact"] = json!(reasons(&uncertain.doubts));
            told
        }
        Plan::Parent(ask, turns, fan) => {
            let mut told = describe_fan(fan);
            told["once_there_is"] = describe_turns(ask, turns);
            told
        }
        Plan::Translate(_) => json!({ "does": "have a PQL query translated" }),
        Plan::Fan(fan) => describe_fan(fan),
    }
}

fn describe_turns(ask: &Ask, turns: &Turns) -> Value {
    json!({
        "does": match turns {
            Turns::Configured => "ask one backend after the other until one succeeds",
            Turns::OwnerFirst { .. } => "ask the owner of the node, then the others",
        },
        "certname": match turns {
            Turns::OwnerFirst { certname, .. } => Some(certname),
            Turns::Configured => None,
        },
        "target": ask.target(),
    })
}

/// Why an answer may differ from that of one PuppetDB.
fn reasons(doubts: &[Doubt]) -> Vec<&'static str> {
    doubts.iter().map(|doubt| doubt.reason()).collect()
}

fn describe_fan(fan: &Fan) -> Value {
    json!({
        "does": match &fan.merge {
            Merge::Records(_) => "ask all backends and merge their records",
            Merge::Aggregates(_) | Merge::Sifted(_) => "ask all backends and combine rows of equal keys",
            Merge::Tally(_) => "ask all backends how many nodes they have and count the owned",
            Merge::Version => "ask all backends and give the lowest version",
            Merge::First => "ask all backends and give the first answer",
            Merge::Metrics(_) | Merge::Population(_) => "ask all backends and combine their metrics",
            Merge::List(_) => "ask all backends and unite their lists",
            Merge::Set(_) => "ask all backends and list each record once",
            Merge::Newest(_) => "ask all backends and keep the newest event of each resource",
            Merge::Summaries(_) => "ask all backends and count the subjects of events",
            Merge::Holder(_) => "ask all backends and give the answer of the one that has it",
        },
        "each_is_asked_for": asked_for(fan.ask.scope()),
        "target": fan.ask.target(),
        "beside": fan.further.iter().map(|ask| json!({
            "each_is_asked_for": asked_for(ask.scope()),
            "target": ask.target(),
        })).collect::<Vec<_>>(),
        "first": describe_priors(&fan.priors),
        "cache_key": fan.cache_key,
        "not_exact": reasons(&fan.doubts),
    })
}

/// What is asked before the question itself.
fn describe_priors(priors: &[Prior]) -> Value {
    let told = priors.iter().map(|prior| {
        let mut told = describe_fan(&prior.fan);
        told["in_place_of"] = json!(prior.clause);
        told["else_not_exact"] = json!(reasons(&prior.doubts));
        told
    });
    told.collect()
}

fn asked_for(scope: Scope) -> &'static str {
    match scope {
        Scope::Everything => "everything",
        Scope::Owned => "the nodes that it owns",
        Scope::OwnedWithin(_) => "the nodes that it owns, or everything if that takes a long list",
        Scope::Reports | Scope::Events => "the reports that no other speaks for",
        Scope::Listed(_) => "what the nodes that it owns name",
        Scope::Contested => "the nodes that another holds too",
        Scope::Mixed => "the nodes that it owns, if it holds others",
        Scope::Living => "the nodes that it owns, if some node is held twice",
    }
}

fn strategy(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Freshness => "freshness",
        Strategy::Static => "static",
        Strategy::Exact => "exact",
    }
}

/// The number of records, if the body is a list of them.
fn rows(body: &[u8]) -> Option<usize> {
    let mut records = Records::new(body, &[]);
    let mut rows = 0;
    while records.next(&mut []).ok()?.is_some() {
        rows += 1;
    }
    Some(rows)
}

/// To a tenth.
#[expect(
    clippy::cast_precision_loss,
    reason = "no request takes 2^52 tenths of a millisecond"
)]
fn millis(time: std::time::Duration) -> f64 {
    (time.as_micros() / 100) as f64 / 10.0
}
