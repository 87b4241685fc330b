//! `merge: exact`: each backend asked for its own, so that the answers add up to one PuppetDB's.

mod backend;
mod children;
pub(crate) mod estate;
mod explain;
mod history;
mod newest;
mod population;
mod pql;
mod recent;
mod root;
mod sets;
mod shares;
mod subjects;
mod subqueries;
mod unlisted;
