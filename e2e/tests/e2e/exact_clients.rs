//! Real clients before pdbmux under `merge: exact` get what they get before the oracle.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pdbmux_e2e::daemon::{Daemon, puppetboard};
use pdbmux_e2e::estate::{MOVED, ONLY_IN_B};
use pdbmux_e2e::http::Client;
use pdbmux_e2e::oracle::ground::{Before, field};
use pdbmux_e2e::rig::Size;

use crate::puppetboard::{ALL, OF_A, OF_B, page, pages};
use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    exact_puppetboard_shows_what_it_shows_of_the_oracle,
    exact_pypuppetdb_reads_what_it_reads_of_the_oracle,
    exact_puppetdb_exporter_measures_what_it_measures_of_the_oracle,
];

/// Cases of the Backstage module, which not every machine can install.
pub(crate) const BACKSTAGE: &[Case] =
    cases![exact_backstage_lists_the_entities_that_it_lists_of_the_oracle];

/// The page that shows what PostgreSQL guesses of its tables (`num-resources`): no merge can give
/// the oracle's, and as little the pages about a PuppetDB's process.
const OVERVIEW: &str = "/%2A/";

/// Pages that ask otherwise for all environments than for one.
const MAIN: [&str; 8] = [
    "/",
    "/radiator",
    "/nodes",
    "/failures",
    "/facts",
    "/fact/site/json",
    "/inventory/json",
    "/catalogs/compare/web1.example.com",
];

fn exact_puppetboard_shows_what_it_shows_of_the_oracle(world: &World) -> Result<()> {
    let (union, daemon) = exact(world)?;
    let ours = puppetboard(&world.settings, &daemon.client)?;
    let theirs = puppetboard(&world.settings, &union)?;
    let mut different = Vec::new();
    let all = pages(world)?;
    for environment in ["", ALL, &format!("/{ONLY_IN_B}")] {
        for (page, _) in &all {
            let path = format!("{environment}{page}");
            let of_a_process = path == OVERVIEW || page.starts_with("/metric");
            let is_asked = environment.is_empty() || MAIN.contains(&page.as_str());
            if of_a_process || !is_asked {
                continue;
            }
            let (got, wanted) = (ours.client.get(&path, &[])?, theirs.client.get(&path, &[])?);
            if got.status != wanted.status {
                different.push(format!("{path}: {} for {}", got.status, wanted.status));
            } else if let Some(word) = first_apart(&words(&got.body), &words(&wanted.body)) {
                different.push(format!("{path}: {word}"));
            }
        }
    }
    ensure!(different.is_empty(), "{}", different.join("\n"));
    page(
        &ours,
        &format!("/{ONLY_IN_B}/nodes"),
        &["staging1.example.com", MOVED],
    )?;
    Ok(())
}

fn exact_pypuppetdb_reads_what_it_reads_of_the_oracle(world: &World) -> Result<()> {
    let (union, daemon) = exact(world)?;
    let (got, wanted) = (calls(world, &daemon.client)?, calls(world, &union)?);
    let different: Vec<_> = wanted
        .iter()
        .filter(|(call, _)| !OF_ONE_SERVER.contains(&call.as_str()))
        .filter(|(call, said)| {
            // How a call fails is the library's matter: a redirect of a PuppetDB's is a 404 here.
            let both_fail = said.starts_with("error")
                && got.get(*call).is_some_and(|it| it.starts_with("error"));
            got.get(*call) != Some(*said) && !both_fail
        })
        .map(|(call, said)| format!("{call}: {:?} for {said}", got.get(call)))
        .collect();
    ensure!(different.is_empty(), "{}", different.join("\n"));
    ensure!(wanted.len() > 40, "only {} calls", wanted.len());
    Ok(())
}

fn exact_puppetdb_exporter_measures_what_it_measures_of_the_oracle(world: &World) -> Result<()> {
    let (union, daemon) = exact(world)?;
    let measured = |server: &Client| {
        let arguments = [port(server)?, "site", "os.family", "kernel"];
        said(world, "exporter", "exporter_metrics.py", &arguments)
    };
    let (got, wanted) = (measured(&daemon.client)?, measured(&union)?);
    ensure!(got == wanted, "got {got:#?}, wanted {wanted:#?}");
    ensure!(wanted.len() > 10, "only {} metrics", wanted.len());
    Ok(())
}

fn exact_backstage_lists_the_entities_that_it_lists_of_the_oracle(world: &World) -> Result<()> {
    let (union, daemon) = exact(world)?;
    let folder = world.settings.folder.join("backstage");
    let script = world
        .settings
        .repository
        .join("e2e/clients/backstage_entities.js");
    for query in ["", r#"["=",["fact","site"],"b"]"#] {
        let listed = |server: &Client| {
            let mut command = Command::new("node");
            command.arg(&script).arg(&folder).arg(port(server)?);
            lines(command.args([query].iter().filter(|query| !query.is_empty())))
        };
        let (got, wanted) = (listed(&daemon.client)?, listed(&union)?);
        ensure!(got == wanted, "{query}: got {got:#?}, wanted {wanted:#?}");
        ensure!(wanted.len() > 10, "only {} entities", wanted.len());
    }
    Ok(())
}

/// Calls about a server's process, and the one that fails with any.
const OF_ONE_SERVER: [&str; 7] = [
    "metric",
    "metric list",
    "metric v1",
    "current_version",
    "server_time",
    "status",
    // The route is broken in every PuppetDB (T3); pdbmux answers it.
    "report events",
];

/// The oracle, and a pdbmux under `merge: exact`.
pub(crate) fn exact(world: &World) -> Result<(Client, Daemon)> {
    let (settings, rig) = (&world.settings, &world.rig);
    let (field, _, daemon) = field(settings, rig, Size::Two, Before::Backends, "exact")?;
    Ok((field.union, daemon))
}

/// How often a page says each word. Rows are in no order; the day a PuppetDB stamped something
/// is this one, which is not in the estate, and each stamped its own time of it.
fn words(page: &str) -> BTreeMap<String, i64> {
    const YEARS: [&str; 4] = ["2026-", "2027-", "2028-", "2029-"];
    let mut counts = BTreeMap::new();
    let mut after_a_day = false;
    let apart = |letter: char| letter.is_whitespace() || "<>\"',;&".contains(letter);
    for word in page.split(apart).filter(|word| !word.is_empty()) {
        let is_day = YEARS.iter().any(|year| word.starts_with(year));
        let is_time = after_a_day && word.contains(':');
        let word = if is_day || is_time || is_age(word) {
            "<stamped>"
        } else {
            word
        };
        *counts.entry(word.to_owned()).or_default() += 1;
        after_a_day = is_day;
    }
    counts
}

/// `639d`, `1H`, `15M`: how long ago, which the clock may change between two pages.
fn is_age(word: &str) -> bool {
    word.strip_suffix(['d', 'H', 'M'])
        .is_some_and(|count| !count.is_empty() && count.bytes().all(|it| it.is_ascii_digit()))
}

fn first_apart(got: &BTreeMap<String, i64>, wanted: &BTreeMap<String, i64>) -> Option<String> {
    let mut all = got.keys().chain(wanted.keys());
    let word = all.find(|word| got.get(*word) != wanted.get(*word))?;
    Some(format!(
        "{word:?} is there {} times, not {}",
        got.get(word).unwrap_or(&0),
        wanted.get(word).unwrap_or(&0)
    ))
}

/// What each call of pypuppetdb came back with: how much, and a digest of what was said.
fn calls(world: &World, server: &Client) -> Result<BTreeMap<String, String>> {
    let arguments = ["--digest", port(server)?, OF_A, OF_B];
    said(world, "venv", "pypuppetdb_calls.py", &arguments)
}

/// Runs a script of `clients/` with the Python of `venv`; what it says of each thing.
fn said(
    world: &World,
    venv: &str,
    script: &str,
    arguments: &[&str],
) -> Result<BTreeMap<String, String>> {
    let settings = &world.settings;
    let mut command = Command::new(settings.folder.join(venv).join("bin/python"));
    command.arg(settings.repository.join("e2e/clients").join(script));
    lines(command.args(arguments))
}

/// Runs a program that prints lines of a thing, a tab, and what is said of it.
pub(crate) fn lines(command: &mut Command) -> Result<BTreeMap<String, String>> {
    let output = command.output().with_context(|| {
        let program = command.get_program().display();
        format!("{program} is not installed: run e2e/setup.sh")
    })?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout)?;
    let pair = |line: &str| -> Result<(String, String)> {
        let (thing, said) = line.split_once('\t').context("a line without a tab")?;
        Ok((thing.to_owned(), said.to_owned()))
    };
    lines.lines().map(pair).collect()
}

fn port(server: &Client) -> Result<&str> {
    let (_, port) = server.base().rsplit_once(':').context("no port")?;
    Ok(port)
}
