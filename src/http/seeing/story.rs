//! What became of a request, in words.

use std::time::{Duration, SystemTime};

use http::{HeaderValue, Uri};
use pdbmux_core::health::rfc3339;

use super::{End, Watch};
use crate::metrics::{LEFT, Story, Tier, Took, seconds, without_tokens};
use crate::request::Question;

impl Watch {
    /// What became of the request, which took so long.
    pub(super) fn story(&self, duration: Duration) -> Story {
        let request = &self.request;
        let head = self.head.as_ref();
        let told = head.and_then(|head| head.told.as_ref());
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let took = |question: Question| {
            let backend = &self.seeing.backends[question.backend.index()];
            let is_group = backend.members.len() > 1;
            Took {
                backend: backend.name.clone(),
                member: is_group.then(|| backend.members[question.member].clone()),
                began: seconds(question.began),
                took: seconds(question.took),
                answer: match question.answer {
                    Ok(status) => status.to_string(),
                    Err(reason) => reason,
                },
            }
        };
        Story {
            time: rfc3339(SystemTime::now()).unwrap_or_default(),
            client: self.peer.address().to_string(),
            name: self.peer.name().map(str::to_owned),
            user: request.user().map(str::to_owned),
            method: request.method.to_string(),
            target: without_tokens(&target(&request.uri)),
            status: head.map_or(LEFT, |head| head.status.as_u16()),
            bytes: self.bytes,
            duration: seconds(duration),
            first_byte: seconds(head.map_or(duration, |head| head.after)),
            cache: told.and_then(|told| told.tier).map(Tier::word),
            backends: told.and_then(|told| told.contributed.as_ref()).map(text),
            missing: told.map_or_else(Vec::new, |told| told.missing.iter().map(text).collect()),
            asked: request.questions().into_iter().map(took).collect(),
            cut: self.end == End::Ahead,
            request_id: request.id().map(str::to_owned),
        }
    }
}

/// Warns of a request that took long.
pub(super) fn warn(story: &Story) {
    let asked = story.asked();
    tracing::warn!(
        client = story.client,
        name = story.name,
        user = story.user,
        method = story.method,
        target = story.target,
        status = story.status,
        bytes = story.bytes,
        duration = story.duration,
        first_byte = story.first_byte,
        cache = story.cache,
        backends = story.backends,
        asked,
        request_id = story.request_id,
        "a slow query"
    );
}

/// The path and the query as they came.
fn target(uri: &Uri) -> String {
    match uri.query() {
        Some(query) => format!("{}?{query}", uri.path()),
        None => uri.path().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_written_as_it_came() {
        for (uri, written) in [
            ("/pdb/query/v4/nodes", "/pdb/query/v4/nodes"),
            ("http://x/a%2Fb?query=%5B%5D", "/a%2Fb?query=%5B%5D"),
        ] {
            assert_eq!(target(&uri.parse().unwrap()), written);
        }
    }
}
