//! The path below which all is served.

use http::Uri;
use http::uri::PathAndQuery;

use super::super::healthz::Endpoint;

/// Where the path of a request leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// To what it names.
    AsItIs,
    /// To what this names.
    Below(Uri),
    /// To nothing: it is outside.
    Outside,
}

/// Looks at the path of a request; all but the endpoints of health is below `base`, if there is one.
pub(super) fn lead(base: Option<&str>, uri: &Uri) -> Lead {
    let Some(base) = base else {
        return Lead::AsItIs;
    };
    let whole = uri.path_and_query().map_or("", PathAndQuery::as_str);
    let below = whole
        .strip_prefix(base)
        .and_then(|rest| match rest.as_bytes() {
            [b'/', ..] => rest.parse().ok(),
            [] | [b'?', ..] => format!("/{rest}").parse().ok(),
            _ => None,
        });
    match below {
        Some(below) => Lead::Below(below),
        None if Endpoint::at(uri.path()).is_some() => Lead::AsItIs,
        None => Lead::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_below_the_base_path_and_health_is_also_at_its_own() {
        let below = |text: &str| Lead::Below(text.parse().unwrap());
        for (path, leads) in [
            (
                "/puppetdb/pdb/query/v4/nodes?a=%2F",
                below("/pdb/query/v4/nodes?a=%2F"),
            ),
            ("/puppetdb/livez", below("/livez")),
            ("/puppetdb/puppetdb/x", below("/puppetdb/x")),
            ("/puppetdb/../x", below("/../x")),
            ("/puppetdb//x", below("//x")),
            ("/puppetdb/", below("/")),
            ("/puppetdb", below("/")),
            ("/puppetdb?a=b", below("/?a=b")),
            ("http://host/puppetdb/x", below("/x")),
            ("/livez", Lead::AsItIs),
            ("/healthz?x", Lead::AsItIs),
            ("/", Lead::Outside),
            ("/puppetdbs/x", Lead::Outside),
            ("/Puppetdb/x", Lead::Outside),
            ("/%70uppetdb/x", Lead::Outside),
            ("/pdb/query/v4/nodes", Lead::Outside),
        ] {
            let uri = path.parse().unwrap();
            assert_eq!(lead(Some("/puppetdb"), &uri), leads, "{path}");
            assert_eq!(lead(None, &uri), Lead::AsItIs);
        }
    }
}
