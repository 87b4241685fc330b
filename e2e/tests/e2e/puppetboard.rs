//! Puppetboard as a client (R016, R299): every page it has, over HTTP.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use pdbmux_e2e::daemon::{Daemon, puppetboard};
use pdbmux_e2e::estate::{ONLY_IN_B, Side, State, Strategy};
use serde_json::Value;

use crate::world::{World, rows};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r016_r299_every_page_shows_both_backends,
    r240_an_environment_of_the_second_backend_has_no_pages,
];

/// Nodes that one backend alone holds.
pub(crate) const OF_A: &str = "web1.example.com";
pub(crate) const OF_B: &str = "app1.example.com";

/// How Puppetboard writes all environments.
pub(crate) const ALL: &str = "/%2A";

fn r016_r299_every_page_shows_both_backends(world: &World) -> Result<()> {
    let board = puppetboard(&world.settings, &world.pdbmux.client)?;
    for (environment, names) in [
        (ALL, shown(world, None)),
        ("", shown(world, Some("production"))),
    ] {
        for path in pages(world)? {
            page(&board, &format!("{environment}{}", path.0), path.1)?;
        }
        complete(world, &board, environment, &names)?;
    }
    Ok(())
}

/// Every page of Puppetboard, and what it must show.
pub(crate) fn pages(world: &World) -> Result<Vec<(String, &'static [&'static str])>> {
    let window = "length=100&start=0&draw=1";
    let (a, b) = (report(world, OF_A)?, report(world, OF_B)?);
    let fixed: &[(&str, &[&str])] = &[
        ("/", &["Puppetboard", OF_A, OF_B]),
        ("/radiator", &["Total"]),
        ("/nodes", &[OF_A, OF_B]),
        ("/nodes?status=failed", &[]),
        ("/nodes?status=unreported", &[OF_A, OF_B]),
        ("/node/web1.example.com", &[OF_A]),
        ("/node/app1.example.com", &[OF_B]),
        (
            "/node/web1.example.com/facts/json",
            &["only_in_a", "pdbmux_source"],
        ),
        (
            "/node/app1.example.com/facts/json",
            &["only_in_b", "pdbmux_source"],
        ),
        ("/inventory", &["Inventory"]),
        ("/inventory/json", &[OF_A, OF_B]),
        ("/reports", &["Reports"]),
        ("/reports/app1.example.com", &[OF_B]),
        // A failing node of each.
        ("/failures", &["Web-02.Example.COM", "App-02.Example.COM"]),
        ("/facts", &["only_in_a", "only_in_b", "pdbmux_source"]),
        ("/fact/site", &["site"]),
        ("/fact/site/json", &[OF_A, OF_B]),
        ("/fact/site/a", &["site"]),
        ("/fact/site/a/json", &[OF_A]),
        ("/fact/site/b/json", &[OF_B]),
        ("/fact/os.family/json", &[OF_A, OF_B]),
        ("/fact/networking/json", &[OF_A, OF_B]),
        ("/fact/networking/children/json", &["networking.interfaces"]),
        (
            "/fact/pdbmux_source/json",
            &[OF_A, OF_B, "edge1.example.com"],
        ),
        (
            "/metrics",
            &["puppetlabs.puppetdb.population:name=num-nodes"],
        ),
        (
            "/metric/puppetlabs.puppetdb.population:name=num-nodes",
            &["Value"],
        ),
        ("/catalogs", &["Catalogs"]),
        ("/catalog/web1.example.com", &["/etc/motd", "Stage"]),
        ("/catalog/app1.example.com", &["/etc/motd", "Stage"]),
        ("/catalogs/compare/web1.example.com", &[OF_A]),
        (
            "/catalogs/compare/web1.example.com...app1.example.com",
            &[OF_A, OF_B, "/etc/motd"],
        ),
        ("/classes", &["Classes"]),
        ("/classes/json", &["Main"]),
        ("/class_resource/Main", &["Main"]),
        (
            "/class_resource/Main/json",
            &["Web-02.Example.COM", "App-02.Example.COM"],
        ),
        ("/daily_reports_chart.json", &["result"]),
        (
            "/daily_reports_chart.json?certname=app1.example.com",
            &["result"],
        ),
        ("/query", &["Query"]),
    ];
    let mut all: Vec<(String, &[&str])> = fixed
        .iter()
        .map(|(path, texts)| ((*path).to_owned(), *texts))
        .collect();
    let made: [(String, &[&str]); 5] = [
        (format!("/reports/json?{window}"), &[OF_A, OF_B]),
        (format!("/reports/{OF_B}/json?{window}"), &[OF_B]),
        (format!("/report/{OF_A}/{a}"), &[OF_A, "Applied catalog"]),
        (format!("/report/{OF_B}/{b}"), &[OF_B, "Applied catalog"]),
        (
            format!("/catalogs/compare/{OF_A}/json?{window}"),
            &[OF_A, OF_B],
        ),
    ];
    all.extend(made);
    Ok(all)
}

/// The lists hold every node once, and every report.
fn complete(
    world: &World,
    board: &Daemon,
    environment: &str,
    names: &BTreeSet<&str>,
) -> Result<()> {
    let (link, listed) = match environment {
        ALL => ("<td><a href=\"/*/node/", names.len()),
        // By the catalog's environment, which the silent lack.
        _ => (
            "<td><a href=\"/node/",
            names.iter().filter(|name| reported(world, name)).count(),
        ),
    };
    let nodes = page(board, &format!("{environment}/nodes"), &[])?;
    let rows = nodes.matches(link).count();
    ensure!(rows == listed, "{environment}/nodes: {rows} of {listed}");
    for path in [
        "/inventory/json",
        "/fact/site/json",
        "/fact/pdbmux_source/json",
    ] {
        let path = format!("{environment}{path}");
        let answer: Value = serde_json::from_str(&page(board, &path, &[])?)?;
        let rows = answer["data"].as_array().map_or(0, Vec::len);
        ensure!(
            rows == names.len(),
            "{path}: {rows} of {} nodes",
            names.len()
        );
    }
    let path = format!("{environment}/reports/json?length=1000&start=0&draw=1");
    let answer: Value = serde_json::from_str(&page(board, &path, &[])?)?;
    let listed = answer["data"].as_array().map_or(0, Vec::len);
    let wanted = match environment {
        ALL => world.query("reports", &[])?,
        _ => world.query(
            "reports",
            &[("query", r#"["=","environment","production"]"#)],
        )?,
    };
    let wanted = wanted.records()?.len();
    ensure!(listed == wanted, "{path}: {listed} of {wanted} reports");
    Ok(())
}

fn r240_an_environment_of_the_second_backend_has_no_pages(world: &World) -> Result<()> {
    // `/environments` is the first backend's answer; a page of an environment that it does not
    // list is a 404 of Puppetboard's own.
    let board = puppetboard(&world.settings, &world.pdbmux.client)?;
    for path in [
        "/",
        "/nodes",
        "/facts",
        "/reports",
        "/fact/site/json",
        "/catalogs",
    ] {
        let answer = board.client.get(&format!("/{ONLY_IN_B}{path}"), &[])?;
        ensure!(answer.status == 404, "{path}: {}", answer.status);
    }
    // Its nodes are seen all the same, under all environments.
    page(&board, &format!("{ALL}/nodes"), &["staging1.example.com"])?;
    drop(board);

    // Where the backend that knows it comes first, it has pages.
    let [a, b] = [Side::A, Side::B]
        .map(|side| format!("{}={}", world.name(side), world.backend(side).base()));
    let turned = world.pdbmux_with(&[("PDBMUX_BACKENDS", &format!("{b},{a}"))])?;
    let board = puppetboard(&world.settings, &turned.client)?;
    for (path, shown) in [
        ("/", "staging1.example.com"),
        ("/nodes", "staging2.example.com"),
        ("/fact/site/json", "moved.example.com"),
    ] {
        page(&board, &format!("/{ONLY_IN_B}{path}"), &[shown])?;
    }
    Ok(())
}

/// A page's text: a 200 without a word of failure, and with `texts`.
pub(crate) fn page(board: &Daemon, path: &str, texts: &[&str]) -> Result<String> {
    let answer = board.client.get(path, &[])?;
    ensure!(
        answer.status == 200 && !answer.body.contains("Permission Denied"),
        "{path}: {} {}\n{}",
        answer.status,
        answer.body,
        board.process.tail()
    );
    for text in texts {
        ensure!(answer.body.contains(text), "{path} does not show {text}");
    }
    Ok(answer.body)
}

/// The nodes that are shown, of one environment if given: of those that a copy places there,
/// since a stale copy may match where the newest does not (R047).
fn shown(world: &World, environment: Option<&str>) -> BTreeSet<&'static str> {
    let nodes = world.estate.nodes.iter();
    nodes
        .filter(|node| {
            let owner = node.owner(Strategy::Freshness);
            let mut active = node.story.holdings().into_iter();
            owner.is_some()
                && active.any(|held| {
                    held.state == State::Active
                        && environment.is_none_or(|wanted| node.environment(held.side) == wanted)
                })
        })
        .map(|node| node.certname)
        .collect()
}

/// Whether its shown copy ever ran.
fn reported(world: &World, certname: &str) -> bool {
    let node = world.estate.nodes.iter().find(|it| it.certname == certname);
    node.is_some_and(|node| {
        let owner = node.owner(Strategy::Freshness);
        let mut holdings = node.story.holdings().into_iter();
        holdings.any(|held| Some(held.side) == owner && held.run.is_some())
    })
}

fn report(world: &World, certname: &str) -> Result<String> {
    let query = format!(r#"["=","certname","{certname}"]"#);
    let reports = rows(&world.query("reports", &[("query", &query)])?)?;
    let hash = reports.first().and_then(|row| row["hash"].as_str());
    Ok(hash.context("no report")?.to_owned())
}
