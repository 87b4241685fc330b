//! `merge: exact`: each backend asked for its own, so that the answers add up to one PuppetDB's.

mod backend;
mod explain;
mod history;
mod sets;
mod shares;
mod subjects;
