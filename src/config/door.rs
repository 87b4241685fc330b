//! How clients come in: what they may take of pdbmux at one time.

pub(super) mod keys;

use std::time::Duration;

use super::value::ValueError;

/// The least that hyper can be held to, in bytes.
const LEAST_HEAD: usize = 8 << 10;

/// What holds for clients and their requests. The keys have the names of the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorConfig {
    /// Requests that are answered at one time; 0 is without bound.
    pub max_in_flight: usize,
    /// Requests that may wait for a place at one time.
    pub queue_length: usize,
    /// Bound on that wait.
    pub queue_timeout: Duration,
    /// Requests of one address that are answered or wait at one time; 0 is without bound.
    pub max_per_client: usize,
    /// Ceiling of a request's head, in bytes; at least 8192.
    pub max_head_bytes: usize,
}

impl Default for DoorConfig {
    fn default() -> Self {
        Self {
            max_in_flight: 0,
            queue_length: 100,
            queue_timeout: Duration::from_secs(1),
            max_per_client: 0,
            // hyper's own.
            max_head_bytes: 417_792,
        }
    }
}

fn parse_head(bytes: usize) -> Result<usize, ValueError> {
    if bytes < LEAST_HEAD {
        return Err(ValueError::TooSmall(LEAST_HEAD));
    }
    Ok(bytes)
}
