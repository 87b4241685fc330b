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

/// One node in ten is held by the next backend as well, which has it newer.
const SHARED: usize = 10;

/// The files of one backend.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) folder: PathBuf,
    /// Bytes of all its facts.
    pub(crate) facts: u64,
}

/// The files of `backends` backends that hold an estate of this size together.
pub(crate) fn of(root: &Path, size: Size, backends: usize) -> Result<Vec<Files>> {
    let backends = 0..backends;
    backends
        .map(|backend| one(&root.join(size.name), size, backend))
        .collect()
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

fn one(root: &Path, size: Size, backend: usize) -> Result<Files> {
    let folder = root.join(backend.to_string());
    fs::create_dir_all(&folder)?;
    let shared = size.nodes / SHARED;
    let first = backend * (size.nodes - shared);
    let nodes = first..first + size.nodes;
    // What the next backend owns is left out of this one's share, but for the last backend, whose
    // share is cut the same so that one file serves any number of backends.
    let owned = first..first + size.nodes - shared;
    let facts = folder.join("facts.json");
    write(&facts, |out| each_fact(out, nodes.clone(), size.facts))?;
    write(&folder.join("owned.json"), |out| {
        each_fact(out, owned, size.facts)
    })?;
    write(&folder.join("nodes.json"), |out| {
        array(out, nodes, |out, at| node(out, at, backend))
    })?;
    write(&folder.join("count.json"), |out| {
        write!(out, r#"[{{"count":{}}}]"#, size.nodes)
    })?;
    Ok(Files {
        facts: fs::metadata(&facts)?.len(),
        folder,
    })
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

fn array(
    out: &mut impl Write,
    items: impl Iterator<Item = usize>,
    mut item: impl FnMut(&mut dyn Write, usize) -> std::io::Result<()>,
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
