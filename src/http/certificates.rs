//! The certificates that are in use, and the log of those that end soon.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::{App, Current};
use crate::certificate::{FEW_DAYS, InUse, Which};

/// Time between two looks: what a backend shows is known once it has been asked.
const PAUSE: Duration = Duration::from_mins(10);

impl App {
    /// The certificates in use: those towards clients, then those of each PuppetDB in configured order.
    /// Files that have changed are read.
    pub(super) fn certificates(&self) -> Vec<InUse<'_>> {
        let own = self.door().certificate_ends();
        let own = own.map(|(which, until)| InUse {
            backend: None,
            which,
            until,
        });
        let of_backends = self.upstream().members().flat_map(|member| {
            let ends = member.certificate_ends();
            ends.map(|(which, until)| InUse {
                backend: Some(&member.name),
                which,
                until,
            })
        });
        own.chain(of_backends).collect()
    }
}

/// Warns of the certificates that end soon, of each once a day, for ever.
pub(crate) async fn watch(current: Arc<Current>) {
    let mut told = Told::default();
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (app, now) = (current.app(), Timestamp::now());
        for certificate in told.news(app.certificates(), now) {
            warn(&certificate, now);
        }
    }
}

/// How many days each certificate had left when that was told.
#[derive(Debug, Default)]
struct Told(BTreeMap<(Option<String>, Which), i64>);

impl Told {
    /// Those that end soon and of which that is not told yet: the days that are left change once a day.
    fn news<'a>(&mut self, in_use: Vec<InUse<'a>>, now: Timestamp) -> Vec<InUse<'a>> {
        let before = std::mem::take(&mut self.0);
        let mut news = Vec::new();
        for certificate in in_use {
            let left = certificate.days_left(now);
            if left >= FEW_DAYS {
                continue;
            }
            let of = (certificate.backend.map(str::to_owned), certificate.which);
            if before.get(&of) != Some(&left) {
                news.push(certificate);
            }
            self.0.insert(of, left);
        }
        news
    }
}

fn warn(certificate: &InUse<'_>, now: Timestamp) {
    let (backend, which) = (certificate.backend, certificate.which.word());
    let (left, day) = (certificate.days_left(now), certificate.day());
    if left < 0 {
        tracing::warn!(backend, which, "a certificate ended on {day}");
    } else {
        tracing::warn!(
            backend,
            which,
            "a certificate ends in {left} days, on {day}"
        );
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;

    #[test]
    fn a_certificate_that_ends_soon_is_told_of_once_a_day_until_it_is_replaced() {
        let start: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        let until = start + (15 * 24).hours();
        let in_use = |hours: i64| {
            let of = |backend, which| InUse {
                backend,
                which,
                until: until + hours.hours(),
            };
            vec![of(None, Which::TlsCert), of(Some("pdb-a"), Which::Cert)]
        };
        let mut told = Told::default();
        for (after, extra, news) in [
            (0, 0, 0),
            (24, 0, 0),
            (25, 0, 2),
            (26, 0, 0),
            (48, 0, 0),
            (49, 0, 2),
            // Replaced by one that ends as soon, and by one that does not.
            (50, 24, 2),
            (51, 240, 0),
            (52, 24, 2),
            // Past its end, it is told of as well.
            (24 * 18, 0, 2),
            (24 * 18 + 1, 0, 2),
            (24 * 18 + 2, 0, 0),
        ] {
            let found = told.news(in_use(extra), start + after.hours());
            assert_eq!(found.len(), news, "{after}");
        }
        // One that is no longer in use and comes back is told of again.
        assert_eq!(told.news(Vec::new(), start), []);
        assert_eq!(told.news(in_use(-48), start).len(), 2);
    }
}
