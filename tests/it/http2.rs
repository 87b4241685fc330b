//! HTTP/2 towards clients.

mod clients;
mod ends;
mod wrong;

const NODES: &str = "/pdb/query/v4/nodes";
const ENVIRONMENTS: &str = "/pdb/query/v4/environments";
