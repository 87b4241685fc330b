//! Plans of the metrics routes.

use percent_encoding::percent_decode_str;

use crate::merge::jolokia::{Metrics, ReadRequest};
use crate::merge::population::{Gauge, Population};
use crate::merge::{Fan, Merge};
use crate::params::Params;
use crate::route::{Route, Rule};
use crate::settings::{Settings, Strategy};

use super::{Ask, Plan, Scope, Turns};

/// Parameters that make of an answer something other than a JSON object (trap T75): such an answer
/// cannot be merged.
const RESHAPED_BY: [&str; 2] = ["callback", "mimeType"];

pub(super) fn plan(route: &Route<'_>, params: &Params<'_>, settings: &Settings) -> Plan {
    let ask = Ask::as_it_came(route.path, params);
    if RESHAPED_BY.iter().any(|name| params.get(name).is_some()) {
        return Plan::turns(ask, Turns::Configured);
    }
    let metrics = match route.row.rule {
        Rule::MBeans => Metrics::MBeans,
        Rule::MBean => Metrics::MBean(route.rest.to_owned()),
        Rule::ListMetrics => Metrics::List,
        _ => Metrics::Read(ReadRequest::from_path(route.rest)),
    };
    let counted = match (settings.strategy, &metrics) {
        (Strategy::Exact, Metrics::Read(request)) => population(request.mbean()),
        (Strategy::Exact, Metrics::MBean(name)) => {
            population(&percent_decode_str(name).decode_utf8_lossy())
        }
        _ => None,
    };
    let Some((gauge, further)) = counted else {
        return Plan::Fan(Fan::new(ask, Merge::Metrics(metrics)));
    };
    let merge = Merge::Population(Population { metrics, gauge });
    Plan::Fan(Fan {
        further,
        ..Fan::new(ask, merge)
    })
}

/// What to count where nodes are held twice, for an MBean that counts nodes or what they have.
fn population(mbean: &str) -> Option<(Gauge, Vec<Ask>)> {
    let count = |path: &str, condition: &str| {
        let query = format!("[\"extract\",[[\"function\",\"count\"]]{condition}]");
        let path = format!("/pdb/query/v4/{path}");
        Ask::own(&path, &[("query", &query)]).of(Scope::Living)
    };
    let nodes = || count("nodes", "");
    let resources = || count("resources", "");
    let inactive = || count("nodes", r#",["=",["node","active"],false]"#);
    let name = mbean.strip_prefix("puppetlabs.puppetdb.population:name=")?;
    match name {
        "num-nodes" | "num-active-nodes" => Some((Gauge::Count, vec![nodes()])),
        "num-inactive-nodes" => Some((Gauge::Count, vec![inactive()])),
        "num-resources" => Some((Gauge::Count, vec![resources()])),
        "avg-resources-per-node" => Some((Gauge::Ratio, vec![nodes(), resources()])),
        _ => None,
    }
}
