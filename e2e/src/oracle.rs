//! pdbmux under `merge: exact` held against the oracle: a PuppetDB that was loaded with what
//! pdbmux should answer.
//!
//! A [`corpus`] of questions, and questions made at [`random`], are put to both; what comes back
//! must be the same but for what [`tolerated`] lists. The [`rewriter`] is held against its rule by
//! the backends themselves. [`score`] prints the result by feature.

pub mod ask;
pub mod canon;
pub mod compare;
pub mod corpus;
pub mod estates;
pub mod field;
pub mod ground;
pub mod random;
pub mod rewriter;
pub mod sample;
pub mod score;
pub mod shape;
pub mod tolerated;
