//! File descriptors: how many there may be, and how many of them are for clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Those that are neither for clients nor for the questions they ask: listeners, operators, probes,
/// files that are read.
const BESIDE: u64 = 128;

/// What one backend may be asked at one time for one client, as far as that is usual.
const QUESTIONS: u64 = 2;

/// Takes as many as the system lets this process have. That it does not is no trouble.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
    if let Err(error) = raised {
        tracing::debug!(%error, ?limit, "the limit of file descriptors could not be raised");
    }
}

/// How many clients may be connected so that each can be answered by all of so many backends; at least
/// one.
pub(crate) fn clients_at_most(backends: usize) -> usize {
    match getrlimit(Resource::Nofile).current {
        None => usize::MAX,
        Some(limit) => share(limit, backends as u64),
    }
}

fn share(limit: u64, backends: u64) -> usize {
    let beside = BESIDE.min(limit / 2);
    let each = backends.saturating_mul(QUESTIONS).saturating_add(1);
    let clients = ((limit - beside) / each).max(1);
    usize::try_from(clients).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_left_for_what_clients_ask_of_backends() {
        for (limit, backends, clients) in [
            (1_048_576, 2, 209_689),
            (65_536, 2, 13_081),
            (1_024, 2, 179),
            (1_024, 1, 298),
            (64, 1, 10),
            (8, 5, 1),
            (0, 2, 1),
        ] {
            assert_eq!(share(limit, backends), clients, "{limit}, {backends}");
        }
    }
}
