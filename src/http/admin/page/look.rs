//! One node: why its owner owns it.

use pdbmux_core::merge::owners::copies::{State, Told};

use crate::drift::{Estate, Why};

/// What is known of a certname.
pub(super) struct Found {
    pub(super) certname: String,
    /// `None` if no backend holds it.
    pub(super) owner: Option<String>,
    /// One sentence.
    pub(super) why: &'static str,
    pub(super) copies: Vec<Copy>,
}

pub(super) struct Copy {
    pub(super) backend: String,
    pub(super) owner: bool,
    pub(super) inactive: bool,
    pub(super) stale: bool,
    pub(super) behind: String,
    /// Of report, facts and catalog.
    pub(super) times: [Time; 3],
}

pub(super) struct Time {
    /// Of what.
    pub(super) label: &'static str,
    pub(super) text: String,
    /// Whether it made the owner.
    pub(super) decides: bool,
}

impl Found {
    pub(super) fn of(certname: &str, estate: &Estate) -> Self {
        let Some(node) = estate.node(certname) else {
            return Self {
                certname: certname.to_owned(),
                owner: None,
                why: "",
                copies: Vec::new(),
            };
        };
        let copies = node.copies.iter().enumerate().map(|(at, copy)| Copy {
            backend: estate.name(copy.backend).to_owned(),
            owner: at == 0,
            inactive: copy.state == State::Inactive,
            stale: copy.behind.is_stale(),
            behind: copy.behind.sentence(),
            times: Told::ALL.map(|told| Time {
                label: match told {
                    Told::Report => "Report",
                    Told::Facts => "Facts",
                    Told::Catalog => "Catalog",
                },
                text: match copy.stamp.of(told) {
                    Some(at) => at.strftime("%F %H:%M:%S%.3f").to_string(),
                    None => "never".to_owned(),
                },
                decides: at == 0 && node.why == Why::Newest(told),
            }),
        });
        Self {
            certname: certname.to_owned(),
            owner: Some(estate.name(node.owner().backend).to_owned()),
            why: match node.why {
                Why::Only => "No other backend has a copy of it.",
                Why::Newest(Told::Report) => "It has the newest report.",
                Why::Newest(Told::Facts) => "The reports are level, and its facts are newer.",
                Why::Newest(Told::Catalog) => {
                    "Reports and facts are level, and its catalog is newer."
                }
                Why::First => {
                    "Nothing that counts is newer elsewhere, and it is the first in the \
                     configured order."
                }
            },
            copies: copies.collect(),
        }
    }
}
