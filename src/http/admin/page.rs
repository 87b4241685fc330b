//! The estate page: how the backends are, which nodes live where, and how that changed, as one HTML
//! document that needs nothing else, no script either.
//!
//! [`page`] is a function of [`View`] alone. The template escapes whatever is put into it.

mod chart;
pub mod history;
mod list;
mod look;
#[cfg(test)]
mod tests;

use askama::Template;
use jiff::Timestamp;
use pdbmux_core::settings::Strategy;

use crate::certificate::FEW_DAYS;
use crate::drift;
use crate::metrics::CacheUse;
use chart::Chart;
use history::History;
use list::{Listed, Options};
use look::Found;

/// The style sheet, which the document holds.
const STYLE: &str = include_str!("page/style.css");

/// What the page tells of.
#[derive(Debug)]
pub struct View<'v> {
    /// When it was looked at.
    pub at: Timestamp,
    /// The backends in configured order.
    pub backends: Vec<Backend>,
    /// The certificates towards clients.
    pub certificates: Vec<Certificate>,
    /// Their nodes; `None` if they have not been listed yet.
    pub nodes: Option<&'v drift::Estate>,
    /// Who owned how many nodes.
    pub history: &'v History,
    /// The last answers that lack a backend, the newest first; `None` if they are not kept.
    pub partials: Option<Vec<Answered>>,
    /// The last answers that took long, the newest first; `None` if they are not kept.
    pub slow: Option<Vec<Answered>>,
    /// The cache of answers; `None` if it is turned off.
    pub cache: Option<CacheUse>,
    /// How owners are chosen.
    pub strategy: Strategy,
    /// What was asked for.
    pub search: Search,
}

/// A backend as the page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Its name.
    pub name: String,
    /// What its probes say, in a word or two.
    pub state: &'static str,
    /// What to make of that.
    pub tone: Tone,
    /// Why it is so, without any address.
    pub why: Option<String>,
    /// The versions of its PuppetDBs, as far as they are known.
    pub versions: Vec<String>,
    /// The certificates towards it.
    pub certificates: Vec<Certificate>,
}

/// A certificate and the days that it has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Which one it is.
    pub what: String,
    /// Whole days; below 0 if it has ended.
    pub days: i64,
}

impl Certificate {
    fn left(&self) -> String {
        match self.days {
            ..0 => "ended".to_owned(),
            0 => "less than a day".to_owned(),
            1 => "1 day".to_owned(),
            days => format!("{} days", number(days.unsigned_abs())),
        }
    }

    fn ends_soon(&self) -> bool {
        self.days < FEW_DAYS
    }
}

/// What to make of something, for whoever only glances at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// All is well.
    Good,
    /// It is not known.
    Unknown,
    /// It works, and somebody should look.
    Watch,
    /// It does not work.
    Bad,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Unknown => "unknown",
            Self::Watch => "watch",
            Self::Bad => "bad",
        }
    }
}

/// A request that is worth a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// When.
    pub at: String,
    /// Path and query.
    pub target: String,
    /// The status of the answer.
    pub status: u16,
    /// How long it took.
    pub took: String,
    /// What there is to say of it.
    pub note: String,
}

/// What was asked for, by the query of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// A part of certnames.
    pub q: String,
    /// What the nodes are; see [`drift::Filter`].
    pub state: String,
    /// One certname.
    pub certname: Option<String>,
}

impl Search {
    /// Reads the query of a request; what it does not know it leaves.
    pub fn of(query: &str) -> Self {
        let mut search = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "q" => value.trim().clone_into(&mut search.q),
                "state" => search.state = value.into_owned(),
                "certname" => search.certname = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        search
    }
}

#[derive(Template)]
#[template(path = "estate.html")]
struct Document<'v> {
    style: &'static str,
    headline: String,
    tone: Tone,
    at: String,
    at_short: String,
    merge: &'static str,
    version: &'static str,
    found: Option<Found>,
    backends: Vec<Card<'v>>,
    certificates: &'v [Certificate],
    all: Option<Totals>,
    chart: Option<Chart>,
    search: &'v Search,
    options: Options,
    listed: Option<Listed>,
    lists: Vec<Requests<'v>>,
    cache: Option<Cached>,
}

struct Card<'v> {
    name: &'v str,
    state: &'static str,
    tone: Tone,
    why: Option<&'v str>,
    versions: String,
    certificates: &'v [Certificate],
    colour: usize,
    counts: Option<Share>,
}

struct Share {
    owned: String,
    held: String,
    only: String,
    stale: String,
    /// Of all nodes, to show.
    part: String,
    /// The same, to draw.
    percent: u64,
}

struct Totals {
    held: String,
    shared: String,
    stale: String,
    inactive: String,
}

struct Requests<'v> {
    id: &'static str,
    title: &'static str,
    /// The title of the last column.
    last: &'static str,
    rows: &'v [Answered],
}

struct Cached {
    entries: String,
    stale: String,
    bytes: String,
}

/// The page as HTML.
///
/// # Errors
///
/// The template could not be filled in, which is a fault of pdbmux.
pub fn page(view: &View<'_>) -> Result<String, askama::Error> {
    let (headline, tone) = headline(&view.backends, &silent(view));
    let summary = view.nodes.map(drift::Estate::summary);
    let all = summary.as_ref().map(|summary| &summary.all);
    let cards = view.backends.iter().enumerate().map(|(at, backend)| Card {
        name: &backend.name,
        state: backend.state,
        tone: backend.tone,
        why: backend.why.as_deref(),
        versions: backend.versions.join(", "),
        certificates: &backend.certificates,
        colour: colour(at),
        counts: share(view, summary.as_ref(), at),
    });
    let search = view.search.certname.as_deref();
    Document {
        style: STYLE,
        headline,
        tone,
        at: format!("{:.0}", view.at),
        at_short: view.at.strftime("%F %H:%M:%S").to_string(),
        merge: match view.strategy {
            Strategy::Freshness => "merge: freshness",
            Strategy::Static => "merge: static",
            Strategy::Exact => "merge: exact",
        },
        version: env!("CARGO_PKG_VERSION"),
        found: search
            .zip(view.nodes)
            .map(|(certname, nodes)| Found::of(certname, nodes)),
        backends: cards.collect(),
        certificates: &view.certificates,
        all: all.map(|all| Totals {
            held: number(all.held),
            shared: number(all.shared),
            stale: number(all.stale),
            inactive: number(all.inactive),
        }),
        chart: Chart::of(view.history),
        search: &view.search,
        options: list::options(&view.search),
        listed: view.nodes.map(|nodes| Listed::of(nodes, &view.search)),
        lists: requests(view),
        cache: view.cache.map(|cache| Cached {
            entries: number(cache.entries as u64),
            stale: number(cache.stale as u64),
            bytes: bytes(cache.bytes),
        }),
    }
    .render()
}

/// The `Content-Security-Policy` of the page: its own style, and a form that leads back to it.
pub fn policy() -> String {
    use aws_lc_rs::digest::{SHA256, digest};
    use base64::Engine as _;
    let hash = digest(&SHA256, STYLE.as_bytes());
    let hash = base64::engine::general_purpose::STANDARD.encode(hash.as_ref());
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    )
}

fn requests<'v>(view: &'v View<'_>) -> Vec<Requests<'v>> {
    let partials = view.partials.as_deref().map(|rows| Requests {
        id: "partials",
        title: "Last answers that lacked a backend",
        last: "Missing",
        rows,
    });
    let slow = view.slow.as_deref().map(|rows| Requests {
        id: "slow",
        title: "Slow requests",
        last: "Backends",
        rows,
    });
    partials.into_iter().chain(slow).collect()
}

/// The backends that did not list their nodes.
fn silent<'v>(view: &View<'v>) -> Vec<&'v str> {
    let nodes = view.nodes.into_iter();
    let missing = nodes.flat_map(|nodes| nodes.missing.iter().map(|(it, _)| nodes.name(*it)));
    missing.collect()
}

/// The estate in one line, and what to make of it, given who did not list its nodes.
fn headline(backends: &[Backend], silent: &[&str]) -> (String, Tone) {
    let bad: Vec<_> = backends
        .iter()
        .filter(|backend| backend.tone == Tone::Bad)
        .map(|backend| backend.name.as_str())
        .collect();
    let worst = backends.iter().map(|backend| backend.tone).max();
    let (mut worst, count) = (worst.unwrap_or(Tone::Unknown), backends.len());
    if !silent.is_empty() {
        worst = worst.max(Tone::Watch);
    }
    let text = match (bad.as_slice(), count) {
        ([], _) if !silent.is_empty() => {
            format!("The nodes of {} are not known", silent.join(" and "))
        }
        ([], 1) => "The backend is in service".to_owned(),
        ([], 2) => "Both backends are in service".to_owned(),
        ([], _) => format!("All {count} backends are in service"),
        (bad, _) if bad.len() == count => "No backend is in service".to_owned(),
        ([one], _) => format!("{one} is out of service"),
        (bad, _) => format!("{} are out of service", bad.join(" and ")),
    };
    (text, worst)
}

fn share(view: &View<'_>, summary: Option<&drift::Summary>, at: usize) -> Option<Share> {
    let (nodes, summary) = view.nodes.zip(summary)?;
    // By its name: the nodes may be those of the configuration before.
    let backend = nodes.backend(&view.backends[at].name)?;
    if nodes.missing.iter().any(|(missing, _)| *missing == backend) {
        return None;
    }
    let counts = summary.of_backend(backend);
    let percent = (counts.owned * 100).checked_div(summary.all.held)?;
    Some(Share {
        owned: number(counts.owned),
        held: number(counts.held),
        only: number(counts.only),
        stale: number(counts.stale),
        part: match percent {
            0 if counts.owned > 0 => "< 1 %".to_owned(),
            percent => format!("{percent} %"),
        },
        percent,
    })
}

/// Which of the eight colours a backend has.
fn colour(at: usize) -> usize {
    at % 8
}

/// A number with its thousands apart.
fn number(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let groups = (first > 0).then(|| &digits[..first]).into_iter();
    let rest = (first..digits.len())
        .step_by(3)
        .map(|at| &digits[at..at + 3]);
    groups.chain(rest).collect::<Vec<_>>().join(",")
}

fn bytes(bytes: usize) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", number((bytes >> 20) as u64)),
    }
}
