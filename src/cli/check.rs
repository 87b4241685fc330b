//! What can be typed behind `check`.

use clap::{Args, ValueEnum};

/// What can be typed behind `check`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CheckArgs {
    /// Look at the backend of this name alone
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// How to print what is found
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// End with status 1 for warnings too
    #[arg(long)]
    pub strict: bool,
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A table for people
    Text,
    /// One JSON object
    Json,
}
