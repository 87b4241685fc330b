//! Subqueries that all backends are asked first, so that what they come to can stand in the question
//! around them (`merge: exact`).

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future;
use pdbmux_core::merge::Fan;
use pdbmux_core::merge::prior::{Foreknown, Known, Prior};

use super::cached::assemble;
use super::fan::Conclusion;
use super::respond::Standing;
use super::serve::App;
use crate::work;

/// What came of asking first.
#[derive(Debug, Default)]
pub(super) struct Foundation {
    /// What is known now.
    pub(super) known: Foreknown,
    /// The backends that it is made without.
    pub(super) missing: Vec<(String, String)>,
    /// What is to be doubted of it.
    pub(super) doubts: Vec<&'static str>,
}

impl App {
    /// Asks what the subqueries of `fan` come to, then the question itself. What they lack, the
    /// answer lacks.
    pub(super) async fn after_priors(self: &Arc<Self>, mut fan: Fan, room: usize) -> Conclusion {
        let priors = std::mem::take(&mut fan.priors);
        let foundation = match self.foundation(priors).await {
            Ok(foundation) => foundation,
            Err(conclusion) => return conclusion,
        };
        let fan = fan.with_known(&foundation.known);
        let mut conclusion = self.ask_all(fan, room).await;
        if let Conclusion::Answer { standing, .. } | Conclusion::Stream { standing, .. } =
            &mut conclusion
        {
            foundation.bears(standing);
        }
        conclusion
    }

    /// Asks what subqueries come to; if that cannot be learnt, what is answered instead.
    ///
    /// One that all refuse stays where it is: their refusal is then one of the whole question.
    pub(super) async fn foundation(
        self: &Arc<Self>,
        priors: Vec<Prior>,
    ) -> Result<Foundation, Conclusion> {
        let asked = priors.iter();
        let asked = asked.map(|prior| self.ask_all(prior.fan.clone(), usize::MAX));
        let asked = future::join_all(asked).await;
        let mut foundation = Foundation::default();
        for (prior, conclusion) in priors.into_iter().zip(asked) {
            let known = match conclusion {
                Conclusion::Answer {
                    standing,
                    pieces,
                    bodies,
                } => {
                    foundation.rests_on(standing);
                    read(prior, assemble(pieces, bodies).await).await
                }
                none @ (Conclusion::Nothing(_) | Conclusion::Full(_)) => return Err(none),
                // Held whole, it is none to be streamed.
                Conclusion::Stream { .. } | Conclusion::Replay(_) | Conclusion::Unfoldable(_) => {
                    (prior, None)
                }
            };
            foundation.known.0.push(known);
        }
        Ok(foundation)
    }
}

async fn read(prior: Prior, body: Bytes) -> (Prior, Option<Known>) {
    work::run(body.len(), move || {
        // What a merge has put together can be read.
        let known = prior.read(&body).unwrap_or_default();
        (prior, known)
    })
    .await
}

impl Foundation {
    fn rests_on(&mut self, standing: Standing) {
        for missing in standing.missing {
            if self.missing.iter().all(|(known, _)| *known != missing.0) {
                self.missing.push(missing);
            }
        }
        for doubt in standing.doubts {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }

    /// Adds to the standing of an answer what it lacks because this does.
    fn bears(self, standing: &mut Standing) {
        for missing in self.missing {
            if standing
                .missing
                .iter()
                .all(|(known, _)| *known != missing.0)
            {
                standing.missing.push(missing);
                standing.contributed = standing.contributed.saturating_sub(1);
            }
        }
        for doubt in self.doubts {
            if !standing.doubts.contains(&doubt) {
                standing.doubts.push(doubt);
            }
        }
    }
}
