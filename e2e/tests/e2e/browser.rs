//! Puppetboard's pages in a browser: their tables are filled by scripts that ask for more.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pdbmux_e2e::daemon::{Daemon, puppetboard};

use crate::puppetboard::{ALL, OF_A, OF_B, pages};
use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r016_r299_tables_filled_by_scripts_show_both_backends,
    r016_every_page_opens_in_a_browser,
];

/// Virtual milliseconds a page gets to load: they pass as soon as nothing is awaited.
const BUDGET: u32 = 10_000;

fn r016_r299_tables_filled_by_scripts_show_both_backends(world: &World) -> Result<()> {
    let board = puppetboard(&world.settings, &world.pdbmux.client)?;
    let nodes = world.query("nodes", &[])?.records()?.len();
    let reports = world.query("reports", &[])?.records()?.len();
    // Puppetboard's own first page of reports and catalogs.
    for (path, shown, least) in [
        (format!("{ALL}/"), vec![OF_A, OF_B], nodes),
        (format!("{ALL}/fact/site"), vec![OF_A, OF_B], nodes),
        (format!("{ALL}/reports"), vec![OF_A, OF_B], reports.min(50)),
        (format!("{ALL}/catalogs"), vec![OF_A, OF_B], nodes.min(25)),
        (
            format!("/node/{OF_B}"),
            vec![OF_B, "only_in_b", "pdbmux_source"],
            20,
        ),
    ] {
        let dom = dom(world, &board, &path)?;
        let rows = dom.matches("<tr").count();
        ensure!(
            rows >= least,
            "{path}: {rows} rows, wanted at least {least}"
        );
        for text in shown {
            ensure!(dom.contains(text), "{path} does not show {text}");
        }
    }
    Ok(())
}

fn r016_every_page_opens_in_a_browser(world: &World) -> Result<()> {
    let board = puppetboard(&world.settings, &world.pdbmux.client)?;
    for (path, texts) in pages(world)? {
        // Data for the pages' scripts, which asks for them itself.
        if path.contains("json") {
            continue;
        }
        let dom = dom(world, &board, &format!("{ALL}{path}"))?;
        for text in texts {
            ensure!(dom.contains(text), "{path} does not show {text}");
        }
        for trouble in [
            "Internal Server Error",
            "Bad Gateway",
            "Permission Denied",
            "Not Found",
        ] {
            ensure!(!dom.contains(trouble), "{path} says {trouble}");
        }
    }
    Ok(())
}

/// The page as it stands once its scripts are done.
fn dom(world: &World, board: &Daemon, path: &str) -> Result<String> {
    let profile = world.settings.folder.join("run/chromium");
    if profile.exists() {
        fs::remove_dir_all(&profile)?;
    }
    let output = Command::new("timeout")
        .args(["--kill-after=5", "60", "chromium"])
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--dump-dom",
        ])
        .arg(format!("--virtual-time-budget={BUDGET}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("{}{path}", board.client.base()))
        .output()
        .context("no browser: run e2e/setup.sh")?;
    ensure!(
        output.status.success(),
        "{path}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::remove_dir_all(&profile)?;
    Ok(String::from_utf8(output.stdout)?)
}
