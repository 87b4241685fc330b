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

/// What one PuppetDB is sent of one node, in order.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// The PuppetDB.
    pub client: &'a Client,
    /// The commands.
    pub commands: Vec<Command>,
}

/// Sends every node to the backends that hold it, and to the oracle; gives the number of
/// commands.
///
/// Backend b first: where nothing else decides, the later receipt times are backend a's, so
/// that a tie goes to a by every rule.
pub fn load(estate: &Estate, [a, b]: [&Client; 2], oracle: Option<&Client>) -> Result<usize> {
    let of_node = |node: &Node| -> Result<Vec<Batch<'_>>> {
        let mut batches = Vec::new();
        for (client, side) in [(b, Side::B), (a, Side::A)] {
            let commands = node.commands(side)?;
            batches.push(Batch { client, commands });
        }
        if let Some(client) = oracle {
            let commands = node.oracle_commands()?;
            batches.push(Batch { client, commands });
        }
        Ok(batches)
    };
    let nodes: Vec<_> = estate.nodes.iter().map(of_node).collect::<Result<_>>()?;
    let all: Vec<_> = [a, b].into_iter().chain(oracle).collect();
    deliver(&nodes, &all)
}

/// Sends each node's batches one after the other, several nodes at a time, and waits until
/// `all` have emptied their queues; gives the number of commands.
pub fn deliver(nodes: &[Vec<Batch<'_>>], all: &[&Client]) -> Result<usize> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(node) = nodes.get(next.fetch_add(1, Ordering::Relaxed)) {
            for batch in node {
                for command in &batch.commands {
                    send(batch.client, command)?;
                }
            }
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
    for client in all {
        poll(Instant::now() + DRAIN, || {
            (queue_depth(client)? == 0).then_some(())
        })
        .with_context(|| format!("{} has not emptied its queue", client.base()))?;
    }
    let batches = nodes.iter().flatten();
    Ok(batches.map(|batch| batch.commands.len()).sum())
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
