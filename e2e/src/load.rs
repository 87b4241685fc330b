//! Loads the estate through the command API and waits until it is stored (R297, R298).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::estate::{Command, Estate, Node, Side};
use crate::http::Client;
use crate::process::poll;
use crate::puppetdb::queue_depth;

/// Nodes loaded at the same time.
const WORKERS: usize = 6;

/// How long a PuppetDB may take for its queue after the last command.
const DRAIN: Duration = Duration::from_mins(1);

/// Sends every node to the backends that hold it, and to the oracle; gives the number of
/// commands.
pub fn load(estate: &Estate, [a, b]: [&Client; 2], oracle: Option<&Client>) -> Result<usize> {
    let next = AtomicUsize::new(0);
    let sent = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(node) = estate.nodes.get(next.fetch_add(1, Ordering::Relaxed)) {
            sent.fetch_add(load_node(node, a, b, oracle)?, Ordering::Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .map_err(|_| anyhow!("a loading thread died"))?
        })
    })?;
    for client in [a, b].into_iter().chain(oracle) {
        poll(Instant::now() + DRAIN, || {
            (queue_depth(client)? == 0).then_some(())
        })
        .with_context(|| format!("{} has not emptied its queue", client.base()))?;
    }
    Ok(sent.into_inner())
}

/// Backend b first: where nothing else decides, the later receipt times are backend a's, so
/// that a tie goes to a by every rule.
fn load_node(node: &Node, a: &Client, b: &Client, oracle: Option<&Client>) -> Result<usize> {
    let mut batches = vec![(b, node.commands(Side::B)?), (a, node.commands(Side::A)?)];
    if let Some(oracle) = oracle {
        batches.push((oracle, node.oracle_commands()?));
    }
    let mut sent = 0;
    for (client, commands) in &batches {
        for command in commands {
            send(client, command)?;
        }
        sent += commands.len();
    }
    Ok(sent)
}

fn send(client: &Client, command: &Command) -> Result<()> {
    let answer = client.post(
        "/pdb/cmd/v1",
        &[
            ("command", command.name),
            ("version", command.version),
            ("certname", &command.certname),
            ("producer-timestamp", &command.produced),
            ("secondsToWaitForCompletion", "60"),
        ],
        &command.body,
    )?;
    let processed = answer
        .json::<Value>()
        .is_ok_and(|body| body["processed"] == true);
    ensure!(
        answer.status == 200 && processed,
        "{} of {} on {}: {} {}",
        command.name,
        command.certname,
        client.base(),
        answer.status,
        answer.body
    );
    Ok(())
}
