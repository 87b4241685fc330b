//! Facts, and the factset and inventory records that hold them as a whole.

use serde_json::{Map, Value, json};

use super::identity::hash;
use super::{Agent, Hardware, Node, Os};
use crate::time::Timestamp;

impl Node {
    /// When the facts of the latest run were submitted and its catalog compiled.
    pub(super) fn compiled(&self) -> Timestamp {
        self.end(0).plus_millis(-14_000)
    }

    /// One record for each fact, by name.
    pub(super) fn facts(&self) -> Vec<Value> {
        let record = |(name, value)| {
            json!({
                "certname": self.certname(),
                "environment": self.held.environment,
                "name": name,
                "value": value,
            })
        };
        self.values().into_iter().map(record).collect()
    }

    /// The record of `/factsets`.
    pub(super) fn factset(&self) -> Value {
        let values = self.values();
        let content = hash(&Value::from(values.clone()).to_string());
        let data = values
            .into_iter()
            .map(|(name, value)| json!({"name": name, "value": value}));
        let certname = self.certname();
        json!({
            "timestamp": self.received(self.compiled()),
            "facts": {
                "data": data.collect::<Vec<_>>(),
                "href": format!("/pdb/query/v4/factsets/{certname}/facts"),
            },
            "certname": certname,
            "hash": content,
            "producer_timestamp": self.compiled().to_string(),
            "producer": self.producer(),
            "environment": self.held.environment,
        })
    }

    /// The record of `/inventory`.
    pub(super) fn inventory(&self) -> Value {
        let mut facts = self.values();
        let trusted = facts.remove("trusted");
        json!({
            "certname": self.certname(),
            "timestamp": self.received(self.compiled()),
            "environment": self.held.environment,
            "facts": facts,
            "trusted": trusted,
        })
    }

    fn values(&self) -> Map<String, Value> {
        let host = self.held.host;
        let certname = self.certname();
        let address = format!("10.20.0.{}", host.address);
        let mac = format!("52:54:00:14:00:{:02x}", host.address);
        let uptime = 86_400 * i64::from(host.address) + 60 * self.held.age;
        let (puppet, facter) = match self.held.agent {
            Agent::Puppet7 => ("7.34.0", "4.10.0"),
            Agent::Puppet8 => ("8.10.0", "4.11.0"),
        };
        let kernel = host.os.kernel();
        let facts = json!({
            "architecture": host.os.architecture(),
            "clientcert": certname,
            "disks": {"sda": {"size": "64.00 GiB", "size_bytes": 68_719_476_736_i64, "type": "ssd"}},
            "dmi": host.hardware.dmi(),
            "facterversion": facter,
            "fips_enabled": false,
            "fqdn": certname,
            "identity": {"gid": 0, "group": "root", "privileged": true, "uid": 0, "user": "root"},
            "is_virtual": host.hardware == Hardware::Kvm,
            "kernel": "Linux",
            "kernelrelease": kernel,
            "load_averages": {"1m": 0.25, "5m": 0.5, "15m": f64::from(host.cores) / 16.0},
            "memory": self.memory(),
            "networking": {
                "domain": "example.org",
                "fqdn": certname,
                "hostname": host.name,
                "ip": address,
                "mac": mac,
                "primary": "eth0",
                "interfaces": {
                    "eth0": {"ip": address, "mac": mac, "mtu": 1500, "netmask": "255.255.255.0"},
                    "lo": {"ip": "127.0.0.1", "mtu": 65_536, "netmask": "255.0.0.0"},
                },
            },
            "os": host.os.fact(),
            "processors": {"count": host.cores, "isa": "x86_64", "physicalcount": 1},
            "puppetversion": puppet,
            "role": host.role,
            "ssh_algorithms": ["ecdsa", "ed25519", "rsa"],
            "timezone": "UTC",
            "trusted": {
                "authenticated": "remote",
                "certname": certname,
                "domain": "example.org",
                "extensions": {"pp_role": host.role},
                "hostname": host.name,
            },
            "uptime_seconds": uptime,
            "virtual": host.hardware.name(),
        });
        match facts {
            Value::Object(facts) => facts,
            _ => Map::new(),
        }
    }

    fn memory(&self) -> Value {
        let total = i64::from(self.held.host.memory_gib) << 30;
        let available = total / 100 * 62;
        json!({
            "system": {
                "available_bytes": available,
                "capacity": "38.00%",
                "total": format!("{}.00 GiB", self.held.host.memory_gib),
                "total_bytes": total,
                "used_bytes": total - available,
            },
        })
    }
}

impl Os {
    fn fact(self) -> Value {
        let (name, family, full, major, codename) = match self {
            Self::Debian12 => ("Debian", "Debian", "12.9", "12", "bookworm"),
            Self::Ubuntu2404 => ("Ubuntu", "Debian", "24.04", "24.04", "noble"),
            Self::Rocky9 => ("Rocky", "RedHat", "9.5", "9", "Blue Onyx"),
        };
        json!({
            "architecture": self.architecture(),
            "distro": {"codename": codename, "id": name, "release": {"full": full, "major": major}},
            "family": family,
            "hardware": "x86_64",
            "name": name,
            "release": {"full": full, "major": major},
            "selinux": {"enabled": self == Self::Rocky9},
        })
    }

    const fn architecture(self) -> &'static str {
        match self {
            Self::Debian12 | Self::Ubuntu2404 => "amd64",
            Self::Rocky9 => "x86_64",
        }
    }

    const fn kernel(self) -> &'static str {
        match self {
            Self::Debian12 => "6.1.0-28-amd64",
            Self::Ubuntu2404 => "6.8.0-51-generic",
            Self::Rocky9 => "5.14.0-503.el9.x86_64",
        }
    }
}

impl Hardware {
    const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Physical => "physical",
        }
    }

    fn dmi(self) -> Value {
        match self {
            Self::Kvm => json!({"manufacturer": "QEMU", "product": {"name": "Standard PC (Q35)"}}),
            Self::Physical => {
                json!({"manufacturer": "Dell Inc.", "product": {"name": "PowerEdge R660"}})
            }
        }
    }
}
