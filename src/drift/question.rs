//! What is asked of the estate, as it was typed, and the verdict on it.

use super::gate::{Gate, GateError};
use super::{Estate, Filter, FilterError, Incomplete, Rows};

/// What is to be listed, and what must not be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Which nodes are listed.
    pub rows: Rows,
    gate: Option<(String, Gate)>,
}

/// Whether anybody asks who moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    /// They do.
    Asked,
    /// Nobody does, so nothing can depend on it.
    Unasked,
}

/// Why a question cannot be put.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// A filter cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The expression cannot be read.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// Nobody asks who moved, and something depends on it.
    #[error("{0:?} needs --since: without it nobody knows who moved")]
    Since(String),
}

/// What a whole estate means for the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is no gate, or what it names is not so.
    Passed,
    /// What it names is so; a sentence.
    Held(String),
}

impl Question {
    /// Reads the filters and the gate of an estate of these backends; no rows are listed if `filters`
    /// is `None`.
    pub fn read(
        backends: &[String],
        moves: Moves,
        filters: Option<&[String]>,
        gate: Option<&str>,
    ) -> Result<Self, QuestionError> {
        let unknown = |text: &str| match moves {
            Moves::Asked => Ok(()),
            Moves::Unasked => Err(QuestionError::Since(text.to_owned())),
        };
        let rows = match filters {
            None => Rows::None,
            Some(texts) => {
                let mut filters = Vec::new();
                for text in texts {
                    let filter = Filter::parse(text, backends)?;
                    if filter.needs_moves() {
                        unknown(text)?;
                    }
                    filters.push(filter);
                }
                Rows::Of(filters)
            }
        };
        let gate = match gate {
            None => None,
            Some(text) => {
                let gate = Gate::parse(text, backends)?;
                if gate.needs_moves() {
                    unknown(text)?;
                }
                Some((text.to_owned(), gate))
            }
        };
        Ok(Self { rows, gate })
    }

    /// The verdict. A backend that is missing must not open the gate.
    ///
    /// # Errors
    ///
    /// The estate was not read whole.
    pub fn verdict(&self, estate: &Estate) -> Result<Verdict, Incomplete> {
        estate.whole()?;
        Ok(match &self.gate {
            Some((text, gate)) if gate.holds(&estate.summary()) => {
                Verdict::Held(format!("it holds that {text}"))
            }
            Some(_) | None => Verdict::Passed,
        })
    }
}
