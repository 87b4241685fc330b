//! The client's side: connections, requests, and the answers' heads and bodies.

pub(crate) mod admin;
mod body;
mod cached;
pub(crate) mod certificates;
mod connection;
mod crowd;
mod current;
mod door;
mod encoding;
mod explain;
mod fan;
mod healthz;
mod origin;
mod parameters;
mod partial;
mod pql;
mod priors;
mod reading;
mod reloads;
mod replay;
mod respond;
mod rounds;
mod seeing;
mod serve;
mod server;
mod shares;
mod stream;
mod turns;

pub(crate) use crowd::Crowd;
pub(crate) use current::Current;
pub(crate) use door::Door;
pub use door::DoorError;
pub(crate) use serve::App;
pub(crate) use server::{Ending, serve};
