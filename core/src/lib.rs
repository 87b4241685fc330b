//! The decisions of pdbmux, without any I/O.
//!
//! Bytes and values come in, decisions and ranges of bytes go out. Nothing here knows tokio,
//! hyper, clocks or the environment: whatever a decision needs from them is an argument.

pub mod answer;
pub mod health;
pub mod json;
pub mod merge;
pub mod paging;
pub mod params;
pub mod plan;
pub mod provenance;
pub mod query;
pub mod refusal;
pub mod round;
pub mod route;
pub mod settings;

pub use refusal::Refusal;
