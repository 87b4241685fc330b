//! Certificates, and how long they are good for.

use jiff::Timestamp;
use x509_parser::parse_x509_certificate;

/// Days from which on somebody should replace a certificate that is in use.
pub const FEW_DAYS: i64 = 14;

/// What counts of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Its common name; all of its subject where there is none.
    pub name: String,
    /// When it ends.
    pub until: Timestamp,
}

impl Certificate {
    /// Reads a certificate in DER; `None` if it is none.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = parse_x509_certificate(der).ok()?;
        let subject = certificate.subject();
        let common = subject.iter_common_name().next();
        let common = common.and_then(|name| name.as_str().ok());
        let until = certificate.validity().not_after.timestamp();
        Some(Self {
            name: common.map_or_else(|| subject.to_string(), str::to_owned),
            until: Timestamp::from_second(until).ok()?,
        })
    }

    /// Whole days from `now` until its end; below 0 if that is past.
    pub fn days_left(&self, now: Timestamp) -> i64 {
        days(self.until, now)
    }

    /// The day of its end.
    pub fn day(&self) -> String {
        day(self.until)
    }
}

/// Which certificate of a connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// The one that pdbmux shows clients.
    TlsCert,
    /// Those that clients' own must lead to.
    TlsClientCa,
    /// The one that pdbmux shows a backend.
    Cert,
    /// Those that a backend's own must lead to.
    Ca,
    /// The one that a backend has shown last.
    Server,
}

impl Which {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::TlsCert,
        Self::TlsClientCa,
        Self::Cert,
        Self::Ca,
        Self::Server,
    ];

    /// Its word: the key that names its file, if it is in one.
    pub fn word(self) -> &'static str {
        match self {
            Self::TlsCert => "tls_cert",
            Self::TlsClientCa => "tls_client_ca",
            Self::Cert => "cert",
            Self::Ca => "ca",
            Self::Server => "server",
        }
    }
}

/// A certificate that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InUse<'a> {
    /// The PuppetDB that it is for or of; `None` towards clients.
    pub backend: Option<&'a str>,
    /// Which one.
    pub which: Which,
    /// When it ends.
    pub until: Timestamp,
}

impl InUse<'_> {
    /// As [`Certificate::days_left`].
    pub fn days_left(&self, now: Timestamp) -> i64 {
        days(self.until, now)
    }

    /// As [`Certificate::day`].
    pub fn day(&self) -> String {
        day(self.until)
    }
}

/// When the first of a chain ends, which is its owner's.
pub(crate) fn end_of_own(chain: &[impl AsRef<[u8]>]) -> Option<Timestamp> {
    Some(Certificate::read(chain.first()?.as_ref())?.until)
}

/// When the first to end of several ends, of those that can be read.
pub(crate) fn first_end(several: &[impl AsRef<[u8]>]) -> Option<Timestamp> {
    let read = several
        .iter()
        .filter_map(|der| Certificate::read(der.as_ref()));
    read.map(|certificate| certificate.until).min()
}

fn days(until: Timestamp, now: Timestamp) -> i64 {
    const DAY: i64 = 24 * 60 * 60;
    (until.as_second() - now.as_second()).div_euclid(DAY)
}

fn day(until: Timestamp) -> String {
    until.strftime("%F").to_string()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    fn made(name: Option<&str>) -> Vec<u8> {
        ending(2030, name)
    }

    fn ending(year: i32, name: Option<&str>) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["puppetdb".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Site");
        if let Some(name) = name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.not_after = date_time_ymd(year, 3, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_name_and_the_end_are_read() {
        let read = |name| Certificate::read(&made(name)).unwrap();
        assert_eq!(read(Some("pdb.example.com")).name, "pdb.example.com");
        assert_eq!(read(None).name, "O=Site");
        assert_eq!(read(None).day(), "2030-03-01");
        assert_eq!(Certificate::read(b"garbage"), None);
    }

    #[test]
    fn days_left_are_whole_and_below_0_once_it_has_ended() {
        let certificate = Certificate::read(&made(None)).unwrap();
        for (now, days) in [
            ("2030-02-28T00:00:00Z", 1),
            ("2030-02-28T00:00:01Z", 0),
            ("2030-03-01T00:00:00Z", 0),
            ("2030-03-01T00:00:01Z", -1),
            ("2029-03-01T00:00:00Z", 365),
        ] {
            assert_eq!(certificate.days_left(now.parse().unwrap()), days, "{now}");
        }
    }

    #[test]
    fn of_a_chain_its_own_counts_and_of_several_the_first_to_end() {
        let several = [ending(2031, None), ending(2030, None), b"garbage".to_vec()];
        let until = |year: i16| Certificate::read(&ending(year.into(), None)).unwrap().until;
        assert_eq!(end_of_own(&several), Some(until(2031)));
        assert_eq!(first_end(&several), Some(until(2030)));
        assert_eq!(end_of_own(&several[2..]), None);
        assert_eq!(first_end(&several[2..]), None);
        assert_eq!(end_of_own(&[] as &[Vec<u8>]), None);
    }
}
