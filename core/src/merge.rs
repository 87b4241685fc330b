//! One module for each way in which several answers become one.

pub mod aggregates;
pub mod damage;
pub mod drilldown;
pub mod fold;
mod group;
mod holder;
pub mod jolokia;
pub mod listing;
pub mod names;
pub mod newest;
pub mod owners;
pub mod population;
pub mod prior;
pub mod records;
pub mod sets;
pub mod sift;
pub mod subjects;
pub mod tally;
pub mod version;
mod whole;

use crate::answer::{Answer, Pieces, pretty};
use crate::json::{ScanError, check_utf8};
use crate::plan::{Ask, Doubt, Scope, Unlisted};
use crate::round::{BackendId, Part, Reply, Verdict, verdict};

use std::collections::HashSet;

use damage::Damage;
use owners::Share;
use records::Scan;

/// How the answers of a fan-out become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// By what each record is about: its node, or the record itself.
    Records(records::RecordMerge),
    /// By grouping key.
    Aggregates(aggregates::AggregateMerge),
    /// The same, of what is left of each answer.
    Sifted(sift::Sift),
    /// The lowest version.
    Version,
    /// The first answer in configured order.
    First,
    /// A number that is known of owners.
    Tally(tally::Tally),
    /// Metrics, combined by the names of their attributes.
    Metrics(jolokia::Metrics),
    /// Metrics of the population, counted by owners.
    Population(population::Population),
    /// The union of flat lists.
    List(listing::ListMerge),
    /// The union of records that belong to no node.
    Set(sets::SetMerge),
    /// The newest event of each resource.
    Newest(newest::NewestMerge),
    /// How many subjects of events there are.
    Summaries(subjects::Summaries),
    /// The backend that has it; what to ask instead where that one's version cannot answer.
    Holder(Option<Box<Fan>>),
}

/// A question to all backends and how their answers become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fan {
    /// What is asked.
    pub ask: Ask,
    /// What is asked beside it. A backend that answers one of these questions and not the others
    /// has failed.
    pub further: Vec<Ask>,
    /// How the answers become one.
    pub merge: Merge,
    /// How the answer is written.
    pub layout: Layout,
    /// What is served of the merged set, where that is decided after it may have been cached.
    pub drilldown: Option<Box<drilldown::Drilldown>>,
    /// What the merged set is cached under; `None` if it never is.
    pub cache_key: Option<String>,
    /// What it means that a backend answers 404.
    pub absence: Absence,
    /// Subqueries whose rows must be known first, each of them once.
    pub priors: Vec<prior::Prior>,
    /// Why the answer may differ from that of one PuppetDB with all data.
    pub doubts: Vec<Doubt>,
    /// What is done instead where it would take long lists to ask each backend for its own.
    pub unlisted: Option<Box<Unlisted>>,
    /// Whether each backend answers with one record for each active node that it owns.
    pub lists_nodes: bool,
}

/// What it means that a backend answers 404.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Absence {
    /// That it failed: it should know the route.
    #[default]
    Fails,
    /// That it has nothing of what was asked.
    IsEmpty,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// As the backends wrote its parts.
    #[default]
    AsItCame,
    /// With line breaks, for people.
    Pretty,
}

impl Fan {
    /// A question whose answer is written as the backends write its parts.
    pub(crate) fn new(ask: Ask, merge: Merge) -> Self {
        Self {
            ask,
            further: Vec::new(),
            layout: Layout::AsItCame,
            drilldown: None,
            cache_key: None,
            priors: Vec::new(),
            doubts: Vec::new(),
            unlisted: None,
            lists_nodes: false,
            absence: match merge {
                Merge::Holder(_) => Absence::IsEmpty,
                _ => Absence::Fails,
            },
            merge,
        }
    }

    /// The same question with its answer laid out for people, if the answer is put together here.
    /// Backends are then asked without: blanks between records would only be in the way.
    pub(crate) fn pretty(mut self) -> Self {
        self.unlisted = self.unlisted.map(|unlisted| Box::new(unlisted.pretty()));
        if let Some(drilldown) = &mut self.drilldown {
            drilldown.layout = Layout::Pretty;
            self.ask = self.ask.without("pretty");
            return self;
        }
        match self.merge {
            Merge::Records(_)
            | Merge::Aggregates(_)
            | Merge::Sifted(_)
            | Merge::Tally(_)
            | Merge::List(_)
            | Merge::Set(_)
            | Merge::Newest(_) => Self {
                ask: self.ask.without("pretty"),
                layout: Layout::Pretty,
                ..self
            },
            // Served as one backend sends it, or the parameter is refused by all of them.
            Merge::Version
            | Merge::First
            | Merge::Metrics(_)
            | Merge::Population(_)
            | Merge::Holder(_)
            | Merge::Summaries(_) => self,
        }
    }

    /// All that a backend is asked, in the order in which a round holds its parts.
    pub fn asks(&self) -> impl Iterator<Item = &Ask> + Clone {
        std::iter::once(&self.ask).chain(&self.further)
    }

    /// Whether it matters which reports several backends have.
    pub fn is_history(&self) -> bool {
        self.asks().any(|ask| ask.scope().is_history())
    }

    /// Whether every backend is asked the same, whichever nodes it owns.
    pub fn is_undivided(&self) -> bool {
        self.asks().all(|ask| ask.scope() == Scope::Everything)
    }

    /// How its answer can be written while the backends' answers arrive, if it can.
    pub fn streamed(&self) -> Option<&records::RecordMerge> {
        let is_plain =
            self.layout == Layout::AsItCame && self.further.is_empty() && self.drilldown.is_none();
        match &self.merge {
            Merge::Records(records) if is_plain && records.can_stream() => Some(records),
            _ => None,
        }
    }

    /// Whether a backend that answered with `status` is not missed in the answer.
    pub fn tolerates(&self, status: u16) -> bool {
        self.absence == Absence::IsEmpty && status == 404
    }

    /// Whether its own answers tell if a backend has other nodes by now.
    pub fn is_census(&self) -> bool {
        matches!(self.merge, Merge::Tally(_))
    }

    /// Whether a body can be read by itself, before the others are there ([`Self::scan`]).
    pub fn scans(&self) -> bool {
        matches!(self.merge, Merge::Records(_))
    }

    /// Reads the body of a success by itself, if that can be done. What comes of it goes to
    /// [`Self::merge`] with the body.
    pub fn scan(&self, body: &[u8]) -> Option<Scan> {
        match &self.merge {
            Merge::Records(plan) => Some(Scan::of(plan, body)),
            _ => None,
        }
    }

    /// Whether a backend's answer, by what came of it, itself shows that the backend still has the
    /// nodes by which it was given `share`.
    pub fn confirms(&self, share: &Share, scan: &Scan) -> bool {
        let rows = scan.rows().filter(|_| self.lists_nodes);
        rows.is_some_and(|rows| share.is_confirmed_by(rows))
    }

    /// Merges a round, which holds its parts in configured order, those of one backend in the order
    /// of the questions. `limits` are those that were sent to each of them.
    pub fn merge(
        &self,
        round: &[Part<'_>],
        limits: &[Option<u32>],
        context: Context<'_>,
    ) -> Merged {
        let mut merged = self.merge.run(round, limits, context);
        if let (Layout::Pretty, Outcome::Answer(answer)) = (self.layout, &mut merged.outcome) {
            let damaged =
                |part: &&Part<'_>| merged.damaged.iter().any(|(id, _)| *id == part.backend);
            let readable = round
                .iter()
                .filter(|part| !damaged(part))
                .filter_map(|part| part.reply);
            let bodies: Vec<_> = readable
                .filter(Reply::is_success)
                .map(|reply| reply.body)
                .collect();
            let text = pretty(&answer.pieces.assemble(&bodies));
            answer.pieces = Pieces::default();
            answer.pieces.push_made(&text);
        }
        merged
    }
}

impl Merge {
    /// Whether it wants the freshness map.
    pub fn needs_freshness(&self) -> bool {
        matches!(self, Self::Records(records) if records.needs_freshness())
    }

    /// Whether one backend speaks for all, so that each one that is silent could be it.
    pub fn is_by_one(&self) -> bool {
        matches!(self, Self::Holder(_))
    }

    fn run(&self, round: &[Part<'_>], limits: &[Option<u32>], context: Context<'_>) -> Merged {
        match self {
            Self::Records(plan) => records::merge(plan, round, limits, context),
            Self::Aggregates(plan) => aggregates::merge(plan, round, context),
            Self::Sifted(plan) => sift::merge(plan, round, context),
            Self::Tally(plan) => tally::merge(plan, round, context),
            Self::Version => whole::lowest_version(round),
            Self::First => whole::first(round),
            Self::Metrics(metrics) => whole::metrics(metrics, round),
            Self::Population(plan) => population::merge(plan, round),
            Self::List(plan) => listing::merge(plan, round),
            Self::Set(plan) => sets::merge(plan, round, context),
            Self::Newest(plan) => newest::merge(plan, round, context),
            Self::Summaries(plan) => subjects::merge(plan, round, context),
            Self::Holder(otherwise) => holder::merge(round, otherwise.as_deref()),
        }
    }
}

/// What became of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// What is served.
    pub outcome: Outcome,
    /// Backends whose body could not be read, dropped whole (ruling 12).
    pub damaged: Vec<(BackendId, Damage)>,
}

impl Merged {
    /// The same with an answer that needs no body of `round`: they were made here.
    pub(crate) fn detached(mut self, round: &[Part<'_>]) -> Self {
        if let Outcome::Answer(answer) = &mut self.outcome {
            let replies = round.iter().filter_map(|part| part.reply);
            let bodies: Vec<_> = replies
                .filter(Reply::is_success)
                .map(|reply| reply.body)
                .collect();
            let whole = answer.pieces.assemble(&bodies);
            answer.pieces = Pieces::default();
            answer.pieces.push_made(&whole);
        }
        self
    }
}

/// What is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A merged answer.
    Answer(Answer),
    /// The answer at this place of the round, as it came.
    Replay(usize),
    /// Nothing: no backend gave a usable answer and they do not agree on a refusal.
    Nothing,
    /// Sound answers whose values cannot be combined.
    Unfoldable(fold::FoldError),
    /// Nothing yet: this is to be asked instead.
    Instead(Box<Fan>),
    /// Not yet decided: these backends must be asked for more records first.
    AskAgain(Vec<Again>),
}

/// A backend that was cut off by its limit before the window was decided (ruling 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// Whom to ask again.
    pub backend: BackendId,
    /// The limit to send this time; `None` for none.
    pub limit: Option<u32>,
}

/// What a merge knows beside its plan and the round.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c> {
    /// Names of all configured backends, by [`BackendId`].
    pub backends: &'c [String],
    /// Whose data is newest; `None` where no plan asked for it or none could be built.
    pub freshness: Option<&'c owners::FreshnessMap>,
    /// Who owns what, where the nodes were divided.
    pub shares: Option<&'c owners::Shares>,
}

impl Context<'_> {
    /// The nodes that `backend` holds and another owns, each certname in its canonical spelling.
    pub(crate) fn stale(&self, backend: BackendId) -> Option<&HashSet<Box<[u8]>>> {
        self.shares?.stale(backend)
    }
}

/// The readable answers of a round.
pub(crate) struct Readings<'b, T> {
    /// Place in the round, the body and what was read from it; in configured order.
    pub(crate) good: Vec<Reading<'b, T>>,
    pub(crate) damaged: Vec<(BackendId, Damage)>,
    pub(crate) verdict: Verdict,
}

pub(crate) struct Reading<'b, T> {
    pub(crate) backend: BackendId,
    pub(crate) total: Option<u64>,
    pub(crate) body: &'b [u8],
    pub(crate) read: T,
}

/// Reads every success of `round`. A body that cannot be read is a backend that failed, so the
/// verdict is spoken after reading.
pub(crate) fn read_round<'b, T>(
    round: &[Part<'b>],
    mut read: impl FnMut(&'b [u8]) -> Result<T, ScanError>,
) -> Readings<'b, T> {
    read_replies(round, |reply| {
        check_utf8(reply.body).and_then(|()| read(reply.body))
    })
}

/// The same by a `read` that sees to it that the body is UTF-8.
pub(crate) fn read_replies<'b, T>(
    round: &[Part<'b>],
    mut read: impl FnMut(Reply<'b>) -> Result<T, ScanError>,
) -> Readings<'b, T> {
    let mut good = Vec::new();
    let mut damaged = Vec::new();
    let mut statuses = Vec::new();
    for &Part { backend, reply } in round {
        let mut status = reply.map(|reply| reply.status);
        if let Some(reply) = reply.filter(Reply::is_success) {
            match read(reply) {
                Ok(read) => {
                    good.push(Reading {
                        backend,
                        total: reply.total,
                        body: reply.body,
                        read,
                    });
                }
                Err(error) => {
                    damaged.push((backend, error.into()));
                    status = None;
                }
            }
        }
        statuses.push(status);
    }
    Readings {
        good,
        damaged,
        verdict: verdict(statuses),
    }
}

/// The backends' totals added up, if each of them sent one (R149, trap T27).
pub(crate) fn add_totals<T>(good: &[Reading<'_, T>]) -> Option<u64> {
    good.iter().map(|reading| reading.total).sum()
}
