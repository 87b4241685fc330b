//! Which PuppetDB a backend is, and what it is told since it takes it. That is learnt beside all
//! requests.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pdbmux_core::merge::version::{self, Version};
use pdbmux_core::plan::{Ask, Sent};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Member, MemberId, Upstream};
use crate::request;

/// Time after which a backend is asked again: it may have become another between two probes.
const AGAIN: Duration = Duration::from_mins(10);

/// Longest version that is believed, in bytes.
const LONGEST: usize = 64;

/// Which PuppetDB a backend is, as far as it has told.
#[derive(Debug, Default)]
pub(super) struct Release {
    told: Mutex<Option<Told>>,
    /// Looked at by every question, so apart from the lock.
    takes_origin: AtomicBool,
}

#[derive(Debug)]
struct Told {
    version: Version,
    at: Instant,
}

impl Release {
    /// Takes in what it has told; `None` if it has not, or may be another by now.
    fn learn(&self, version: Option<Version>) {
        let takes_origin = version.as_ref().is_some_and(Version::takes_origin);
        let at = Instant::now();
        let mut told = self.told();
        *told = version.map(|version| Told { version, at });
        self.takes_origin.store(takes_origin, Relaxed);
    }

    fn version(&self) -> Option<String> {
        let told = self.told();
        told.as_ref().map(|told| told.version.to_string())
    }

    fn is_due(&self) -> bool {
        let told = self.told();
        told.as_ref().is_none_or(|told| told.at.elapsed() >= AGAIN)
    }

    fn told(&self) -> MutexGuard<'_, Option<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    /// The version that it told last, if it was asked for it.
    pub fn version(&self) -> Option<String> {
        self.release.as_ref()?.version()
    }

    /// A question as it is put to it.
    pub(super) fn sent(&self, ask: &Ask) -> Sent {
        let prefix = self.url.prefix().len();
        match &self.release {
            Some(release) if release.takes_origin.load(Relaxed) => {
                ask.send(prefix, Some(&request::origin()))
            }
            Some(_) | None => ask.send(prefix, None),
        }
    }

    /// Takes in that it may be another when it answers again.
    pub(super) fn forget_version(&self) {
        if let Some(release) = &self.release {
            release.learn(None);
        }
    }
}

/// Asks a PuppetDB for its version whenever that is not known, for ever.
pub(super) async fn watch(
    upstream: Arc<Upstream>,
    member: MemberId,
    pause: Duration,
    wait: Duration,
) {
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        upstream.learn_version(member, wait).await;
    }
}

impl Upstream {
    /// Asks for a version where that is due, within `wait`.
    async fn learn_version(&self, id: MemberId, wait: Duration) {
        let member = self.member(id);
        let Some(release) = &member.release else {
            return;
        };
        if !release.is_due() || !self.standing_of(id).state.in_service() {
            return;
        }
        let answered = self.probe(id, "/pdb/meta/v1/version", wait).await;
        let version = match &answered {
            Ok((200, body)) => believed(body),
            Ok(_) | Err(_) => None,
        };
        let before = release.version();
        release.learn(version);
        let version = release.version();
        if version.is_some() && version != before {
            let backend = &member.name;
            tracing::info!(backend, version, "a backend has told its version");
        }
    }
}

/// The version that a body states, if it is one to be shown.
fn believed(body: &[u8]) -> Option<Version> {
    let version = version::read(body).ok()?;
    let text = version.as_str();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-+_~".contains(&byte);
    (text.len() <= LONGEST && text.bytes().all(is_plain)).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(version: &str) -> Option<Version> {
        believed(format!("{{\"version\":{version:?}}}").as_bytes())
    }

    #[test]
    fn a_version_is_believed_if_it_is_short_and_plain() {
        let long = format!("8.{}", "1".repeat(LONGEST));
        for (version, is_believed) in [
            ("8.15.0", true),
            ("9.0.0-beta1", true),
            ("8.8.2-SNAPSHOT", true),
            (&*long, false),
            ("8.1 {}", false),
            ("latest", false),
            ("", false),
        ] {
            assert_eq!(told(version).is_some(), is_believed, "{version}");
        }
        assert_eq!(believed(b"<html>"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_is_asked_for_until_it_is_told_and_then_now_and_then() {
        let release = Release::default();
        let takes_origin = || release.takes_origin.load(Relaxed);
        assert!(release.is_due() && !takes_origin());
        release.learn(told("7.6.0"));
        assert!(!release.is_due() && takes_origin());
        assert_eq!(release.version().as_deref(), Some("7.6.0"));
        tokio::time::advance(AGAIN).await;
        assert!(release.is_due() && takes_origin());
        release.learn(told("7.5.0"));
        assert!(!release.is_due() && !takes_origin());
        release.learn(None);
        assert!(release.is_due() && release.version().is_none());
    }
}
