//! The keys that hold for every backend, part of the one table of keys.

use super::super::key::{Bears, Key, Setter};
use super::super::value;

/// A key that holds for every backend that does not set it itself.
macro_rules! of_backends {
    ($name:ident, $part:path, $hint:literal, $doc:literal $(,)?) => {
        Key {
            name: stringify!($name),
            hint: $hint,
            doc: $doc,
            flag: None,
            choices: &[],
            bears: Bears::OnAnswers,
            set: Setter::Scalar(|config, text| ($part.set)(&mut config.access, text)),
            show: |config| $part.show(&config.access),
        }
    };
}

pub(in crate::config) const CA: Key = of_backends!(
    backend_ca,
    super::CA,
    "FILE",
    "Certificates (PEM) that a backend's own must lead to. Without it those that this machine \
     trusts.",
);

pub(in crate::config) const CERT: Key = of_backends!(
    backend_cert,
    super::CERT,
    "FILE",
    "Certificate (PEM) that backends are shown. It is read again when it changes.",
);

pub(in crate::config) const KEY: Key = of_backends!(
    backend_key,
    super::KEY,
    "FILE",
    "Private key (PEM) of that certificate.",
);

pub(in crate::config) const SERVER_NAME: Key = of_backends!(
    backend_server_name,
    super::SERVER_NAME,
    "NAME",
    "Name that a backend's certificate must have. Without it the host of its URL.",
);

pub(in crate::config) const HEADERS: Key = of_backends!(
    backend_headers,
    super::HEADERS,
    "NAME=SECRET,...",
    "Headers of every request to a backend, such as X-Authentication. A secret is file:PATH or \
     env:NAME.",
);

pub(in crate::config) const USER: Key = of_backends!(
    backend_user,
    super::USER,
    "NAME",
    "User that backends are told by basic authentication.",
);

pub(in crate::config) const PASSWORD: Key = of_backends!(
    backend_password,
    super::PASSWORD,
    "SECRET",
    "Password of that user: file:PATH or env:NAME.",
);

pub(in crate::config) const GZIP: Key = of_backends!(
    backend_gzip,
    super::GZIP,
    "BOOL",
    "Whether backends are asked to compress their answers. It pays where the network between is \
     slower than they are; without it they are not.",
)
.choices(&value::SWITCHES);

pub(in crate::config) const HTTP2: Key = of_backends!(
    backend_http2,
    super::HTTP2,
    "BOOL",
    "Whether backends are asked by HTTP/2: by https where they take it, by http in any case.",
)
.choices(&value::SWITCHES)
.beside();

pub(in crate::config) const MAX_IN_FLIGHT: Key = of_backends!(
    backend_max_in_flight,
    super::MAX_IN_FLIGHT,
    "COUNT",
    "Most questions that a backend is asked at one time, its probe aside; 0 or nothing is without \
     bound, and 1 is too few. To wait for others to end counts towards the timeout.",
)
.beside();

pub(in crate::config) const ORIGIN: Key = of_backends!(
    backend_origin,
    super::ORIGIN,
    "BOOL",
    "Whether backends are told by whom they are asked, and for which request, for their own log of \
     queries. They are asked for their version and only told if that takes it (6.19, 7.6 and \
     later); without it they are neither asked nor told.",
)
.choices(&value::SWITCHES)
.beside();
