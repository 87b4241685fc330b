//! The lowest version of several.
