//! What decisions need to know of the configuration.

/// How the backend that a node's facts are taken from is chosen (R043, R045).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The backend with the newer `report_timestamp` owns the node.
    #[default]
    Freshness,
    /// The first configured backend that returned the node owns it; no `/nodes` request is made.
    Static,
    /// The backend with the newest data of any kind owns the node, and each backend is asked for
    /// what it owns alone: the answer is that of one PuppetDB with all of it.
    Exact,
}

/// The part of the configuration that plans and merges depend on. Read once at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names of the backends, in configured order.
    pub backends: Vec<String>,
    /// How owners are chosen for facts.
    pub strategy: Strategy,
    /// Name of the synthetic fact and node key; `None` while injection is off.
    pub source: Option<String>,
}
