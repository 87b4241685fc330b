//! Answers that one backend has and the others do not: what hangs below a report.

use crate::answer::{Answer, Pieces, Source};
use crate::json::{Elements, ScanError};
use crate::merge::{Fan, Merged, Outcome, read_round};
use crate::round::{Part, Verdict};

/// Serves the answer of the backend that holds the report (R102-R104).
///
/// A 404 says that a backend does not hold it and vetoes nothing; any other refusal is the holder's
/// own and is replayed (ruling 1). If none speaks for itself and one is silent, that one may be the
/// holder, so there is nothing to serve. `otherwise` is what to ask where the holder's version
/// cannot answer (D13).
pub(super) fn merge(round: &[Part<'_>], otherwise: Option<&Fan>) -> Merged {
    let readings = read_round(round, |body| {
        Elements::new(body).try_for_each(|element| element.map(|_| ()))?;
        Ok::<_, ScanError>(())
    });
    let outcome = if let Some(holder) = readings.good.first() {
        let mut pieces = Pieces::default();
        pieces.push(Source::Reply(0), 0..holder.body.len());
        let contributed = readings.good.len();
        Outcome::Answer(Answer {
            pieces,
            total: holder.total,
            contributed,
            dropped: 0,
        })
    } else {
        let status = |part: &Part<'_>| part.reply.map(|reply| reply.status);
        let own = |part: &Part<'_>| status(part).is_some_and(|s| s >= 400 && s != 404);
        match (round.iter().position(own), otherwise, readings.verdict) {
            (Some(at), Some(fan), _) if status(&round[at]) == Some(500) => {
                Outcome::Instead(Box::new(fan.clone()))
            }
            (Some(at), ..) | (None, _, Verdict::Replay(at)) => Outcome::Replay(at),
            (None, _, Verdict::Merge | Verdict::Nothing) => Outcome::Nothing,
        }
    };
    Merged {
        outcome,
        damaged: readings.damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{BackendId, Reply};

    fn round<'b>(parts: &[Option<(u16, &'b [u8])>]) -> Vec<Part<'b>> {
        let parts = parts.iter().zip(0..);
        parts
            .map(|(part, id)| Part {
                backend: BackendId(id),
                reply: part.map(|(status, body)| Reply {
                    status,
                    total: None,
                    body,
                }),
            })
            .collect()
    }

    fn served(parts: &[Option<(u16, &[u8])>]) -> Result<Vec<u8>, Outcome> {
        let round = round(parts);
        match merge(&round, None).outcome {
            Outcome::Answer(answer) => {
                let good = round.iter().filter_map(|part| part.reply);
                let bodies: Vec<_> = good.filter(Reply::is_success).map(|r| r.body).collect();
                Ok(answer.pieces.assemble(&bodies))
            }
            other => Err(other),
        }
    }

    #[test]
    fn r102_r104_the_holder_is_found_wherever_it_stands() {
        assert_eq!(
            served(&[Some((404, b"{}")), None, Some((200, b"[1]"))]),
            Ok(b"[1]".to_vec())
        );
        assert_eq!(
            served(&[Some((500, b"x")), Some((200, b"[]"))]),
            Ok(b"[]".to_vec())
        );
    }

    #[test]
    fn r103_none_holds_it() {
        assert_eq!(
            served(&[Some((404, b"a")), Some((404, b"b"))]),
            Err(Outcome::Replay(0))
        );
        // A silent backend may be the holder.
        assert_eq!(served(&[Some((404, b"a")), None]), Err(Outcome::Nothing));
        assert_eq!(
            served(&[Some((404, b"a")), Some((200, b"[1"))]),
            Err(Outcome::Nothing)
        );
    }

    #[test]
    fn ruling_1_the_holders_own_error_is_replayed() {
        assert_eq!(
            served(&[Some((404, b"a")), Some((400, b"b"))]),
            Err(Outcome::Replay(1))
        );
        assert_eq!(
            served(&[Some((404, b"a")), Some((503, b"b")), None]),
            Err(Outcome::Replay(1))
        );
    }
}
