//! Starts the daemon under test.
