//! The client's mistakes that pdbmux answers itself, before any backend is asked.

/// Why a request is answered with `400`. Its text is the body of that answer: one sentence that
/// names the culprit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {}
