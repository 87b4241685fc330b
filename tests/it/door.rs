//! Who is let in, and how many at one time.

pub(crate) mod backends;
mod browsers;
mod guard;
pub(crate) mod limits;
mod listeners;
mod paths;
mod tls;

const NODES: &str = "/pdb/query/v4/nodes";
const FACTS: &str = "/pdb/query/v4/facts";
const ENVIRONMENTS: &str = "/pdb/query/v4/environments";
