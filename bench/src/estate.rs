//! Estates: what each backend answers, as files that nginx serves.
//!
//! A file is written once and found again, for the same estate always has the same bytes.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// How large an estate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// Nodes in each backend.
    pub(crate) nodes: usize,
    /// Facts of each node.
    pub(crate) facts: usize,
}

pub(crate) const S: Size = Size {
    name: "S",
    nodes: 200,
    facts: 60,
};
pub(crate) const M: Size = Size {
    name: "M",
    nodes: 5_000,
    facts: 100,
};
pub(crate) const L: Size = Size {
    name: "L",
    nodes: 20_000,
    facts: 200,
};

/// Over how many backends an estate of the same size each is measured.
pub(crate) const BACKENDS: [usize; 4] = [1, 2, 4, 8];

/// One node in ten is held by the next backend as well, which has it newer.
const SHARED: usize = 10;

/// Events of each node.
const EVENTS: usize = 10;

/// What a backend lists all of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Facts,
    Nodes,
    Events,
}

impl List {
    /// Where it is asked for, and the name of its file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Facts => "facts",
            Self::Nodes => "nodes",
            Self::Events => "events",
        }
    }

    /// How many records of it a backend of this size sends.
    pub(crate) fn records(self, size: Size) -> usize {
        size.nodes
            * match self {
                Self::Facts => size.facts,
                Self::Nodes => 1,
                Self::Events => EVENTS,
            }
    }
}

/// The folders of `backends` backends that hold an estate of this size together, with what they
/// answer.
pub(crate) fn of(root: &Path, size: Size, backends: usize) -> Result<Vec<PathBuf>> {
    let backends = 0..backends;
    backends
        .map(|backend| one(&root.join(size.name), size, backend))
        .collect()
}

/// Adds the events to what they answer.
pub(crate) fn add_events(folders: &[PathBuf], size: Size) -> Result<()> {
    for (folder, backend) in folders.iter().zip(0..) {
        let events = nodes(size, backend).flat_map(|node| (0..EVENTS).map(move |at| (node, at)));
        write(&folder.join("events.json"), |out| {
            array(out, events, |out, (node, at)| event(out, node, at))
        })?;
    }
    Ok(())
}

/// The nodes that a backend holds.
fn nodes(size: Size, backend: usize) -> std::ops::Range<usize> {
    let first = backend * (size.nodes - size.nodes / SHARED);
    first..first + size.nodes
}

/// Entries of the lists that are served from the cache: `(name of the fact, records)`, about 32 KB
/// and 5 MB.
pub(crate) const CACHED: [(&str, usize); 2] = [("small", 240), ("large", 40_000)];

/// One file for each of [`CACHED`], in `root`.
pub(crate) fn cached(root: &Path) -> Result<PathBuf> {
    let folder = root.join("cached");
    fs::create_dir_all(&folder)?;
    for (name, records) in CACHED {
        write(&folder.join(format!("{name}.json")), |out| {
            array(out, 0..records, |out, node| fact(out, node, 0, name))
        })?;
    }
    Ok(folder)
}

fn one(root: &Path, size: Size, backend: usize) -> Result<PathBuf> {
    let folder = root.join(backend.to_string());
    fs::create_dir_all(&folder)?;
    let nodes = nodes(size, backend);
    // What the next backend owns is left out of this one's share, but for the last backend, whose
    // share is cut the same so that one file serves any number of backends.
    let owned = nodes.start..nodes.end - size.nodes / SHARED;
    write(&folder.join("facts.json"), |out| {
        each_fact(out, nodes.clone(), size.facts)
    })?;
    write(&folder.join("owned.json"), |out| {
        each_fact(out, owned.clone(), size.facts)
    })?;
    write(&folder.join("nodes-owned.json"), |out| {
        array(out, owned, |out, at| node(out, at, backend))
    })?;
    write(&folder.join("nodes.json"), |out| {
        array(out, nodes, |out, at| node(out, at, backend))
    })?;
    write(&folder.join("count.json"), |out| {
        write!(out, r#"[{{"count":{}}}]"#, size.nodes)
    })?;
    Ok(folder)
}

/// Writes a file unless it is there; what was cut short never has its name.
fn write(
    file: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    let part = file.with_extension("part");
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
        content(&mut out)?;
        out.flush()?;
        fs::rename(&part, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

fn array<T>(
    out: &mut impl Write,
    items: impl Iterator<Item = T>,
    mut item: impl FnMut(&mut dyn Write, T) -> std::io::Result<()>,
) -> std::io::Result<()> {
    out.write_all(b"[")?;
    for (count, at) in items.enumerate() {
        if count > 0 {
            out.write_all(b",")?;
        }
        item(&mut *out, at)?;
    }
    out.write_all(b"]")
}

fn each_fact(
    out: &mut impl Write,
    nodes: std::ops::Range<usize>,
    facts: usize,
) -> std::io::Result<()> {
    let records = nodes.start * facts..nodes.end * facts;
    array(out, records, |out, at| {
        let (node, at) = (at / facts, at % facts);
        fact(out, node, at, &format!("fact_{at}"))
    })
}

/// A fact as agents send them: most are short words, some numbers, some trees.
fn fact(out: &mut dyn Write, node: usize, at: usize, name: &str) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"certname":"node-{node:07}.eu-central.example.com","environment":"production","name":"{name}","value":"#
    )?;
    match at % 10 {
        0..6 => write!(out, r#""value of {at}"}}"#),
        6 | 7 => write!(out, "{}}}", at * 1_048_576 + node),
        8 => write!(out, "true}}"),
        _ => write!(
            out,
            r#"{{"full":"8.15.{node}","major":"8","mounts":{{"/":{{"size":"20 GiB","options":["rw","relatime"]}}}}}}}}"#
        ),
    }
}

fn node(out: &mut dyn Write, node: usize, backend: usize) -> std::io::Result<()> {
    // A later backend has what both hold newer.
    let time = format!("2026-11-30T{:02}:{:02}:00.014Z", backend, node % 60);
    write!(
        out,
        r#"{{"deactivated":null,"latest_report_hash":"{node:040x}","facts_environment":"production","cached_catalog_status":"not_used","report_environment":"production","latest_report_corrective_change":false,"catalog_environment":"production","facts_timestamp":"{time}","latest_report_noop":false,"expired":null,"latest_report_noop_pending":false,"report_timestamp":"{time}","certname":"node-{node:07}.eu-central.example.com","catalog_timestamp":"{time}","latest_report_job_id":null,"latest_report_status":"unchanged"}}"#
    )
}

/// An event of a node's last report. Whoever holds the node has the same.
fn event(out: &mut dyn Write, node: usize, at: usize) -> std::io::Result<()> {
    let time = format!("2026-11-30T00:{:02}:{at:02}.014Z", node % 60);
    write!(
        out,
        r#"{{"new_value":"present","corrective_change":false,"property":"ensure","file":"/etc/puppetlabs/code/environments/production/modules/profile/manifests/part_{at}.pp","old_value":"absent","containing_class":"Profile::Part_{at}","report_receive_time":"{time}","line":{line},"resource_title":"/srv/part_{at}","status":"success","configuration_version":"1764460800","run_start_time":"{time}","resource_type":"File","environment":"production","timestamp":"{time}","run_end_time":"{time}","containment_path":["Stage[main]","Profile::Part_{at}","File[/srv/part_{at}]"],"certname":"node-{node:07}.eu-central.example.com","report":"{node:040x}","message":"created","name":null}}"#,
        line = 10 + at,
    )
}
