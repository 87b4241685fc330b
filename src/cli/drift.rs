//! What can be typed behind `drift`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::config::duration;

/// What can be typed behind `drift`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DriftArgs {
    /// Tell which nodes moved in this time, such as 24h
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive)]
    pub since: Option<Duration>,
    /// List the nodes with backend=NAME, owner=NAME, certname=PART or state=shared, only, stale, moved, active or inactive; several must all hold
    #[arg(long, value_name = "KEY=VALUE")]
    pub filter: Vec<String>,
    /// List no nodes
    #[arg(long)]
    pub summary: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = DriftFormat::Text)]
    pub format: DriftFormat,
    /// End with status 3 if this holds, such as 'active(pdb-old) > 0 or stale > 10'
    #[arg(long, value_name = "EXPRESSION")]
    pub fail_if: Option<String>,
}

/// How the estate is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DriftFormat {
    /// Tables for people
    Text,
    /// One JSON object
    Json,
    /// A line for each copy of a node
    Csv,
}
