//! What one probe found.

use serde_json::{Map, Value};

/// Names of services and states that a backend sends are shown up to this many characters.
const SHOWN: usize = 64;

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Status 200, and no service says otherwise.
    Healthy,
    /// The backend answered that it is not well.
    Unhealthy(Trouble),
    /// The probe was refused, with this status: evidence about the probe, not the backend (R161).
    Refused(u16),
    /// No answer came: refused connection, DNS, TLS, timeout (R160).
    Unanswered,
}

/// Why an answer is not a healthy one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A service is in another state than running (R158).
    #[error("its service {service:?} is in the state {state:?}")]
    NotRunning {
        /// The service, cut to a length fit for a log.
        service: String,
        /// Its state, cut likewise.
        state: String,
    },
    /// A status that tells of the backend: 503 where services are not well, other server errors,
    /// and 429, by which it tells its own load (R160, R162).
    #[error("it answered with status {0}")]
    Status(u16),
}

impl Finding {
    /// Whether the probe endpoint answered with something that can be read as healthy or unhealthy
    /// (R163, R164).
    pub fn is_answer(&self) -> bool {
        match self {
            Self::Healthy | Self::Unhealthy(_) => true,
            Self::Refused(_) | Self::Unanswered => false,
        }
    }
}

/// Judges a backend's reply to a probe. The body counts only under 200: any other status speaks for
/// itself (trap T76).
///
/// A status that neither stands for health nor tells of an error, such as a redirect, is that of a
/// path which is no health endpoint: a refusal.
pub fn judge(status: u16, body: &[u8]) -> Finding {
    match status {
        200 => not_running(body).map_or(Finding::Healthy, Finding::Unhealthy),
        429 | 500 | 502..600 => Finding::Unhealthy(Trouble::Status(status)),
        _ => Finding::Refused(status),
    }
}

/// The first service that is not running, if the body is one object for each service. A body of any
/// other shape says nothing (R159).
fn not_running(body: &[u8]) -> Option<Trouble> {
    let services: Map<String, Value> = serde_json::from_slice(body).ok()?;
    if !services.values().all(Value::is_object) {
        return None;
    }
    let mut states = services
        .iter()
        .filter_map(|(service, of)| Some((service, of.get("state")?.as_str()?)));
    let (service, state) = states.find(|(_, state)| *state != "running")?;
    let shown = |text: &str| text.chars().take(SHOWN).collect();
    Some(Trouble::NotRunning {
        service: shown(service),
        state: shown(state),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r157_every_service_running_is_healthy() {
        let body = br#"{"a":{"state":"running","status":{"x":[1]}},"b":{"state":"running"}}"#;
        assert_eq!(judge(200, body), Finding::Healthy);
    }

    #[test]
    fn r158_any_service_in_another_state_is_unhealthy() {
        for state in ["starting", "stopping", "error", "unknown", "Running", ""] {
            for body in [
                format!(r#"{{"pdb":{{"state":"{state}"}}}}"#),
                format!(r#"{{"a":{{"state":"running"}},"pdb":{{"x":1,"state":"{state}"}}}}"#),
                format!(r#"{{"a":{{}},"pdb":{{"state":"{state}"}}}}"#),
            ] {
                let expected = Trouble::NotRunning {
                    service: "pdb".to_owned(),
                    state: state.to_owned(),
                };
                assert_eq!(
                    judge(200, body.as_bytes()),
                    Finding::Unhealthy(expected),
                    "{body}"
                );
            }
        }
    }

    #[test]
    fn r159_a_body_of_another_shape_is_judged_by_its_status() {
        for body in [
            "",
            "running",
            "<html>",
            "{}",
            "[]",
            "null",
            r#""error""#,
            r#"[{"state":"error"}]"#,
            r#"{"state":"error"}"#,
            r#"{"version":"8","pdb":{"state":"error"}}"#,
            r#"{"pdb":["error"]}"#,
            r#"{"pdb":{"state":5}}"#,
            r#"{"pdb":{"state":"error"}"#,
        ] {
            assert_eq!(judge(200, body.as_bytes()), Finding::Healthy, "{body}");
            let sick = Finding::Unhealthy(Trouble::Status(503));
            assert_eq!(judge(503, body.as_bytes()), sick, "{body}");
        }
        assert_eq!(judge(200, b"\xff\xfe"), Finding::Healthy);
    }

    #[test]
    fn r160_to_r162_statuses_tell_of_the_backend_or_of_the_probe() {
        let running = br#"{"a":{"state":"running"}}"#;
        for status in [429, 500, 502, 503, 504, 507, 599] {
            let expected = Finding::Unhealthy(Trouble::Status(status));
            assert_eq!(judge(status, running), expected);
        }
        for status in [400, 401, 403, 404, 405, 410, 418, 428, 430, 499, 501] {
            assert_eq!(judge(status, running), Finding::Refused(status));
        }
        for status in [201, 204, 206, 301, 302, 307, 600, 0] {
            assert_eq!(judge(status, running), Finding::Refused(status));
        }
    }

    #[test]
    fn what_a_backend_calls_its_services_is_shown_in_one_short_line() {
        let long = "s".repeat(10_000);
        let body = serde_json::json!({ long: {"state": "a\nb"} }).to_string();
        let Finding::Unhealthy(trouble) = judge(200, body.as_bytes()) else {
            panic!("{body}")
        };
        let text = trouble.to_string();
        assert!(text.len() < 200 && !text.contains('\n'), "{text}");
    }
}
