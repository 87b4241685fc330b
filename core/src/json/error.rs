//! Why a text is refused.

/// Why a text was refused, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at}")]
pub struct ScanError {
    /// Offset from the beginning of the scanned text, in bytes.
    pub at: usize,
    /// What was wrong there.
    pub problem: ScanProblem,
}

/// What kind of damage the scanner met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanProblem {
    /// The text ended inside a value.
    #[error("the text ends too early")]
    Truncated,
    /// A byte that JSON does not allow at this place.
    #[error("unexpected byte 0x{0:02x}")]
    Unexpected(u8),
    /// More levels of nesting than pdbmux follows.
    #[error("nested too deeply")]
    TooDeep,
}
