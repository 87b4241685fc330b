//! The hosts file: an address a line, and the names that it has.

use std::net::IpAddr;

/// The addresses of `host` in the text of a hosts file, in its order. What is no address is passed
/// over, as the C library does.
pub(super) fn find(text: &[u8], host: &str) -> Vec<IpAddr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(text).lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let address = words.next().and_then(|word| word.parse().ok());
        if let Some(address) = address
            && words.any(|name| name.eq_ignore_ascii_case(host))
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &str = "\
127.0.0.1\tlocalhost
# 10.0.0.9 old
10.0.0.1 pdb-a.example.com pdb-a # 10.0.0.9 pdb-b
2001:db8::1   pdb-a

fe80::1%lo0 pdb-b
10.0.0.1 pdb-a
nonsense pdb-a
10.0.0.2 PDB-B.example.com\r
10.0.0.3
";

    #[test]
    fn a_name_has_the_addresses_of_all_its_lines_in_their_order() {
        for (host, addresses) in [
            ("pdb-a", &["10.0.0.1", "2001:db8::1"][..]),
            ("pdb-a.example.com", &["10.0.0.1"]),
            ("pdb-a.example.com.", &["10.0.0.1"]),
            ("pdb-b.EXAMPLE.com", &["10.0.0.2"]),
            ("localhost", &["127.0.0.1"]),
            ("pdb-b", &[]),
            ("old", &[]),
            ("10.0.0.3", &[]),
            ("example.com", &[]),
            ("", &[]),
        ] {
            let addresses: Vec<IpAddr> = addresses.iter().map(|it| it.parse().unwrap()).collect();
            assert_eq!(find(HOSTS.as_bytes(), host), addresses, "{host}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_cost_no_other_line() {
        let found = find(b"10.0.0.1 \xff\xfe\n10.0.0.2 pdb-a\n", "pdb-a");
        assert_eq!(found, ["10.0.0.2".parse::<IpAddr>().unwrap()]);
    }
}
