//! Real PuppetDBs for pdbmux's end-to-end tests.
//!
//! A [`rig::Rig`] is two backends and an oracle, each with a database of its own. The
//! [`estate`] is what they hold: every node is in one backend, in both, newer here or
//! there, tied, silent or deactivated. The tests in `tests/e2e` start the real pdbmux in
//! front of the two and compare what it says with what the PuppetDBs say.

pub mod cores;
pub mod daemon;
pub mod estate;
pub mod http;
pub mod load;
pub mod oracle;
pub mod postgres;
pub mod process;
pub mod puppetdb;
pub mod records;
pub mod rig;
pub mod server;
pub mod settings;
pub mod tls;
