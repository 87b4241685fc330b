//! File descriptors: how many there may be, and how they are divided.

use std::error::Error;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Those that are neither for clients nor for what they ask of backends: listeners, operators, probes,
/// files that are read, names that are looked up.
const BESIDE: u64 = 128;

/// What one backend is asked at one time for one client, so that every request goes on: one question
/// whose answer is read while it is passed on, and one whose answer is read at once. More than that
/// waits for those.
const QUESTIONS: u64 = 2;

/// How descriptors are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Division {
    /// Most connections of clients.
    pub(crate) clients: usize,
    /// Most connections to backends.
    pub(crate) backends: usize,
}

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

/// Whether something failed since this process, or the system, has no descriptor left.
pub(crate) fn are_lacking(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |cause| (*cause).source());
    causes.any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        let errno = io.and_then(Errno::from_io_error);
        matches!(errno, Some(Errno::MFILE | Errno::NFILE))
    })
}

/// Divides what there is between clients, at most `most` of them if that is not 0, and the backends
/// they ask. `questions` is how much each backend is asked at one time, 0 for without bound.
pub(crate) fn divide(most: usize, questions: &[usize]) -> Division {
    match getrlimit(Resource::Nofile).current {
        None => Division {
            clients: if most == 0 { usize::MAX } else { most },
            backends: usize::MAX,
        },
        Some(limit) => share(limit, most, questions),
    }
}

fn share(limit: u64, most: usize, questions: &[usize]) -> Division {
    let there = limit - BESIDE.min(limit / 2);
    let asked = |clients: u64| {
        let of_each = clients.saturating_mul(QUESTIONS);
        let asked = questions.iter().map(|bound| match *bound {
            0 => of_each,
            bound => of_each.min(bound as u64),
        });
        asked.fold(0, u64::saturating_add)
    };
    // As many as can be answered; one in any case.
    let (mut clients, mut too_many) = (1, there.max(1) + 1);
    while too_many - clients > 1 {
        let between = clients + (too_many - clients) / 2;
        if between.saturating_add(asked(between)) <= there {
            clients = between;
        } else {
            too_many = between;
        }
    }
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let taken = if most == 0 {
        clients
    } else {
        clients.min(most as u64)
    };
    Division {
        clients: if most == 0 { whole(clients) } else { most },
        backends: whole(there.saturating_sub(taken)).max(questions.len().max(1) * 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_left_for_what_clients_ask_of_backends() {
        let cases: &[(u64, usize, &[usize], usize, usize)] = &[
            (1_048_576, 0, &[0, 0], 209_689, 838_759),
            (65_536, 0, &[0, 0], 13_081, 52_327),
            (1_024, 0, &[0, 0], 179, 717),
            (1_024, 0, &[0], 298, 598),
            (64, 0, &[0], 10, 22),
            (8, 0, &[0; 5], 1, 10),
            (0, 0, &[0, 0], 1, 4),
            // Bounded backends take no more than they are asked, however many clients there are.
            (1_024, 0, &[50, 0], 282, 614),
            (1_024, 0, &[50, 10], 836, 60),
            // Fewer clients leave more for backends, and more of them take nothing from those.
            (1_024, 100, &[0, 0], 100, 796),
            (64, 1_000, &[0], 1_000, 22),
        ];
        for (limit, most, questions, clients, backends) in cases {
            let expected = Division {
                clients: *clients,
                backends: *backends,
            };
            let divided = share(*limit, *most, questions);
            assert_eq!(divided, expected, "{limit}, {most}, {questions:?}");
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("it did not work")]
    struct Beneath(#[source] io::Error);

    #[test]
    fn a_lack_of_descriptors_is_found_beneath_other_errors() {
        let lack = || io::Error::from_raw_os_error(Errno::MFILE.raw_os_error());
        assert!(are_lacking(&lack()));
        assert!(are_lacking(&Beneath(lack())));
        assert!(!are_lacking(&io::Error::from(
            io::ErrorKind::ConnectionRefused
        )));
    }
}
