//! Whether two answers to one question say the same.

mod normal;
mod order;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anyhow::Result;

use super::canon::Json;
use super::shape::{Shape, Window};
use crate::http::Answer;
use normal::normal;
use order::{keys, receipts_in_order};

/// One way in which two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs, in a word.
    pub what: What,
    /// How, a line each.
    pub lines: Vec<String>,
}

/// What can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// pdbmux did not answer, or its answer broke off.
    Answer,
    /// The HTTP status.
    Status,
    /// The media type.
    ContentType,
    /// `X-Records`.
    Total,
    /// The body as a whole.
    Body,
    /// Records that are missing or too many.
    Rows,
    /// The order of records.
    Order,
}

impl What {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answer => "no answer",
            Self::Status => "status",
            Self::ContentType => "content type",
            Self::Total => "X-Records",
            Self::Body => "body",
            Self::Rows => "rows",
            Self::Order => "order",
        }
    }
}

/// How many rows of a kind are shown.
const SHOWN: usize = 3;

/// Compares what `got` says with what the union says. `whole` gives the union's answer without a
/// window; it is called where a window may show any of several records.
pub fn compare(
    shape: &Shape,
    union: &Answer,
    got: &Answer,
    whole: impl FnOnce() -> Result<Answer>,
) -> Result<Vec<Difference>> {
    if got.status != union.status {
        return Ok(vec![Difference {
            what: What::Status,
            lines: vec![
                format!("union  {} {}", union.status, brief(&union.body)),
                format!("pdbmux {} {}", got.status, brief(&got.body)),
            ],
        }]);
    }
    let mut found = Vec::new();
    for (what, name) in [
        (What::ContentType, "content-type"),
        (What::Total, "x-records"),
    ] {
        let (wanted, said) = (union.header(name), got.header(name));
        if wanted != said {
            let lines = vec![format!("union {wanted:?}, pdbmux {said:?}")];
            found.push(Difference { what, lines });
        }
    }
    let is_json = union
        .header("content-type")
        .is_some_and(|it| it.starts_with("application/json"));
    if !is_json {
        // Words of mistakes differ between versions: the status is what counts.
        return Ok(found);
    }
    let wanted = Json::parse(&union.body)?;
    let Ok(said) = Json::parse(&got.body) else {
        found.push(body("pdbmux's answer is no JSON", &got.body));
        return Ok(found);
    };
    if union.body.contains('\n') != got.body.contains('\n') {
        found.push(body("one is pretty, the other is not", &got.body));
    }
    match (wanted, said) {
        (Json::List(wanted), Json::List(said)) => {
            found.extend(rows(shape, &wanted, &said, whole)?);
        }
        (wanted, said) => {
            let (wanted, said) = (normal(shape, &wanted), normal(shape, &said));
            if wanted != said {
                found.push(Difference {
                    what: What::Body,
                    lines: apart(&wanted.spell(), &said.spell()),
                });
            }
        }
    }
    Ok(found)
}

fn body(what: &str, text: &str) -> Difference {
    Difference {
        what: What::Body,
        lines: vec![format!("{what}: {}", brief(text))],
    }
}

fn rows(
    shape: &Shape,
    wanted: &[Json],
    said: &[Json],
    whole: impl FnOnce() -> Result<Answer>,
) -> Result<Vec<Difference>> {
    let all = |rows: &[Json]| -> Vec<Json> { rows.iter().map(|row| normal(shape, row)).collect() };
    let (normal_wanted, normal_said) = (all(wanted), all(said));
    if matches!(shape.entity.as_str(), "logs" | "metrics") {
        return Ok(sequence(&normal_wanted, &normal_said));
    }
    let mut found = Vec::new();
    let wanted_keys = keys(shape, &normal_wanted);
    let said_keys = keys(shape, &normal_said);
    if wanted_keys.is_some() && wanted_keys != said_keys {
        let (wanted, said) = (
            wanted_keys.unwrap_or_default(),
            said_keys.unwrap_or_default(),
        );
        let at = wanted.iter().zip(&said).position(|(a, b)| a != b);
        let at = at.unwrap_or(wanted.len().min(said.len()));
        found.push(Difference {
            what: What::Order,
            lines: vec![
                format!("at {at}: union  {:?}", wanted.get(at)),
                format!("at {at}: pdbmux {:?}", said.get(at)),
            ],
        });
    }
    found.extend(receipts_in_order(shape, said));
    let (missing, extra) = match shape.window {
        Window::Whole => apart_as_sets(&normal_wanted, &normal_said),
        Window::Part if normal_wanted == normal_said => (Vec::new(), Vec::new()),
        Window::Part => {
            if wanted.len() != said.len() {
                found.push(Difference {
                    what: What::Rows,
                    lines: vec![format!(
                        "union {} rows, pdbmux {}",
                        wanted.len(),
                        said.len()
                    )],
                });
            }
            // Without a total order a window shows any that are as good.
            let whole = whole()?;
            let whole = Json::parse(&whole.body).unwrap_or(Json::Null);
            let whole = all(whole.list().unwrap_or_default());
            (Vec::new(), apart_as_sets(&whole, &normal_said).1)
        }
    };
    let counts = format!("union {} rows, pdbmux {}", wanted.len(), said.len());
    found.extend(rows_apart(&counts, &missing, &extra));
    Ok(found)
}

/// The difference of rows that are missing or too many, if there are such.
pub(super) fn rows_apart(counts: &str, missing: &[String], extra: &[String]) -> Option<Difference> {
    if missing.is_empty() && extra.is_empty() {
        return None;
    }
    let (few, many) = (missing.len(), extra.len());
    let mut lines = vec![format!("{counts}: {few} missing, {many} too many")];
    for (sign, rows) in [("-", missing), ("+", extra)] {
        let shown = rows.iter().take(SHOWN);
        lines.extend(shown.map(|row| format!("{sign} {}", brief(row))));
    }
    Some(Difference {
        what: What::Rows,
        lines,
    })
}

fn sequence(wanted: &[Json], said: &[Json]) -> Vec<Difference> {
    if wanted == said {
        return Vec::new();
    }
    let at = wanted.iter().zip(said).position(|(a, b)| a != b);
    let at = at.unwrap_or(wanted.len().min(said.len()));
    let show = |rows: &[Json]| rows.get(at).map(|row| brief(&row.spell()));
    vec![Difference {
        what: What::Rows,
        lines: vec![format!(
            "at {at}: union {:?}, pdbmux {:?}",
            show(wanted),
            show(said)
        )],
    }]
}

/// What the first has and the second has not, and the reverse, each as often as it has it more
/// often.
pub(super) fn apart_as_sets(wanted: &[Json], said: &[Json]) -> (Vec<String>, Vec<String>) {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for row in wanted {
        *counts.entry(row.spell()).or_default() += 1;
    }
    for row in said {
        *counts.entry(row.spell()).or_default() -= 1;
    }
    let (mut missing, mut extra) = (Vec::new(), Vec::new());
    for (row, count) in counts {
        let times = usize::try_from(count.unsigned_abs()).unwrap_or(1);
        match count.cmp(&0) {
            Ordering::Greater => missing.extend(std::iter::repeat_n(row, times)),
            Ordering::Less => extra.extend(std::iter::repeat_n(row, times)),
            Ordering::Equal => {}
        }
    }
    (missing, extra)
}

/// Two long texts from a little before where they part.
fn apart(wanted: &str, said: &str) -> Vec<String> {
    let same = wanted
        .char_indices()
        .zip(said.chars())
        .find(|((_, a), b)| a != b)
        .map_or(wanted.len().min(said.len()), |((at, _), _)| at);
    let from = wanted
        .char_indices()
        .map(|(at, _)| at)
        .take_while(|at| *at + 40 < same)
        .last()
        .unwrap_or(0);
    [("union ", wanted), ("pdbmux", said)]
        .map(|(who, text)| format!("{who} ...{}", brief(text.get(from..).unwrap_or(text))))
        .to_vec()
}

/// The beginning of a text, in one line.
pub fn brief(text: &str) -> String {
    const LONGEST: usize = 240;
    let mut line: String = text
        .chars()
        .take(LONGEST)
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}
