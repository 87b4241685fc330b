//! The one table of keys. The readers of every layer, `config show`, the file of `config init`, the
//! help, the man page and docs/configuration.md are all made from it.

#[macro_use]
mod macros;
mod setter;

use super::access::keys as of_backends;
use super::door::keys as door;
use super::value;
use super::{Config, CoreDumps, Detection, Listen, backend, duration, listen, otlp};

pub(super) use setter::{SetScalar, Setter};

/// One key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// Its name in the file.
    pub name: &'static str,
    /// What a text for it looks like, for help.
    pub hint: &'static str,
    /// What it means: one short sentence, and often a second that says more.
    pub doc: &'static str,
    /// Its flag without the dashes, if it has one.
    pub flag: Option<&'static str>,
    /// The values it can take, where there are few.
    pub choices: &'static [&'static str],
    pub(super) bears: Bears,
    pub(super) set: Setter,
    pub(super) show: fn(&Config) -> String,
}

/// What a key decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bears {
    /// What is answered, or it may: kept answers are given up when it changes.
    OnAnswers,
    /// How clients and backends are treated.
    Beside,
}

impl Key {
    /// The environment variable of this key.
    pub fn env(&self) -> String {
        format!("PDBMUX_{}", self.name.to_ascii_uppercase())
    }

    /// The first sentence of the doc, without its full stop.
    pub fn summary(&self) -> &'static str {
        let end = self.doc.find(". ");
        end.map_or(self.doc.trim_end_matches('.'), |end| &self.doc[..end])
    }

    /// The default as text; empty for no backends.
    pub fn default_text(&self) -> String {
        self.show(&Config::default())
    }

    /// The effective value as text, in the spelling that flags and variables take.
    pub fn show(&self, config: &Config) -> String {
        (self.show)(config)
    }

    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The same key, which takes several values.
    pub(super) const fn list(mut self) -> Self {
        if let Setter::Scalar(set) = self.set {
            self.set = Setter::List(set);
        }
        self
    }

    const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    pub(super) const fn beside(mut self) -> Self {
        self.bears = Bears::Beside;
        self
    }

    pub(super) const fn choices(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
        self
    }
}

/// Every key, in the order it is documented.
pub static KEYS: &[Key] = &[
    beside!(
        listen,
        "HOST:PORT,...",
        listen::parse_list,
        |list: &Vec<_>| listen::show_list(list),
        "Addresses and ports to serve on. Without a host (:8080) every interface is served, IPv4 and \
         IPv6; an IPv6 host stands in brackets.",
    )
    .list()
    .flag("listen"),
    beside!(
        admin_listen,
        "HOST:PORT",
        |text: &str| text.parse().map(Some),
        |at: &Option<Listen>| at.as_ref().map_or_else(String::new, ToString::to_string),
        "Address and port to tell operators how pdbmux is, without encryption and apart from the \
         API. Without it that is told at listen alone.",
    ),
    door::TLS_LISTEN,
    door::TLS_CERT,
    door::TLS_KEY,
    door::TLS_CLIENT_CA,
    door::TLS_ALLOWLIST,
    door::TOKENS,
    door::USERS,
    door::BASE_PATH,
    door::CORS_ORIGINS,
    Key {
        name: "backends",
        hint: "NAME=URL,...",
        doc: "The PuppetDBs to ask, each with a name and a base URL (http or https), and in the file \
              with how it is reached. GROUP/NAME=URL stands in for others of its group. Their order breaks ties and ranks nothing.",
        flag: None,
        choices: &[],
        bears: Bears::OnAnswers,
        set: Setter::Backends,
        show: |config| backend::show_list(&config.backends),
    },
    of_backends::CA,
    of_backends::CERT,
    of_backends::KEY,
    of_backends::SERVER_NAME,
    of_backends::HEADERS,
    of_backends::USER,
    of_backends::PASSWORD,
    of_backends::GZIP,
    of_backends::HTTP2,
    of_backends::MAX_IN_FLIGHT,
    of_backends::ORIGIN,
    scalar!(
        merge,
        "MODE",
        value::parse_merge,
        |merge: &_| value::merge_name(*merge).to_owned(),
        "Which backend the facts of a shared node are taken from. Under freshness it is the one with \
         the newest report, under static the first configured one that has the node; under exact \
         everything is answered as by one PuppetDB that holds what each node's owner holds.",
    )
    .flag("merge")
    .choices(&value::MERGES),
    beside!(
        timeout,
        "DURATION",
        duration::parse_positive,
        duration::format,
        "Longest wait for a backend, before its answer begins and at every pause within it.",
    ),
    scalar!(
        freshness_ttl,
        "DURATION",
        duration::parse,
        duration::format,
        "How long it is remembered which backend has a node's newest data (not under merge: static); \
         0 asks every time.",
    ),
    scalar!(
        facts_ttl,
        "DURATION",
        duration::parse,
        duration::format,
        "How long a merged answer for nodes, facts or fact names is served from memory; 0 turns \
         the cache off, more than 30s counts as 30s.",
    ),
    scalar!(
        facts_cache_bytes,
        "BYTES",
        value::parse_bytes,
        ToString::to_string,
        "Bytes of answers that cache may hold; the one unused for longest goes first.",
    ),
    scalar!(
        source_fact,
        "NAME",
        value::parse_fact_name,
        Clone::clone,
        "Name of the fact, and of the node key, that says which backend an answer came from.",
    ),
    scalar!(
        source_fact_enabled,
        "BOOL",
        value::parse_switch,
        ToString::to_string,
        "Whether that fact and key are added. With false the backends' records stay as they are.",
    )
    .choices(&value::SWITCHES),
    beside!(
        health_probe_enabled,
        "BOOL",
        value::parse_switch,
        ToString::to_string,
        "Whether backends are probed and left out while they are down. With false all of them are \
         asked on every request.",
    )
    .flag("health-probe")
    .choices(&value::SWITCHES),
    beside!(
        health_probe_path,
        "PATH",
        value::parse_path,
        ToString::to_string,
        "Path that is probed on every backend.",
    ),
    beside!(
        health_probe_interval,
        "DURATION",
        duration::parse_positive,
        duration::format,
        "Time between two probes of a backend.",
    ),
    beside!(
        health_probe_timeout,
        "DURATION",
        duration::parse_positive,
        duration::format,
        "Longest wait for the answer to a probe.",
    ),
    beside!(
        health_probe_failures,
        "COUNT",
        value::parse_count,
        ToString::to_string,
        "Failed probes in a row after which a backend is left out; at least 1.",
    ),
    beside!(
        health_probe_successes,
        "COUNT",
        value::parse_count,
        ToString::to_string,
        "Good probes in a row after which it is asked again; at least 1.",
    ),
    beside!(
        buffer_bytes,
        "BYTES",
        value::parse_some_bytes,
        ToString::to_string,
        "How much of a list is held before it is sent on while it arrives. Requests under way share it, and a list that may be cached is held up to facts_cache_bytes.",
    ),
    scalar!(
        max_body_bytes,
        "BYTES",
        value::parse_some_bytes,
        ToString::to_string,
        "Largest answer of one backend that is held; a larger one is that backend's failure.",
    ),
    beside!(
        memory_bytes,
        "BYTES",
        value::parse_bytes,
        ToString::to_string,
        "The most that all answers held at one time may take. One that needs more waits for the \
         timeout and is refused with 503; 0 takes half of the container's memory limit, if there is one.",
    ),
    scalar!(
        max_listed_nodes,
        "COUNT",
        value::parse_most,
        ToString::to_string,
        "Most certnames that a question to a backend lists, under merge: exact. With more nodes held \
         twice everything is asked for and told apart here.",
    ),
    beside!(
        gzip,
        "BOOL",
        value::parse_switch,
        ToString::to_string,
        "Whether answers are compressed for clients who ask for it by Accept-Encoding. Clients on the \
         same machine gain less by that than it costs.",
    )
    .choices(&value::SWITCHES),
    beside!(
        gzip_min_bytes,
        "BYTES",
        value::parse_bytes,
        ToString::to_string,
        "Length from which an answer is compressed.",
    ),
    beside!(
        hedge_after,
        "DURATION",
        duration::parse,
        duration::format,
        "How long a backend of a group may take to begin its answer before another of the group is \
         asked as well. At most every tenth question is asked twice so; 0 waits.",
    ),
    beside!(
        detect_shared_database,
        "BOOL",
        value::parse_detection,
        |detection: &_| (*detection == Detection::On).to_string(),
        "Whether pdbmux looks for backends that are on one database without being a group, which \
         would count everything twice. It compares their newest reports now and then.",
    )
    .choices(&value::SWITCHES),
    beside!(
        eject_failures,
        "COUNT",
        value::parse_number,
        ToString::to_string,
        "Requests that fail in a row with a backend after which it is left out for a time, whatever \
         its probes say; 0 for never. The last backend in service is asked in any case.",
    ),
    beside!(
        eject_time,
        "DURATION",
        duration::parse_positive,
        duration::format,
        "How long a backend is left out the first time. Then one request tries it, and each that \
         fails doubles the time, up to eight times.",
    ),
    beside!(
        partial,
        "POLICY",
        value::parse_partial,
        |partial: &_| value::partial_name(*partial).to_owned(),
        "Whether an answer is served that lacks a backend, or refused with 503. A backend that is \
         required in the file is never lacked; a request's X-Pdbmux-Partial goes before both.",
    )
    .choices(&value::PARTIALS),
    beside!(
        max_request_bytes,
        "BYTES",
        value::parse_some_bytes,
        ToString::to_string,
        "Largest body of a request; a larger one is refused with 413.",
    ),
    door::MAX_HEAD_BYTES,
    door::MAX_IN_FLIGHT,
    door::QUEUE_LENGTH,
    door::QUEUE_TIMEOUT,
    door::MAX_PER_CLIENT,
    beside!(
        header_timeout,
        "DURATION",
        duration::parse_positive,
        duration::format,
        "Time a client has to send the head of a request, and again to send its body.",
    ),
    beside!(
        idle_timeout,
        "DURATION",
        duration::parse_positive,
        duration::format,
        "How long a client connection without a request is kept open.",
    ),
    beside!(
        max_connections,
        "COUNT",
        value::parse_most,
        ToString::to_string,
        "Most client connections. Beyond it those are closed that have been idle for longest, and others \
         wait; 0 takes as many as there are file descriptors for, and for what they ask of backends.",
    ),
    beside!(
        reload_interval,
        "DURATION",
        duration::parse,
        duration::format,
        "How often the config file is looked at, to be read again when it has changed. With 0 it is \
         read again on SIGHUP alone.",
    ),
    beside!(
        drain_delay,
        "DURATION",
        duration::parse,
        duration::format,
        "How long requests are still taken after SIGTERM or SIGINT, while /readyz says 503 already. A \
         balancer needs that to send nobody here any more.",
    ),
    beside!(
        shutdown_timeout,
        "DURATION",
        duration::parse,
        duration::format,
        "How long running requests may go on after SIGTERM or SIGINT; 0 ends them at once.",
    ),
    beside!(
        log_format,
        "FORMAT",
        value::parse_log_format,
        |format: &_| value::log_format_name(*format).to_owned(),
        "How the log on stderr is written: lines for people, or one JSON object a line.",
    )
    .choices(&value::LOG_FORMATS),
    beside!(
        log_level,
        "FILTER",
        value::parse_log_level,
        Clone::clone,
        "What is logged: error, warn, info, debug, trace or off, or a list of filters such as \
         warn,pdbmux=debug.",
    ),
    beside!(
        request_ids,
        "BOOL",
        value::parse_request_ids,
        |ids: &_| value::has_ids(*ids).to_string(),
        "Whether each request has an id: its own X-Request-Id, or one that is made. It is in the answer, \
         in the log, and in what backends are asked.",
    )
    .choices(&value::SWITCHES),
    beside!(
        access_log,
        "FORMAT",
        value::parse_access_log,
        |format: &_| value::access_log_name(*format).to_owned(),
        "Whether each request is logged on stdout, and how: lines for people, or one JSON object a \
         line.",
    )
    .choices(&value::ACCESS_LOGS),
    beside!(
        slow_query,
        "DURATION",
        duration::parse,
        duration::format,
        "How long a request takes that is warned of, with the time of each backend; 0 warns of none.",
    ),
    otlp::ENDPOINT,
    otlp::HEADERS,
    otlp::SAMPLE,
    beside!(
        core_dumps,
        "BOOL",
        value::parse_core_dumps,
        |dumps: &_| (*dumps == CoreDumps::On).to_string(),
        "Whether core dumps may be made of pdbmux, and debuggers of its user may read its memory. There \
         are passwords, tokens and keys in it.",
    )
    .choices(&value::SWITCHES),
];
