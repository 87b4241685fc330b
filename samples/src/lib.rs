//! Small in-process PuppetDBs: sample data, and a well-behaved server for it.
//!
//! An [`Estate`] is what one PuppetDB holds: a version and a list of records per [`Entity`].
//! [`Estate::answer`] is a pure function from a request to what PuppetDB would answer; it covers a
//! true subset of the v4 query API and refuses the rest with `400`, so that no answer is silently
//! wrong. [`serve`] puts it on a loopback port that can be stopped and restarted.
//! [`migration`] makes the two estates of `pdbmux demo`.

mod answer;
mod compare;
mod counts;
mod decimal;
mod estate;
mod extract;
mod fault;
mod field;
mod filter;
pub mod migration;
mod order;
mod params;
mod pattern;
mod render;
mod route;
mod schema;
mod select;
mod server;
mod status;
mod time;

pub use answer::{Answer, Request};
pub use estate::Estate;
pub use schema::Entity;
pub use server::{Server, serve};
pub use time::Timestamp;
