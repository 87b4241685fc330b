//! Answers of the metrics endpoints.
