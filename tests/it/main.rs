//! Integration tests: the whole daemon in one process, against scripted backends on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod aggregates;
mod cache;
mod check;
mod cli;
mod client;
mod connections;
mod counts;
mod deploy;
mod door;
mod drain;
mod drift;
mod ejection;
mod exact;
mod facts;
mod freshness;
mod groups;
mod gzip;
mod harness;
mod health;
mod history;
mod http2;
mod killed;
mod listeners;
mod makefile;
mod matrix;
mod meta;
mod metrics;
mod names;
mod nodes;
mod owner;
mod page;
mod paging;
mod partial;
mod pass_through;
mod paths;
mod post;
mod refusals;
mod reload;
mod report;
mod requirements;
mod seeing;
mod shape;
mod source_fact;
mod stream;
mod stub;
mod tls;
mod transfer;
