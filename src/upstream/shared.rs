//! Looking for backends that are on one database without being a group.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pdbmux_core::health::shared::{Receipt, is_one_database, newest_parameters, read_newest};
use pdbmux_core::plan::Ask;
use pdbmux_core::round::{BackendId, Reply};
use tokio::time::{MissedTickBehavior, interval};

use super::Upstream;
use crate::config::{Config, Detection};

/// Time between two looks. A look costs each backend a question by an index.
const PAUSE: Duration = Duration::from_mins(10);

/// The backends that are known to be on one database, by two.
#[derive(Debug)]
pub(super) struct Shared {
    detection: Detection,
    pairs: Mutex<BTreeSet<Pair>>,
}

type Pair = (BackendId, BackendId);

impl Shared {
    /// Nothing is known yet.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            detection: config.detect_shared_database,
            pairs: Mutex::default(),
        }
    }

    fn pairs(&self) -> MutexGuard<'_, BTreeSet<Pair>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at once and then at each pause, for ever.
pub(super) async fn watch(upstream: Arc<Upstream>) {
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let newest = upstream.newest_reports().await;
        upstream.compare(&newest);
    }
}

impl Upstream {
    /// The backends that are on one database without being a group, by two, as far as it was noticed.
    pub fn shared_databases(&self) -> Vec<(BackendId, BackendId)> {
        self.shared.pairs().iter().copied().collect()
    }

    /// Takes over what was noticed before of backends that are here still, and are not one now.
    pub(super) fn take_over_shared(&self, before: &Self) {
        if self.shared.detection == Detection::Off {
            return;
        }
        let heir = |id: BackendId| {
            let mut members = before.backend(id).members().iter();
            let heir = members.find_map(|member| self.find(&member.url, &member.access))?;
            Some(heir.id.backend)
        };
        for (one, other) in before.shared_databases() {
            if let (Some(one), Some(other)) = (heir(one), heir(other))
                && one != other
            {
                self.shared.pairs().insert((one.min(other), one.max(other)));
            }
        }
    }

    /// The newest reports of each backend in service, as far as they can be told.
    async fn newest_reports(&self) -> Vec<(BackendId, Vec<Receipt>)> {
        let parameters = newest_parameters();
        let parameters = parameters
            .each_ref()
            .map(|(name, text)| (*name, text.as_str()));
        let ask = Ask::own("/pdb/query/v4/reports", &parameters);
        let asks: Vec<_> = self
            .shared_pool()
            .asked
            .into_iter()
            .map(|backend| (backend, ask.clone()))
            .collect();
        let round = self.fan_out(&asks).await;
        let told = round.iter().filter_map(|asked| {
            let reply = asked.part().reply.filter(Reply::is_success)?;
            Some((asked.backend, read_newest(reply.body)?))
        });
        told.collect()
    }

    /// Notes which backends are on one database, and tells of those that were not known to be.
    fn compare(&self, newest: &[(BackendId, Vec<Receipt>)]) {
        for (at, (one, reports)) in newest.iter().enumerate() {
            for (other, others) in &newest[at + 1..] {
                let pair = (*one, *other);
                if !is_one_database(reports, others) {
                    self.shared.pairs().remove(&pair);
                } else if self.shared.pairs().insert(pair) {
                    tracing::warn!(
                        backend = self.backend(*one).name,
                        other = self.backend(*other).name,
                        "two backends hold the same reports, received at the same times: if they \
                         are on one database, everything is counted twice until both have the same \
                         group"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::*;
    use crate::config::{Flags, load_from};

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn reports(clock: u8) -> Vec<Receipt> {
        let report = |at: u8| {
            format!(r#"{{"end_time":"{at}","hash":"{at}","receive_time":"{at}.{clock}"}}"#)
        };
        let reports: Vec<_> = (0..3).map(report).collect();
        read_newest(format!("[{}]", reports.join(",")).as_bytes()).unwrap()
    }

    fn upstream(backends: &str) -> Arc<Upstream> {
        let env = [("PDBMUX_BACKENDS", backends)].into_iter().collect();
        let nowhere = std::path::Path::new("/nonexistent");
        let config = load_from(&Flags::default(), &env, nowhere).unwrap().config;
        Upstream::new(&config)
    }

    #[test]
    fn what_is_known_lives_on_where_the_two_are_there_still_and_are_no_group() {
        let before = upstream("a=http://a.example,b=http://b.example,c=http://c.example");
        let (a, b, c) = (BackendId(0), BackendId(1), BackendId(2));
        before.compare(&[(a, reports(1)), (b, reports(1)), (c, reports(1))]);
        assert_eq!(before.shared_databases(), [(a, b), (a, c), (b, c)]);
        for (backends, known) in [
            // By where they are, whatever they are called and in which order they stand.
            ("c=http://c.example,x=http://a.example", vec![(a, b)]),
            ("g/a=http://a.example,g/b=http://b.example", vec![]),
            (
                "g/a=http://a.example,c=http://c.example,g/b=http://b.example",
                vec![(a, b)],
            ),
            ("a=http://a.example,b=http://elsewhere.example", vec![]),
        ] {
            let after = upstream(backends);
            after.take_over(&before);
            assert_eq!(after.shared_databases(), known, "{backends}");
        }
    }

    #[test]
    fn two_on_one_database_are_told_of_once_and_for_as_long_as_they_are() {
        let (log, [a, b, c]) = (Log::default(), [0, 1, 2].map(BackendId));
        let backends = "a=http://a.example,b=http://b.example,c=http://c.example";
        let upstream = upstream(backends);
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..2 {
                upstream.compare(&[(a, reports(1)), (b, reports(2)), (c, reports(1))]);
                assert_eq!(upstream.shared_databases(), [(a, c)]);
            }
            // Who was not heard is still what it was.
            upstream.compare(&[(a, reports(1)), (b, reports(2))]);
            assert_eq!(upstream.shared_databases(), [(a, c)]);
            upstream.compare(&[(a, reports(1)), (c, reports(3))]);
            assert_eq!(upstream.shared_databases(), []);
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let told: Vec<_> = text
            .lines()
            .filter(|line| line.contains("same reports"))
            .collect();
        assert_eq!(told.len(), 1, "{text}");
        assert!(told[0].contains(r#"backend="a" other="c""#), "{text}");
    }
}
