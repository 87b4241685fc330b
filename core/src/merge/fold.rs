//! Aggregate rows that share a key become one row.
