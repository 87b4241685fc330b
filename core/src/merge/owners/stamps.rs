//! How new copies of nodes are, in little room: there is one for each node and backend.

use jiff::Timestamp;

use super::copies::State;
use super::time::time;

/// A time in microseconds, which is as exactly as a PuppetDB's database keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct When(i64);

impl When {
    /// Before all others.
    const NEVER: Self = Self(i64::MIN);

    pub(super) fn read(raw: Option<&[u8]>) -> Self {
        time(raw).map_or(Self::NEVER, |time| Self(time.as_microsecond()))
    }

    /// `None` is never.
    pub(super) fn time(self) -> Option<Timestamp> {
        // Never lies far outside of what there are times for.
        Timestamp::from_microsecond(self.0).ok()
    }
}

impl Default for When {
    fn default() -> Self {
        Self::NEVER
    }
}

/// How new a backend's data of a node is: when its newest report ended, then, where they were asked
/// for, when its facts and its catalog came. What never came is older than anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    pub(super) report: When,
    pub(super) facts: When,
    pub(super) catalog: When,
}

impl Stamp {
    /// From a record's `report_timestamp` alone.
    pub(crate) fn of_report(raw: Option<&[u8]>) -> Self {
        Self {
            report: When::read(raw),
            ..Self::default()
        }
    }
}

/// The stamps and states of many copies, by their places.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    report: Column<When>,
    facts: Column<When>,
    catalog: Column<When>,
    state: Column<State>,
}

impl Stamps {
    pub(super) fn stamp(&self, at: usize) -> Stamp {
        Stamp {
            report: self.report.get(at),
            facts: self.facts.get(at),
            catalog: self.catalog.get(at),
        }
    }

    pub(super) fn state(&self, at: usize) -> State {
        self.state.get(at)
    }

    pub(super) fn set(&mut self, at: usize, stamp: Stamp, state: State) {
        self.report.set(at, stamp.report);
        self.facts.set(at, stamp.facts);
        self.catalog.set(at, stamp.catalog);
        self.state.set(at, state);
    }

    /// How many bytes it takes.
    pub(super) fn size(&self) -> usize {
        self.report.size() + self.facts.size() + self.catalog.size() + self.state.size()
    }

    /// Gives back what there is room for beyond them.
    pub(super) fn shrink(&mut self) {
        self.report.0.shrink_to_fit();
        self.facts.0.shrink_to_fit();
        self.catalog.0.shrink_to_fit();
        self.state.0.shrink_to_fit();
    }
}

/// A value for each place. Usual ones behind the last unusual one take no room, so that a time that
/// was not asked for takes none at all.
#[derive(Debug, Default)]
struct Column<T>(Vec<T>);

impl<T: Copy + Default + PartialEq> Column<T> {
    fn get(&self, at: usize) -> T {
        self.0.get(at).copied().unwrap_or_default()
    }

    fn set(&mut self, at: usize, value: T) {
        if at >= self.0.len() {
            if value == T::default() {
                return;
            }
            self.0.resize(at + 1, T::default());
        }
        self.0[at] = value;
    }

    fn size(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_before_every_time_and_is_none() {
        let first = When(Timestamp::MIN.as_microsecond());
        assert!(When::NEVER < first);
        assert_eq!(first.time(), Some(Timestamp::MIN));
        assert_eq!(When::NEVER.time(), None);
        assert_eq!(When::read(Some(b"null")), When::NEVER);
    }

    #[test]
    fn times_are_told_apart_by_the_microsecond() {
        let when = |text: &str| When::read(Some(format!("\"{text}\"").as_bytes()));
        let (a, b) = (
            when("2026-01-31T12:00:00.000001Z"),
            when("2026-01-31T12:00:00.000002Z"),
        );
        assert!(a < b);
        assert_eq!(a.time(), "2026-01-31T12:00:00.000001Z".parse().ok());
    }

    #[test]
    fn what_is_as_usual_takes_no_room_and_is_there_all_the_same() {
        let mut column = Column::default();
        for at in 0..3 {
            column.set(at, State::Active);
        }
        assert_eq!((column.size(), column.get(2)), (0, State::Active));
        column.set(4, State::Inactive);
        column.set(1, State::Inactive);
        column.set(9, State::Active);
        assert_eq!(column.size(), 5);
        let inactive: Vec<_> = (0..12)
            .filter(|at| column.get(*at) == State::Inactive)
            .collect();
        assert_eq!(inactive, [1, 4]);
        column.set(4, State::Active);
        assert_eq!(column.get(4), State::Active);
    }
}
