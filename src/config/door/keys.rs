//! The keys that hold for clients, part of the one table of keys.

use super::super::key::{Bears, Key, Setter};
use super::super::value::{self, ValueError};
use super::super::{duration, listen};
use super::{origins, parse_head, show_file};

/// A key of a field of [`DoorConfig`](super::DoorConfig), read by `$parse` and written by `$show`. No answer
/// follows from it.
macro_rules! of_door {
    ($constant:ident, $field:ident, $hint:literal, $parse:expr, $show:expr, $doc:literal $(,)?) => {
        pub(in crate::config) const $constant: Key = Key {
            name: stringify!($field),
            hint: $hint,
            doc: $doc,
            flag: None,
            choices: &[],
            bears: Bears::Beside,
            set: Setter::Scalar(|config, text| {
                config.door.$field = $parse(text)?;
                Ok(())
            }),
            show: |config| $show(&config.door.$field),
        };
    };
}

/// A key that names a file.
macro_rules! file_of_door {
    ($constant:ident, $field:ident, $doc:literal $(,)?) => {
        of_door!(
            $constant,
            $field,
            "FILE",
            |text: &str| Ok::<_, ValueError>(Some(text.into())),
            |file: &Option<_>| show_file(file.as_ref()),
            $doc,
        );
    };
}

of_door!(
    TLS_LISTEN_ONE_TEXT,
    tls_listen,
    "HOST:PORT,...",
    listen::parse_tls_list,
    |list: &Vec<_>| listen::show_list(list),
    "Addresses and ports to serve on with TLS. Where it is set and listen is not, nothing is served \
     without.",
);
pub(in crate::config) const TLS_LISTEN: Key = TLS_LISTEN_ONE_TEXT.list();
file_of_door!(
    TLS_CERT,
    tls_cert,
    "Certificate (PEM) that clients are shown, with those that it leads to. It is read again when it \
     changes.",
);
file_of_door!(TLS_KEY, tls_key, "Private key (PEM) of that certificate.",);
file_of_door!(
    TLS_CLIENT_CA,
    tls_client_ca,
    "Certificates (PEM) that a client's own must lead to. Without it clients need none.",
);
file_of_door!(
    TLS_ALLOWLIST,
    tls_allowlist,
    "Names of which a client's certificate must have one, a name a line. Others are refused with 403; \
     it is read again when it changes.",
);
file_of_door!(
    TOKENS,
    tokens,
    "Tokens of which a request must bear one, as Authorization: Bearer or X-Authentication: a line for \
     each, TOKEN or NAME TOKEN. It is read again when it changes.",
);
file_of_door!(
    USERS,
    users,
    "Users and passwords of which a request must bear one by basic authentication: a file of htpasswd \
     with hashes of bcrypt (htpasswd -B). It is read again when it changes.",
);
of_door!(
    BASE_PATH,
    base_path,
    "PATH",
    origins::parse_base_path,
    |path: &Option<String>| path.clone().unwrap_or_default(),
    "Path that all is served below, such as /puppetdb. Only the health endpoints are also at their own \
     paths then.",
);
of_door!(
    CORS_ORIGINS_ONE_TEXT,
    cors_origins,
    "ORIGIN,...",
    origins::parse,
    origins::show,
    "Sites whose pages may read answers in browsers (CORS), such as https://board.example.com; * is \
     all of them. Without it none may.",
);
pub(in crate::config) const CORS_ORIGINS: Key = CORS_ORIGINS_ONE_TEXT.list();
of_door!(
    MAX_IN_FLIGHT,
    max_in_flight,
    "COUNT",
    value::parse_most,
    ToString::to_string,
    "Most requests that are answered at one time, each until its last byte is written; 0 is without \
     bound. One beyond it waits, and is refused with 503 after queue_timeout; health endpoints are \
     answered always.",
);
of_door!(
    QUEUE_LENGTH,
    queue_length,
    "COUNT",
    value::parse_most,
    ToString::to_string,
    "Most requests that wait for others to end, under max_in_flight. One beyond it is refused with \
     503 at once; 0 lets none wait.",
);
of_door!(
    QUEUE_TIMEOUT,
    queue_timeout,
    "DURATION",
    duration::parse,
    duration::format,
    "Longest wait of a request for others to end, under max_in_flight.",
);
of_door!(
    MAX_PER_CLIENT,
    max_per_client,
    "COUNT",
    value::parse_most,
    ToString::to_string,
    "Most requests of one client address at one time; 0 is without bound. One beyond it is refused \
     with 429.",
);
of_door!(
    MAX_HEAD_BYTES,
    max_head_bytes,
    "BYTES",
    |text| value::parse_bytes(text).and_then(parse_head),
    ToString::to_string,
    "Largest head of a request, 8192 or more; a larger one is refused with 431.",
);
