//! What is kept of answers, and who keeps it.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

/// A stored answer: the merged set in one run of bytes, and what its head says (R223).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The body.
    pub(crate) body: Bytes,
    /// The value of `X-Records`, if it is to be sent.
    pub(crate) total: Option<u64>,
    /// How many backends' answers went into it (R187).
    pub(crate) contributed: usize,
    /// How many backends were configured.
    pub(crate) configured: usize,
    /// The backends that it is made without, each with one word why.
    pub(crate) missing: Vec<(String, String)>,
    /// What is to be doubted of it, one word each.
    pub(crate) doubts: Vec<&'static str>,
    /// When it was stored.
    pub(crate) stored: Instant,
    /// The body compressed, once somebody has asked for that.
    pub(crate) gzip: Option<Bytes>,
}

impl Entry {
    /// Whether no backend is missing in it.
    pub(crate) fn is_complete(&self) -> bool {
        self.contributed == self.configured
    }

    /// Bytes of its bodies.
    pub(crate) fn size(&self) -> usize {
        self.body.len() + self.gzip.as_ref().map_or(0, Bytes::len)
    }

    /// For how long it has been stored.
    pub(crate) fn age(&self) -> Duration {
        self.stored.elapsed()
    }
}

/// How much is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stats {
    /// Entries of any age.
    pub(crate) entries: usize,
    /// Those of them past their time.
    pub(crate) stale_entries: usize,
    /// Bytes of all bodies.
    pub(crate) bytes: usize,
}

/// A place for entries (R227). Keeps them past their time too, as long as there is room: how old an
/// entry may be is for its reader to say.
pub(crate) trait Store: Debug + Send + Sync + 'static {
    /// The name of this kind of store in `/healthz`.
    const NAME: &'static str;

    /// The longest body it takes, in bytes.
    fn longest(&self) -> usize;

    /// The entry under `key`. Counts as a use of it, whatever its age (R215).
    fn get(&self, key: &str) -> impl Future<Output = Option<Entry>> + Send;

    /// Stores `entry` in the place of what was under `key`; does nothing if its body is too long.
    fn put(&self, key: &str, entry: Entry) -> impl Future<Output = ()> + Send;

    /// Keeps a compressed body beside that of the entry under `key`; does nothing if that is not the
    /// one which was stored at `stored`, or if the two are too long.
    fn add_gzip(&self, key: &str, stored: Instant, gzip: Bytes) -> impl Future<Output = ()> + Send;

    /// How much it holds; entries of this age and older are stale.
    fn stats(&self, ttl: Duration) -> impl Future<Output = Stats> + Send;
}
