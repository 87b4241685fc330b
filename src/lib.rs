//! pdbmux.
