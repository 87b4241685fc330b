//! Answers that one backend has and the others do not: what hangs below a report, or one object.

use crate::answer::{Answer, Pieces, Source};
use crate::json::{Elements, Kind, Members, kind};
use crate::merge::{Fan, Merged, Outcome, read_round};
use crate::round::{Part, Reply, Verdict};

/// Serves the answer of the backend that holds the report (R102-R104).
///
/// A 404 says that a backend does not hold it and vetoes nothing; any other refusal is the holder's
/// own and is replayed (ruling 1). If none speaks for itself and one is silent, that one may be the
/// holder, so there is nothing to serve. `otherwise` is what to ask where the holder's version
/// cannot answer (D13).
pub(super) fn merge(round: &[Part<'_>], otherwise: Option<&Fan>) -> Merged {
    let readings = read_round(round, |body| match kind(body.trim_ascii_start()) {
        Kind::Object => Members::new(body).try_for_each(|member| member.map(|_| ())),
        // What a report of a plan has in the place of logs and metrics.
        _ if body.trim_ascii() == b"null" => Ok(()),
        _ => Elements::new(body).try_for_each(|element| element.map(|_| ())),
    });
    let outcome = if let Some(holder) = readings.good.first() {
        let mut pieces = Pieces::default();
        pieces.push(Source::Reply(0), 0..holder.body.len());
        Outcome::Answer(Answer {
            pieces,
            total: holder.total,
            // However many hold it, one speaks (R187).
            contributed: 1,
            dropped: 0,
        })
    } else {
        let status = |part: &Part<'_>| part.reply.map(|reply| reply.status);
        let refuses = |part: &Part<'_>| status(part).is_some_and(|s| s >= 400 && s != 404);
        let own = round.iter().position(refuses);
        let is_at_fault = round.iter().any(|part| status(part) == Some(500));
        match (own, otherwise, readings.verdict) {
            (_, Some(fan), _) if is_at_fault => Outcome::Instead(Box::new(fan.clone())),
            (Some(at), ..) => Outcome::Replay(at),
            // PuppetDB's own "no such report" before the page of whatever stands in front of one
            // (trap T45).
            (None, _, Verdict::Replay(at)) => {
                let told = round
                    .iter()
                    .position(|part| part.reply.is_some_and(is_json));
                Outcome::Replay(told.unwrap_or(at))
            }
            (None, _, Verdict::Merge | Verdict::Nothing) => Outcome::Nothing,
        }
    };
    Merged {
        outcome,
        damaged: readings.damaged,
    }
}

fn is_json(reply: Reply<'_>) -> bool {
    reply.body.trim_ascii_start().starts_with(b"{")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Merge;
    use crate::plan::Ask;
    use crate::round::BackendId;

    type Body<'b> = &'b [u8];

    fn round<'b>(parts: &[Option<(u16, &'b [u8])>]) -> Vec<Part<'b>> {
        let parts = parts.iter().zip(0..);
        parts
            .map(|(part, id)| Part {
                backend: BackendId(id),
                reply: part.map(|(status, body)| Reply {
                    status,
                    total: None,
                    body,
                    scan: None,
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
    fn an_object_is_served_like_a_list() {
        let (object, cut): (&[u8], &[u8]) = (b"{\n  \"name\" : \"e\"\n}", b"{\"name\":");
        assert_eq!(
            served(&[Some((404, b"{}")), Some((200, object))]),
            Ok(object.to_vec())
        );
        assert!(served(&[Some((404, b"{}")), Some((200, cut))]).is_err());
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
        assert_eq!(served(&[Some((200, b"null"))]), Ok(b"null".to_vec()));
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
    fn t45_puppetdbs_own_404_goes_before_that_of_a_server_in_front_of_one() {
        let (html, own): (Body<'_>, Body<'_>) = (b"<html>", b" {\"error\":\"none\"}");
        for (bodies, at) in [([html, own], 1), ([own, html], 0), ([html, html], 0)] {
            let parts = bodies.map(|body| Some((404, body)));
            assert_eq!(served(&parts), Err(Outcome::Replay(at)), "{bodies:?}");
        }
    }

    #[test]
    fn r187_one_speaks_however_many_hold_it() {
        let both = round(&[Some((200, b"[1]")), Some((200, b"[2]"))]);
        let Outcome::Answer(answer) = merge(&both, None).outcome else {
            panic!("not served")
        };
        assert_eq!(answer.contributed, 1);
    }

    #[test]
    fn d13_a_fault_of_500_is_asked_around_whoever_else_is_out() {
        let fan = Fan::new(Ask::own("/pdb/query/v4/events", &[]), Merge::First);
        let ill: Option<(u16, &[u8])> = Some((500, b"x"));
        let (lost, down, refused) = (
            Some((404, &b"{}"[..])),
            Some((503, &b"x"[..])),
            Some((400, &b"x"[..])),
        );
        for parts in [[lost, ill], [None, ill], [down, ill], [ill, lost]] {
            let outcome = merge(&round(&parts), Some(&fan)).outcome;
            assert_eq!(
                outcome,
                Outcome::Instead(Box::new(fan.clone())),
                "{parts:?}"
            );
        }
        for (parts, expected) in [
            ([lost, refused], Outcome::Replay(1)),
            ([lost, down], Outcome::Replay(1)),
            ([lost, lost], Outcome::Replay(0)),
            ([lost, None], Outcome::Nothing),
        ] {
            assert_eq!(
                merge(&round(&parts), Some(&fan)).outcome,
                expected,
                "{parts:?}"
            );
        }
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
