//! What an answer is cached under.

use crate::merge::{Fan, Merge};
use crate::params::Params;
use crate::route::{Caching, Route};

/// Parameters that decide no answer: `origin` is for a backend's log only.
const LOGGED: [&str; 1] = ["origin"];
/// Parameters that a drilldown applies to the shared entry, and the one that is only logged.
const APPLIED: [&str; 6] = [
    "limit",
    "offset",
    "order_by",
    "include_total",
    "pretty",
    "origin",
];

/// The key of the answer, `<path>?<params>` in canonical spelling (R204), or `None` if it is not
/// cached: on every route, aggregates are not (R141).
///
/// A drilldown is keyed on less than it was asked, since it is applied to the shared entry (R225).
/// A `pretty` answer of any other route has an entry of its own.
pub(super) fn cache_key(route: &Route<'_>, params: &Params<'_>, fan: &Fan) -> Option<String> {
    match (route.row.caching, &fan.merge) {
        (Caching::Live, _) | (Caching::Kept, Merge::Aggregates(_)) => return None,
        (Caching::Kept, _) => {}
    }
    let (path, params) = match &fan.drilldown {
        None => (route.path, params.canonical(&LOGGED)),
        Some(drilldown) => {
            let named = match drilldown.value {
                Some(_) => route.path.rsplit_once('/').map(|(named, _)| named),
                None => None,
            };
            (named.unwrap_or(route.path), params.canonical(&APPLIED))
        }
    };
    Some(if params.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{params}")
    })
}
