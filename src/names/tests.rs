use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tempfile::TempDir;
use tokio::net::UdpSocket;

use super::*;

/// A DNS server on loopback that knows some names and remembers what it was asked.
struct Dns {
    port: u16,
    zone: Arc<Mutex<BTreeMap<String, Vec<IpAddr>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Dns {
    async fn start(zone: &[(&str, &[&str])]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let dns = Self {
            port: socket.local_addr().unwrap().port(),
            zone: Arc::default(),
            asked: Arc::default(),
        };
        for (name, addresses) in zone {
            dns.set(name, addresses);
        }
        let (zone, asked) = (Arc::clone(&dns.zone), Arc::clone(&dns.asked));
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
                let query = Message::from_vec(&buffer[..length]).unwrap();
                let name = query.queries[0].name().to_string();
                let answer = answer(&query, zone.lock().unwrap().get(&name));
                asked.lock().unwrap().push(name);
                socket
                    .send_to(&answer.to_vec().unwrap(), client)
                    .await
                    .unwrap();
            }
        });
        dns
    }

    /// Gives `name`, with its last dot, these addresses.
    fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|it| it.parse().unwrap()).collect();
        self.zone.lock().unwrap().insert(name.to_owned(), addresses);
    }

    /// The names asked for since the last call, each once, in their order.
    fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.dedup();
        asked
    }
}

fn answer(query: &Message, known: Option<&Vec<IpAddr>>) -> Message {
    let mut answer = query.clone().into_response();
    let question = &query.queries[0];
    match known {
        None => answer.metadata.response_code = ResponseCode::NXDomain,
        Some(addresses) => {
            for address in addresses {
                let wanted = match address {
                    IpAddr::V4(_) => RecordType::A,
                    IpAddr::V6(_) => RecordType::AAAA,
                };
                if question.query_type() == wanted {
                    let (name, data) = (question.name().clone(), RData::from(*address));
                    answer.add_answer(Record::from_rdata(name, 3600, data));
                }
            }
        }
    }
    answer
}

/// The two files, of which either may be missing.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn hosts(self, text: &str) -> Self {
        self.write("hosts", text);
        self
    }

    fn resolv_conf(self, text: &str) -> Self {
        self.write("resolv.conf", text);
        self
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn names(&self, dns_port: u16) -> Names {
        let folder = self.0.path();
        Names::reading(&folder.join("hosts"), &folder.join("resolv.conf"), dns_port)
    }
}

/// Where nobody may be asked.
const NO_DNS: u16 = 1;

async fn found(names: &Names, host: &str) -> Vec<String> {
    let found = names.addresses(host).await.unwrap();
    found.iter().map(ToString::to_string).collect()
}

async fn error(names: &Names, host: &str) -> String {
    names.addresses(host).await.unwrap_err().to_string()
}

#[tokio::test]
async fn addresses_and_localhost_need_no_file() {
    let names = Files::new().names(NO_DNS);
    for (host, addresses) in [
        ("127.0.0.9", &["127.0.0.9"][..]),
        ("::1", &["::1"]),
        ("2001:db8::a", &["2001:db8::a"]),
        ("localhost", &["127.0.0.1", "::1"]),
        ("LocalHost.", &["127.0.0.1", "::1"]),
        ("pdb-a.localhost", &["127.0.0.1", "::1"]),
    ] {
        assert_eq!(found(&names, host).await, addresses, "{host}");
    }
}

#[tokio::test]
async fn the_hosts_file_goes_before_dns_and_before_what_localhost_means() {
    let dns = Dns::start(&[("pdb-a.", &["10.0.0.2", "2001:db8::2"])]).await;
    let files = Files::new()
        .hosts("10.0.0.1 pdb-a\n127.0.0.7 localhost\n")
        .resolv_conf("nameserver 127.0.0.1\n");
    let names = files.names(dns.port);
    assert_eq!(found(&names, "pdb-a").await, ["10.0.0.1"]);
    assert_eq!(found(&names, "localhost").await, ["127.0.0.7"]);
    assert_eq!(dns.asked(), [""; 0]);
}

#[tokio::test]
async fn dns_gives_both_families_and_ipv6_comes_first() {
    let dns = Dns::start(&[
        ("both.example.com.", &["10.0.0.1", "2001:db8::1"]),
        ("four.example.com.", &["10.0.0.4", "10.0.0.5"]),
        ("six.example.com.", &["2001:db8::6"]),
    ])
    .await;
    let files = Files::new().resolv_conf("nameserver 127.0.0.1\n");
    let names = files.names(dns.port);
    assert_eq!(
        found(&names, "both.example.com").await,
        ["2001:db8::1", "10.0.0.1"]
    );
    let four = found(&names, "four.example.com.").await;
    assert_eq!(four, ["10.0.0.4", "10.0.0.5"]);
    assert_eq!(found(&names, "six.example.com").await, ["2001:db8::6"]);
}

#[tokio::test]
async fn short_names_are_tried_in_the_search_domains_as_ndots_says() {
    let dns = Dns::start(&[
        ("pdb-a.two.example.com.", &["10.0.0.1"]),
        ("pdb-b.eu.one.example.com.", &["10.0.0.2"]),
        ("pdb-b.eu.", &["10.0.0.3"]),
    ])
    .await;
    let search = "nameserver 127.0.0.1\nsearch one.example.com two.example.com\n";
    for (options, host, address, asked) in [
        (
            "",
            "pdb-a",
            "10.0.0.1",
            &["pdb-a.one.example.com.", "pdb-a.two.example.com."][..],
        ),
        ("", "pdb-b.eu", "10.0.0.3", &["pdb-b.eu."]),
        ("", "pdb-b.eu.", "10.0.0.3", &["pdb-b.eu."]),
        (
            "options ndots:2 made-up\n",
            "pdb-b.eu",
            "10.0.0.2",
            &["pdb-b.eu.one.example.com."],
        ),
    ] {
        let files = Files::new().resolv_conf(&format!("{search}{options}"));
        assert_eq!(found(&files.names(dns.port), host).await, [address]);
        assert_eq!(dns.asked(), asked, "{host} {options}");
    }
}

#[tokio::test]
async fn what_changed_counts_at_the_next_lookup() {
    let dns = Dns::start(&[
        ("pdb-a.one.example.com.", &["10.0.0.1"]),
        ("pdb-a.two.example.com.", &["10.0.0.2"]),
    ])
    .await;
    let one = "nameserver 127.0.0.1\nsearch one.example.com\n";
    let files = Files::new().resolv_conf(one);
    let names = files.names(dns.port);
    assert_eq!(found(&names, "pdb-a").await, ["10.0.0.1"]);
    dns.set("pdb-a.one.example.com.", &["10.0.0.9"]);
    assert_eq!(found(&names, "pdb-a").await, ["10.0.0.9"]);
    files.write("resolv.conf", &one.replace("one", "two"));
    assert_eq!(found(&names, "pdb-a").await, ["10.0.0.2"]);
    for address in ["10.0.0.3", "10.0.0.4"] {
        files.write("hosts", &format!("{address} pdb-a\n"));
        assert_eq!(found(&names, "pdb-a").await, [address]);
    }
}

#[tokio::test]
async fn a_silent_server_does_not_keep_the_next_from_answering() {
    let dns = Dns::start(&[("pdb-a.example.com.", &["10.0.0.1"])]).await;
    let silent = UdpSocket::bind(("127.0.0.2", dns.port)).await.unwrap();
    let servers = "nameserver 127.0.0.2\nnameserver 127.0.0.1\n";
    let files = Files::new().resolv_conf(servers);
    let names = files.names(dns.port);
    assert_eq!(found(&names, "pdb-a.example.com").await, ["10.0.0.1"]);
    drop(silent);
}

#[tokio::test]
async fn without_an_address_the_reason_names_the_host() {
    let dns = Dns::start(&[("empty.example.com.", &[])]).await;
    let files = Files::new();
    let names = files.names(dns.port);
    let path = files.0.path().join("resolv.conf");
    assert_eq!(
        error(&names, "pdb-a").await,
        format!(
            "the host pdb-a is not in the hosts file, and {} cannot be read to ask DNS: it does \
             not exist",
            path.display()
        )
    );
    let files = files.resolv_conf("nameserver 127.0.0.1\n");
    for host in ["pdb-a.example.com", "empty.example.com"] {
        assert_eq!(
            error(&names, host).await,
            format!("the host {host} has no address in the hosts file or in DNS")
        );
    }
    let long = "x".repeat(64);
    let why = error(&names, &long).await;
    assert!(why.starts_with(&format!("the host {long} has no possible name: ")));
    let files = files.resolv_conf("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
    let why = error(&files.names(NO_DNS), "pdb-a.example.com").await;
    let start = "DNS does not tell the address of the host pdb-a.example.com: ";
    assert!(why.starts_with(start), "{why}");
}
