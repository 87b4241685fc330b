//! Spans: what was done for a request, and when, for a collector of traces. A request that is recorded
//! is a span, and each question to a backend for it is one below that.
//!
//! Only a build with the cargo feature `otlp` has a [`Sink`]. In any other there can be none, and no
//! code is made for what would be done with one.

#[cfg(not(feature = "otlp"))]
mod never;
#[cfg(feature = "otlp")]
mod recorded;

#[cfg(not(feature = "otlp"))]
pub(crate) use never::{Asked, Recording, Sink};
#[cfg(feature = "otlp")]
pub(crate) use recorded::{Asked, Ids, Item, Question, Recording, Served, Sink, Span};
