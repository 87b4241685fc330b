//! The nodes and where their data is.

use super::{Holding, Side, State};

/// Where a node's data is and where it is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Story {
    /// Only backend a has it.
    OnlyA,
    /// Only backend b has it.
    OnlyB,
    /// Both have it, a's report is newer.
    NewerInA,
    /// Both have it, b's report is newer.
    NewerInB,
    /// The agent's one report was sent to both.
    SameReport,
    /// Two reports that ended at the same time.
    EqualTimes,
    /// Both have facts, only a has a report.
    ReportedInA,
    /// Both have facts, only b has a report.
    ReportedInB,
    /// Only a has facts; never a report.
    SilentInA,
    /// Only b has facts; never a report.
    SilentInB,
    /// Both have facts; never a report.
    SilentInBoth,
    /// Only a had it, and deactivated it.
    GoneFromA,
    /// Only b had it, and deactivated it.
    GoneFromB,
    /// Newest in a and deactivated there; an older active copy in b.
    GoneWhereNewestA,
    /// Newest in b and deactivated there; an older active copy in a.
    GoneWhereNewestB,
    /// Newest in a and active there; an older deactivated copy in b.
    GoneWhereOlder,
}

/// Minute of the run that counts as older, newer, or the only one.
const OLDER: u32 = 300;
const NEWER: u32 = 600;

pub(super) const NODES: &[(&str, Story)] = &[
    ("web1.example.com", Story::OnlyA),
    ("Web-02.Example.COM", Story::OnlyA),
    ("db_01.example.com", Story::OnlyA),
    ("plus+at@a.example.com", Story::OnlyA),
    ("mail.example.com", Story::OnlyA),
    ("10.0.0.5", Story::OnlyA),
    ("app1.example.com", Story::OnlyB),
    ("App-02.Example.COM", Story::OnlyB),
    ("tilde~x.example.com", Story::OnlyB),
    ("cache.example.com", Story::OnlyB),
    ("staging1.example.com", Story::OnlyB),
    ("staging2.example.com", Story::OnlyB),
    ("ünïcode.example.com", Story::OnlyB),
    ("core1.example.com", Story::NewerInA),
    ("core2.example.com", Story::NewerInA),
    ("core3.example.com", Story::NewerInA),
    ("CORE4.example.com", Story::NewerInA),
    ("core-5_x.example.com", Story::NewerInA),
    ("edge1.example.com", Story::NewerInB),
    ("edge2.example.com", Story::NewerInB),
    ("edge3.example.com", Story::NewerInB),
    ("EDGE4.example.com", Story::NewerInB),
    ("edge-5_x.example.com", Story::NewerInB),
    (super::MOVED, Story::NewerInB),
    (super::IMPOSTOR, Story::NewerInB),
    ("twin1.example.com", Story::SameReport),
    ("twin2.example.com", Story::SameReport),
    ("tie1.example.com", Story::EqualTimes),
    ("tie2.example.com", Story::EqualTimes),
    ("early1.example.com", Story::ReportedInA),
    ("late1.example.com", Story::ReportedInB),
    ("quiet1.example.com", Story::SilentInA),
    ("quiet2.example.com", Story::SilentInB),
    ("quiet3.example.com", Story::SilentInBoth),
    ("retired1.example.com", Story::GoneFromA),
    ("retired2.example.com", Story::GoneFromB),
    ("retired3.example.com", Story::GoneWhereNewestA),
    ("retired4.example.com", Story::GoneWhereOlder),
    ("retired5.example.com", Story::GoneWhereNewestB),
];

impl Story {
    /// Who holds what, backend a first.
    pub fn holdings(self) -> Vec<Holding> {
        let active = |side, run| Holding {
            side,
            run,
            state: State::Active,
        };
        let gone = |side, run| Holding {
            side,
            run,
            state: State::Deactivated,
        };
        let (a, b) = (Side::A, Side::B);
        match self {
            Self::OnlyA => vec![active(a, Some(NEWER))],
            Self::OnlyB => vec![active(b, Some(NEWER))],
            Self::NewerInA => vec![active(a, Some(NEWER)), active(b, Some(OLDER))],
            Self::NewerInB => vec![active(a, Some(OLDER)), active(b, Some(NEWER))],
            Self::SameReport | Self::EqualTimes => {
                vec![active(a, Some(NEWER)), active(b, Some(NEWER))]
            }
            Self::ReportedInA => vec![active(a, Some(OLDER)), active(b, None)],
            Self::ReportedInB => vec![active(a, None), active(b, Some(OLDER))],
            Self::SilentInA => vec![active(a, None)],
            Self::SilentInB => vec![active(b, None)],
            Self::SilentInBoth => vec![active(a, None), active(b, None)],
            Self::GoneFromA => vec![gone(a, Some(OLDER))],
            Self::GoneFromB => vec![gone(b, Some(OLDER))],
            Self::GoneWhereNewestA => vec![gone(a, Some(NEWER)), active(b, Some(OLDER))],
            Self::GoneWhereNewestB => vec![active(a, Some(OLDER)), gone(b, Some(NEWER))],
            Self::GoneWhereOlder => vec![active(a, Some(NEWER)), gone(b, Some(OLDER))],
        }
    }
}
