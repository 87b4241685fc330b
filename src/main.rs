//! The pdbmux binary.
fn main() {}
