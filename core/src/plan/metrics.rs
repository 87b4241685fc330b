//! Plans of the metrics routes.

use crate::merge::jolokia::{Metrics, ReadRequest};
use crate::merge::{Fan, Merge};
use crate::params::Params;
use crate::route::{Route, Rule};

use super::{Ask, Plan, Turns};

/// Parameters that make of an answer something other than a JSON object (trap T75): such an answer
/// cannot be merged.
const RESHAPED_BY: [&str; 2] = ["callback", "mimeType"];

pub(super) fn plan(route: &Route<'_>, params: &Params<'_>) -> Plan {
    let ask = Ask::as_it_came(route.path, params);
    if RESHAPED_BY.iter().any(|name| params.get(name).is_some()) {
        return Plan::Turns(ask, Turns::Configured);
    }
    let metrics = match route.row.rule {
        Rule::MBeans => Metrics::MBeans,
        Rule::MBean => Metrics::MBean(route.rest.to_owned()),
        Rule::ListMetrics => Metrics::List,
        _ => Metrics::Read(ReadRequest::from_path(route.rest)),
    };
    Plan::Fan(Fan::new(ask, Merge::Metrics(metrics)))
}
