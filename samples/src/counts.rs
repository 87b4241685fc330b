//! `/event-counts`: how many events of each status a subject has.

use serde_json::{Value, json};

use crate::compare;
use crate::estate::Estate;
use crate::fault::Fault;
use crate::filter::Filter;
use crate::params::Params;
use crate::render::{Cell, Row};
use crate::schema::Entity;
use crate::select::Selected;

/// The counts, and the event status behind each.
const COUNTS: [(&str, &str); 4] = [
    ("failures", "failure"),
    ("skips", "skipped"),
    ("successes", "success"),
    ("noops", "noop"),
];

/// Counts the events that the query keeps by the `summarize_by` of the request.
pub(crate) fn event_counts(estate: &Estate, params: &Params) -> Result<Selected, Fault> {
    let missing = "Missing required query parameter 'summarize_by'";
    let subject = match params.text("summarize_by") {
        Some("certname") => Subject::Certname,
        Some("resource") => Subject::Resource,
        Some("containing_class") => Subject::ContainingClass,
        Some(other) => {
            let text = format!("Unsupported value for 'summarize_by': '{other}'");
            return Err(Fault::Refused(text));
        }
        None => return Err(Fault::Refused(missing.to_owned())),
    };
    match params.text("count_by") {
        None | Some("resource") => {}
        Some(other) => return Err(Fault::unsupported(format!("count_by={other}"))),
    }
    for name in ["counts_filter", "order_by"] {
        if params.text(name).is_some_and(|text| !text.is_empty()) {
            return Err(Fault::unsupported(format!("{name} on event-counts")));
        }
    }
    let filter = match params.query()? {
        Some(ast) => Filter::compile(estate, Entity::Events, &ast)?,
        None => Filter::Constant(Some(true)),
    };
    let events = estate.rows(Entity::Events);
    let mut counted: Vec<(Value, [usize; 4])> = Vec::new();
    for event in events.iter().filter(|event| filter.keeps(event)) {
        let key = subject.of(event);
        let same = |(known, _): &(Value, _)| compare::json(known, &key).is_eq();
        let index = counted.iter().position(same).unwrap_or(counted.len());
        if index == counted.len() {
            counted.push((key, [0; 4]));
        }
        for (count, (_, status)) in counted[index].1.iter_mut().zip(COUNTS) {
            *count += usize::from(event.get("status") == Some(&status.into()));
        }
    }
    let total = counted.len();
    let rows = counted
        .into_iter()
        .map(|(key, counts)| subject.row(key, counts));
    let rows = params.window()?.cut(rows.collect());
    Ok(Selected { rows, total })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Certname,
    Resource,
    ContainingClass,
}

impl Subject {
    fn of(self, event: &Value) -> Value {
        match self {
            Self::Certname => json!({"title": event.get("certname")}),
            Self::Resource => {
                json!({"type": event.get("resource_type"), "title": event.get("resource_title")})
            }
            Self::ContainingClass => json!({"title": event.get("containing_class")}),
        }
    }

    fn row(self, subject: Value, counts: [usize; 4]) -> Row {
        let name = match self {
            Self::Certname => "certname",
            Self::Resource => "resource",
            Self::ContainingClass => "containing_class",
        };
        let counts = COUNTS.into_iter().zip(counts);
        let counts = counts.map(|((name, _), count)| (name.to_owned(), Cell::Json(count.into())));
        let tail = [
            ("subject_type".to_owned(), Cell::Json(name.into())),
            ("subject".to_owned(), Cell::Json(subject)),
        ];
        counts.chain(tail).collect()
    }
}
