//! Printing the estate: tables for people, JSON and CSV for machines. Row by row, however many nodes
//! there are.

use std::io::{self, Write};

use jiff::Timestamp;
use pdbmux_core::merge::owners::copies::{State, Told};
use serde::Serialize;
use serde_json::json;

use super::{Behind, Counts, Estate, Filter, Node, NodeCopy, Summary, Why, span};

/// Which nodes are listed under the summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// None.
    None,
    /// Those that meet all of these.
    Of(Vec<Filter>),
}

impl Rows {
    fn of<'e>(&self, estate: &'e Estate) -> impl Iterator<Item = Node<'e>> {
        let filters = match self {
            Self::None => None,
            Self::Of(filters) => Some(filters),
        };
        filters.into_iter().flat_map(|filters| {
            let takes = move |node: &Node<'_>| filters.iter().all(|filter| filter.takes(node));
            estate.nodes().filter(takes)
        })
    }
}

fn told(told: Told) -> &'static str {
    match told {
        Told::Report => "report",
        Told::Facts => "facts",
        Told::Catalog => "catalog",
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::Only => "only",
        Why::Newest(of) => told(of),
        Why::First => "first",
    }
}

impl Why {
    /// For people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Only => "no other has it",
            Self::Newest(Told::Report) => "newest report",
            Self::Newest(Told::Facts) => "newest facts",
            Self::Newest(Told::Catalog) => "newest catalog",
            Self::First => "configured first",
        }
    }
}

impl Behind {
    /// For people.
    pub fn sentence(self) -> String {
        match self {
            Self::Level => "level".to_owned(),
            Self::By(of, time) => format!("{} {} behind", told(of), span(time)),
            Self::Never(of) => format!("no {}", told(of)),
        }
    }
}

/// Two tables for people: the counts, then the nodes.
pub fn table(estate: &Estate, rows: &Rows, out: &mut dyn Write) -> io::Result<()> {
    let summary = estate.summary();
    let lines: Vec<_> = known(estate, &summary)
        .chain([("all", &summary.all)])
        .map(|(name, counts)| counted(name, counts))
        .collect();
    let mut head = vec!["BACKEND"];
    head.extend([
        "HELD", "OWNED", "ACTIVE", "INACTIVE", "ONLY", "SHARED", "STALE",
    ]);
    head.extend(estate.moved.is_some().then_some("MOVED"));
    let head: Vec<_> = head.into_iter().map(str::to_owned).collect();
    let all: Vec<_> = [head].into_iter().chain(lines).collect();
    let widths = widths(all.iter().map(Vec::as_slice));
    for line in &all {
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            match at {
                0 => write!(out, "{cell:<width$}")?,
                _ => write!(out, "  {cell:>width$}")?,
            }
        }
        writeln!(out)?;
    }
    for (backend, why) in &estate.missing {
        writeln!(out, "{} is missing: {why}", estate.name(*backend))?;
    }
    let line = |node: &Node<'_>| listed(estate, node);
    let head = ["CERTNAME", "OWNER", "WHY", "OTHER COPIES"].map(str::to_owned);
    if rows.of(estate).next().is_none() {
        return Ok(());
    }
    writeln!(out)?;
    // Twice through the nodes, so that no line has to be kept.
    let mut widths = head.clone().map(|cell| cell.chars().count());
    for node in rows.of(estate) {
        for (width, cell) in widths.iter_mut().zip(line(&node)) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for cells in [head]
        .into_iter()
        .chain(rows.of(estate).map(|node| line(&node)))
    {
        let [certname, owner, why, others] = cells;
        let [first, second, third, _] = widths;
        let text = format!("{certname:<first$}  {owner:<second$}  {why:<third$}  {others}");
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

/// The counts of the backends that are not missing.
fn known<'e>(
    estate: &'e Estate,
    summary: &'e Summary,
) -> impl Iterator<Item = (&'e str, &'e Counts)> {
    let backends = estate.backends.iter().zip(&summary.backends);
    let told = backends.filter(|(name, _)| {
        let mut missing = estate.missing.iter();
        !missing.any(|(backend, _)| estate.name(*backend) == *name)
    });
    told.map(|(name, counts)| (name.as_str(), counts))
}

fn counted(name: &str, counts: &Counts) -> Vec<String> {
    let Counts {
        held,
        owned,
        active,
        inactive,
        only,
        shared,
        stale,
        moved,
    } = counts;
    let numbers = [held, owned, active, inactive, only, shared, stale];
    let numbers = numbers.into_iter().chain(moved).map(u64::to_string);
    [name.to_owned()].into_iter().chain(numbers).collect()
}

fn widths<'l>(lines: impl Iterator<Item = &'l [String]>) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for line in lines {
        widths.resize(widths.len().max(line.len()), 0);
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

fn listed(estate: &Estate, node: &Node<'_>) -> [String; 4] {
    let inactive = |copy: &NodeCopy| match copy.state {
        State::Active => "",
        State::Inactive => ", inactive",
    };
    let stale = |behind: Behind| if behind.is_stale() { ", stale" } else { "" };
    let owner = node.owner();
    let mut why = format!("{}{}", node.why.sentence(), inactive(owner));
    if owner.behind.is_stale() {
        why.push_str(", stale");
    }
    if node.moved == Some(true) {
        why.push_str(", moved");
    }
    let others = node.copies.iter().skip(1).map(|copy| {
        format!(
            "{} ({}{}{})",
            estate.name(copy.backend),
            copy.behind.sentence(),
            stale(copy.behind),
            inactive(copy)
        )
    });
    [
        // What a terminal would obey is no part of a name that anybody gave.
        node.certname.replace(char::is_control, "\u{fffd}"),
        estate.name(owner.backend).to_owned(),
        why,
        others.collect::<Vec<_>>().join(", "),
    ]
}

/// One JSON object, described in docs/estate.md.
pub fn json(estate: &Estate, rows: &Rows, out: &mut dyn Write) -> io::Result<()> {
    let summary = estate.summary();
    let backends: Vec<_> = known(estate, &summary)
        .map(|(name, counts)| Named { name, counts })
        .collect();
    let missing = estate.missing.iter();
    let missing: Vec<_> = missing
        .map(|(backend, why)| json!({"name": estate.name(*backend), "why": why}))
        .collect();
    let since = estate.moved.as_ref().map(|moved| time(moved.since));
    let head = [
        ("at", json!(time(estate.at))),
        ("since", json!(since)),
        ("missing", json!(missing)),
        ("all", json!(summary.all)),
        ("backends", json!(backends)),
    ];
    write!(out, "{{")?;
    for (key, value) in head {
        write!(out, "\"{key}\":{value},\n ")?;
    }
    write!(out, "\"nodes\":[")?;
    for (at, node) in rows.of(estate).enumerate() {
        out.write_all(if at == 0 { b"\n  " } else { b",\n  " })?;
        write!(out, "{}", described(estate, &node))?;
    }
    writeln!(out, "]}}")
}

#[derive(Serialize)]
struct Named<'e> {
    name: &'e str,
    #[serde(flatten)]
    counts: &'e Counts,
}

fn time(moment: Timestamp) -> String {
    format!("{moment:.3}")
}

fn stamp(copy: &NodeCopy, of: Told) -> Option<String> {
    copy.stamp.of(of).map(time)
}

fn described(estate: &Estate, node: &Node<'_>) -> serde_json::Value {
    let copies: Vec<_> = node
        .copies
        .iter()
        .map(|copy| {
            let (what, seconds) = lag(copy.behind);
            json!({
                "backend": estate.name(copy.backend),
                "report_timestamp": stamp(copy, Told::Report),
                "facts_timestamp": stamp(copy, Told::Facts),
                "catalog_timestamp": stamp(copy, Told::Catalog),
                "active": copy.state == State::Active,
                "stale": copy.behind.is_stale(),
                "behind": what,
                "behind_seconds": seconds,
            })
        })
        .collect();
    json!({
        "certname": node.certname,
        "owner": estate.name(node.owner().backend),
        "why": reason(node.why),
        "active": node.is_active(),
        "stale": node.is_stale(),
        "moved": node.moved,
        "copies": copies,
    })
}

/// What of a copy is older, and by how much if it is there at all.
fn lag(behind: Behind) -> (Option<&'static str>, Option<f64>) {
    match behind {
        Behind::Level => (None, None),
        Behind::By(of, time) => (Some(told(of)), Some(time.as_secs_f64())),
        Behind::Never(of) => (Some(told(of)), None),
    }
}

/// A head, then a line for each copy of a node, as RFC 4180 has it but for the line ends.
pub fn csv(estate: &Estate, rows: &Rows, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "certname,backend,owner,why,moved,active,stale,behind,behind_seconds,report_timestamp,\
         facts_timestamp,catalog_timestamp"
    )?;
    for node in rows.of(estate) {
        for (at, copy) in node.copies.iter().enumerate() {
            let (what, seconds) = lag(copy.behind);
            let cells = [
                field(&node.certname),
                field(estate.name(copy.backend)),
                (at == 0).to_string(),
                reason(node.why).to_owned(),
                node.moved.map(|it| it.to_string()).unwrap_or_default(),
                (copy.state == State::Active).to_string(),
                copy.behind.is_stale().to_string(),
                what.unwrap_or_default().to_owned(),
                seconds.map(|it| it.to_string()).unwrap_or_default(),
                stamp(copy, Told::Report).unwrap_or_default(),
                stamp(copy, Told::Facts).unwrap_or_default(),
                stamp(copy, Told::Catalog).unwrap_or_default(),
            ];
            writeln!(out, "{}", cells.join(","))?;
        }
    }
    Ok(())
}

fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
