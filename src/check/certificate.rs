//! How long certificates are good for.

use jiff::Timestamp;
use x509_parser::parse_x509_certificate;

/// What counts of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    /// Its common name; all of its subject where there is none.
    pub(super) name: String,
    /// When it ends.
    pub(super) until: Timestamp,
}

impl Certificate {
    /// Reads a certificate in DER; `None` if it is none.
    pub(super) fn read(der: &[u8]) -> Option<Self> {
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
    pub(super) fn days_left(&self, now: Timestamp) -> i64 {
        const DAY: i64 = 24 * 60 * 60;
        (self.until.as_second() - now.as_second()).div_euclid(DAY)
    }

    /// The day of its end.
    pub(super) fn day(&self) -> String {
        self.until.strftime("%F").to_string()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    fn made(name: Option<&str>) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["puppetdb".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Site");
        if let Some(name) = name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.not_after = date_time_ymd(2030, 3, 1);
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
}
