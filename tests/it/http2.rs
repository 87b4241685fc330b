//! HTTP/2, towards clients and towards backends.

mod backends;
mod clients;
mod ends;
mod same;
mod wrong;

const NODES: &str = "/pdb/query/v4/nodes";
const ENVIRONMENTS: &str = "/pdb/query/v4/environments";
