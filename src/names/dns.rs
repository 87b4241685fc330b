//! What resolv.conf asks for, as a resolver.

use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use resolv_conf::Config;

/// Where DNS servers listen; resolv.conf cannot say otherwise.
pub(super) const PORT: u16 = 53;

/// A resolver that asks the servers named in the text of a resolv.conf, on `port`. What the file
/// has and nobody knows is passed over, as resolv.conf(5) wants it.
pub(super) fn resolver(resolv_conf: &[u8], port: u16) -> Result<TokioResolver, NetError> {
    let (conf, _unknown) = Config::parse_with_errors(resolv_conf);
    let servers = conf
        .get_nameservers_or_local()
        .into_iter()
        .map(|server| {
            let mut server = NameServerConfig::udp_and_tcp(IpAddr::from(server));
            for connection in &mut server.connections {
                connection.port = port;
            }
            server
        })
        .collect();
    let config = ResolverConfig::from_parts(None, search(&conf), servers);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options(&conf);
    builder.build()
}

/// The domains that short names are tried in: the last of `search` and `domain`, else the
/// machine's own.
fn search(conf: &Config) -> Vec<Name> {
    let mut domains: Vec<_> = conf
        .get_last_search_or_domain()
        .map(String::as_str)
        .collect();
    let own = conf.get_system_domain();
    if domains.is_empty() {
        domains.extend(own.as_deref());
    }
    let domains = domains.into_iter().map(Name::from_ascii);
    domains.filter_map(Result::ok).collect()
}

fn options(conf: &Config) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.ndots = count(conf.ndots);
    options.timeout = Duration::from_secs(conf.timeout.max(1).into());
    options.attempts = count(conf.attempts);
    options.edns0 = conf.edns0;
    // The hosts file was read before, and a connection that lasts is cache enough.
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
    options
}

fn count(given: u32) -> usize {
    usize::try_from(given).unwrap_or(usize::MAX)
}
