//! Host names and their addresses, found without the C library: its resolver loads modules of the
//! machine it runs on, which a static binary cannot rely on.

mod dns;
mod hosts;
#[cfg(test)]
mod tests;

use std::convert;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hickory_resolver::TokioResolver;
use hickory_resolver::net::NetError;
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::rr::Name;

use crate::config::plain;
use crate::descriptors;

/// Finds the addresses of host names: in the hosts file, else by asking the DNS servers of
/// resolv.conf. Both files are read at every lookup, so that a change counts from then on; what DNS
/// said is not kept.
#[derive(Debug)]
pub struct Names {
    hosts: PathBuf,
    resolv_conf: PathBuf,
    dns_port: u16,
    /// Kept while resolv.conf stays as it is: it learns which of its servers answer.
    resolver: Mutex<Option<Resolver>>,
}

#[derive(Debug)]
struct Resolver {
    resolv_conf: Vec<u8>,
    resolver: TokioResolver,
}

/// Why a host name has no address.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// Neither the hosts file nor DNS has one.
    #[error("the host {0} has no address in the hosts file or in DNS")]
    Unknown(String),
    /// The hosts file has none, and nothing says which DNS server to ask.
    #[error(
        "the host {host} is not in the hosts file, and {} cannot be read to ask DNS: {}",
        .path.display(), plain(.why)
    )]
    NoServers {
        /// The host name.
        host: String,
        /// The file that should name the servers.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// A file that tells could not be opened for lack of file descriptors.
    #[error("the host {host} cannot be looked up in {}", .path.display())]
    Unread {
        /// The host name.
        host: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        why: io::Error,
    },
    /// No DNS server gave an answer.
    #[error("DNS does not tell the address of the host {host}: {why}")]
    Dns {
        /// The host name.
        host: String,
        /// What went wrong.
        why: Box<NetError>,
    },
    /// No DNS name can be written like this.
    #[error("the host {host} has no possible name: {why}")]
    Impossible {
        /// The host name.
        host: String,
        /// What is wrong with it.
        why: ProtoError,
    },
}

impl Names {
    /// As the machine's own files say.
    pub fn of_system() -> Self {
        Self::reading(
            Path::new("/etc/hosts"),
            Path::new("/etc/resolv.conf"),
            dns::PORT,
        )
    }

    /// As these files say, with DNS on `dns_port`.
    fn reading(hosts: &Path, resolv_conf: &Path, dns_port: u16) -> Self {
        Self {
            hosts: hosts.to_owned(),
            resolv_conf: resolv_conf.to_owned(),
            dns_port,
            resolver: Mutex::new(None),
        }
    }

    /// All addresses of `host`, the ones to prefer first. An address is its own, and `localhost`
    /// is this machine even where no file says so (RFC 6761).
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let name = host.to_owned();
        let unread = |path: &Path, why| LookupError::Unread {
            host: host.to_owned(),
            path: path.to_owned(),
            why,
        };
        let found = match read(&self.hosts, move |text| hosts::find(&text, &name)).await {
            // It may be there that the host is told.
            Err(why) if descriptors::are_lacking(&why) => return Err(unread(&self.hosts, why)),
            found => found.unwrap_or_default(),
        };
        if !found.is_empty() {
            return Ok(found);
        }
        if is_localhost(host) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let name = Name::from_ascii(host).map_err(|why| LookupError::Impossible {
            host: host.to_owned(),
            why,
        })?;
        let servers = match read(&self.resolv_conf, convert::identity).await {
            Ok(servers) => servers,
            Err(why) if descriptors::are_lacking(&why) => {
                return Err(unread(&self.resolv_conf, why));
            }
            Err(why) => {
                return Err(LookupError::NoServers {
                    host: host.to_owned(),
                    path: self.resolv_conf.clone(),
                    why,
                });
            }
        };
        let answered = match self.resolver(servers) {
            Ok(resolver) => resolver.lookup_ip(name).await,
            Err(why) => Err(why),
        };
        match answered {
            Ok(found) => Ok(found.iter().collect()),
            Err(why) if why.is_no_records_found() => Err(LookupError::Unknown(host.to_owned())),
            Err(why) => Err(LookupError::Dns {
                host: host.to_owned(),
                why: Box::new(why),
            }),
        }
    }

    fn resolver(&self, resolv_conf: Vec<u8>) -> Result<TokioResolver, NetError> {
        let mut kept = self.resolver.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref().filter(|it| it.resolv_conf == resolv_conf) {
            return Ok(kept.resolver.clone());
        }
        let resolver = dns::resolver(&resolv_conf, self.dns_port)?;
        *kept = Some(Resolver {
            resolv_conf,
            resolver: resolver.clone(),
        });
        Ok(resolver)
    }
}

/// What `of` makes of a file: some have thousands of hosts in theirs.
async fn read<T, F>(path: &Path, of: F) -> io::Result<T>
where
    T: Send + 'static,
    F: FnOnce(Vec<u8>) -> T + Send + 'static,
{
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || fs::read(path).map(of)).await?
}

fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
}
