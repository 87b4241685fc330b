//! The access log: one line on standard output for each request.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use crate::config;
use crate::metrics::Story;

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessLog {
    /// Not at all.
    Off,
    /// One request in this form a line.
    On(Form),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For people.
    Text,
    /// A JSON object.
    Json,
}

impl AccessLog {
    pub(super) fn of(configured: config::AccessLog) -> Self {
        match configured {
            config::AccessLog::Off => Self::Off,
            config::AccessLog::Text => Self::On(Form::Text),
            config::AccessLog::Json => Self::On(Form::Json),
        }
    }

    pub(super) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Writes a line, if it is on.
    pub(super) fn write(self, story: &Story) {
        let line = match self {
            Self::Off => return,
            Self::On(Form::Text) => text(story),
            Self::On(Form::Json) => match serde_json::to_string(story) {
                Ok(line) => line + "\n",
                Err(_) => return,
            },
        };
        // Where standard output is gone there is nobody to tell. One write keeps lines whole.
        let _ = io::stdout().lock().write_all(line.as_bytes());
    }
}

/// Who and when first, as in the logs of web servers; then what is pdbmux's own, by name.
fn text(story: &Story) -> String {
    let Story {
        time,
        client,
        method,
        target,
        status,
        bytes,
        duration,
        first_byte,
        ..
    } = story;
    let mut line = format!(
        "{time} {client} {:?} {status} {bytes} duration={duration} first_byte={first_byte}",
        format!("{method} {target}")
    );
    let mut add = |name: &str, value: &str| {
        // A text in memory takes whatever is written.
        let _ = write!(line, " {name}={value}");
    };
    if let Some(name) = &story.name {
        add("name", &format!("{name:?}"));
    }
    if let Some(user) = &story.user {
        add("user", &format!("{user:?}"));
    }
    if let Some(cache) = story.cache {
        add("cache", cache);
    }
    if let Some(backends) = &story.backends {
        add("backends", backends);
    }
    for missing in &story.missing {
        add("missing", &format!("{missing:?}"));
    }
    if story.cut {
        add("cut", "true");
    }
    if let Some(id) = &story.request_id {
        add("request_id", id);
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_of_one_request_and_stays_one_line() {
        let mut story = Story {
            time: "2026-11-30T12:00:00Z".to_owned(),
            client: "10.0.0.7".to_owned(),
            name: Some("board.example".to_owned()),
            user: Some("board".to_owned()),
            method: "GET".to_owned(),
            target: "/pdb/query/v4/nodes?a=\"\n".to_owned(),
            status: 200,
            bytes: 12,
            duration: 0.25,
            first_byte: 0.125,
            cache: Some("miss"),
            backends: Some("1/2".to_owned()),
            missing: vec!["pdb-b; reason=timeout".to_owned()],
            asked: Vec::new(),
            cut: true,
            request_id: Some("7f3c".to_owned()),
        };
        assert_eq!(
            text(&story),
            "2026-11-30T12:00:00Z 10.0.0.7 \"GET /pdb/query/v4/nodes?a=\\\"\\n\" 200 12 \
             duration=0.25 first_byte=0.125 name=\"board.example\" user=\"board\" cache=miss backends=1/2 \
             missing=\"pdb-b; reason=timeout\" cut=true request_id=7f3c\n"
        );
        story.name = None;
        story.user = None;
        story.cache = None;
        story.backends = None;
        story.missing.clear();
        story.cut = false;
        story.request_id = None;
        assert!(text(&story).ends_with(" first_byte=0.125\n"));
    }
}
