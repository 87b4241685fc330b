//! Subqueries that were asked of all backends first: what stands in their place afterwards.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::json::{Kind, Records, ScanError, check_utf8, kind, quote};
use crate::plan::{Ask, Doubt, Unlisted};
use crate::query::Sign;

use super::Fan;
use super::owners::{CHUNK, one_of};

/// Most values that are put into a query. PuppetDB takes 0.2 s for 5,000 in chunks.
const MOST_VALUES: usize = 10_000;
/// Most comparisons of single values, or of lists each under a condition of its own. They cost it far
/// more than lists do.
const MOST_CLAUSES: usize = 1_000;

/// A subquery that any backend may hold rows of, so that all of them are asked first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prior {
    /// The clause that it decides, as the query around it has it.
    pub clause: String,
    /// The columns of the record around it, each with the one of its rows that it must equal.
    pub columns: Vec<(String, String)>,
    /// The question for its rows.
    pub fan: Fan,
    /// What is to be doubted of the answer if the subquery stays where it is.
    pub doubts: Vec<Doubt>,
}

/// What stands in the place of a subquery's clause once its rows are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// AST that holds for whatever equals one of the rows.
    affirmed: String,
    /// AST that does not hold for whatever may not be said to equal none of them, which is the
    /// contrary as soon as a row has a null.
    denied: String,
}

impl Known {
    fn text(&self, sign: Sign) -> &str {
        match sign {
            Sign::Affirmed => &self.affirmed,
            Sign::Denied => &self.denied,
        }
    }
}

/// What is known of the subqueries of a question; `None` where nothing is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Foreknown(pub Vec<(Prior, Option<Known>)>);

impl Foreknown {
    /// The question with what is known in the place of the subqueries, by their clauses. Those of which
    /// nothing is known stay where they are.
    #[must_use]
    pub fn put_into(&self, ask: &Ask) -> Ask {
        ask.with_clauses(&|clause, sign| {
            let mut priors = self.0.iter();
            let (_, known) = priors.find(|(prior, _)| prior.clause == clause)?;
            known.as_ref().map(|known| known.text(sign).to_owned())
        })
    }

    /// What is to be doubted of an answer because something is not known.
    pub fn doubts(&self) -> impl Iterator<Item = Doubt> {
        let unknown = self.0.iter().filter(|(_, known)| known.is_none());
        unknown.flat_map(|(prior, _)| prior.doubts.iter().copied())
    }
}

impl Fan {
    /// The question with what is known of its subqueries in their place.
    #[must_use]
    pub fn with_known(mut self, foreknown: &Foreknown) -> Self {
        let unlisted = self.unlisted.as_deref_mut().map(Unlisted::ask_mut);
        let asks = std::iter::once(&mut self.ask).chain(&mut self.further);
        for ask in asks.chain(unlisted) {
            *ask = foreknown.put_into(ask);
        }
        self.doubts.extend(foreknown.doubts());
        self.doubts.sort_unstable();
        self.doubts.dedup();
        self
    }
}

/// The values of one row, each as JSON; `None` where it has none.
type Row<'b> = Vec<Option<&'b str>>;

impl Prior {
    /// Reads the rows; `None` if there are too many for a query, or some that no query can say.
    pub fn read(&self, body: &[u8]) -> Result<Option<Known>, ScanError> {
        let rows = self.rows(body)?;
        let (whole, lacking): (BTreeSet<_>, BTreeSet<_>) = rows
            .into_iter()
            .partition(|row| row.iter().all(Option::is_some));
        Ok(self.holds(&whole).and_then(|affirmed| {
            let denied = if lacking.is_empty() {
                affirmed.clone()
            } else {
                // What equals a row as far as it goes cannot be said not to.
                format!("[\"or\",{affirmed},{}]", self.holds(&lacking)?)
            };
            Some(Known { affirmed, denied })
        }))
    }

    fn rows<'b>(&self, body: &'b [u8]) -> Result<BTreeSet<Row<'b>>, ScanError> {
        check_utf8(body)?;
        let columns: Vec<_> = self.columns.iter().map(|(_, inner)| &**inner).collect();
        let mut fields = vec![None; columns.len()];
        let mut records = Records::new(body, &columns);
        let mut rows = BTreeSet::new();
        while records.next(&mut fields)?.is_some() {
            let values = fields.iter().zip(&self.columns).map(|(span, columns)| {
                let value = std::str::from_utf8(&body[span.clone()?]).ok()?;
                let is_null = kind(value.as_bytes()) == Kind::Null && !is_json(columns);
                (!is_null).then_some(value)
            });
            rows.insert(values.collect());
        }
        Ok(rows)
    }

    /// AST that holds for what equals one of `rows`, values that a row lacks left aside.
    fn holds(&self, rows: &BTreeSet<Row<'_>>) -> Option<String> {
        if rows.is_empty() {
            return Some(self.never());
        }
        // Lists are cheap: the column with the most values is listed, for each row of the others.
        let values = |at: usize| {
            rows.iter()
                .filter_map(|row| row[at])
                .collect::<BTreeSet<_>>()
        };
        let listed = (0..self.columns.len()).max_by_key(|at| values(*at).len())?;
        let mut groups: BTreeMap<Row<'_>, BTreeSet<Option<&str>>> = BTreeMap::new();
        for row in rows {
            let mut others = row.clone();
            let value = others.remove(listed);
            groups.entry(others).or_default().insert(value);
        }
        let mut size = Size::default();
        let clauses = groups.into_iter().map(|(others, values)| {
            let mut all = Vec::new();
            let of_others = (0..self.columns.len()).filter(|at| *at != listed);
            for (at, value) in of_others.zip(others) {
                if let Some(value) = value {
                    all.push(self.equals(at, vec![value], &mut size)?);
                }
            }
            if !values.contains(&None) {
                let values = values.into_iter().flatten().collect();
                all.push(self.equals(listed, values, &mut size)?);
            }
            Some(match &*all {
                [] => format!("[\"not\",{}]", self.never()),
                [single] => single.clone(),
                several => format!("[\"and\",{}]", several.join(",")),
            })
        });
        let clauses = clauses.collect::<Option<Vec<_>>>()?;
        Some(match &*clauses {
            [single] => single.clone(),
            several => format!("[\"or\",{}]", several.join(",")),
        })
    }

    /// AST that holds where the column equals one of `values`; `None` if a query cannot say so, or
    /// would be too large.
    fn equals(&self, at: usize, values: Vec<&str>, size: &mut Size) -> Option<String> {
        let columns = &self.columns[at];
        let outer = &*columns.0;
        let is_listed = |value: &&str| match kind(value.as_bytes()) {
            Kind::String => true,
            // A backend stumbles over a list that begins with it.
            Kind::Null => false,
            Kind::Array => outer == "path" || outer == "value",
            Kind::Bool | Kind::Number | Kind::Object => outer == "value",
        };
        // A list is one of texts to PuppetDB unless it knows better. What it makes of the value of a
        // fact that is to equal a number or a text is left to it.
        let is_compared = |value: &str| match kind(value.as_bytes()) {
            Kind::Null => true,
            Kind::Bool | Kind::Number => columns.1 != "value",
            Kind::String | Kind::Array | Kind::Object => false,
        };
        let (listed, single): (Vec<&str>, Vec<&str>) = values.into_iter().partition(is_listed);
        if !single.iter().all(|value| is_compared(value)) {
            return None;
        }
        size.values += listed.len();
        size.clauses += listed.len().div_ceil(CHUNK) + single.len();
        if size.values > MOST_VALUES || size.clauses > MOST_CLAUSES {
            return None;
        }
        let quoted = quote(outer);
        let mut clauses: Vec<_> = single
            .iter()
            .map(|value| match *value {
                "null" => format!("[\"null?\",{quoted},true]"),
                value => format!("[\"=\",{quoted},{value}]"),
            })
            .collect();
        if !listed.is_empty() {
            clauses.push(one_of(
                outer,
                listed.into_iter().map(str::as_bytes).collect(),
            ));
        }
        Some(match &*clauses {
            [single] => single.clone(),
            several => format!("[\"or\",{}]", several.join(",")),
        })
    }

    /// AST that holds for nothing, whatever the column holds and whatever stands around it.
    fn never(&self) -> String {
        let outer = self.columns.first().map_or("certname", |(outer, _)| outer);
        let outer = quote(outer);
        format!("[\"and\",[\"null?\",{outer},true],[\"null?\",{outer},false]]")
    }
}

/// How much was put into a query.
#[derive(Debug, Default)]
struct Size {
    values: usize,
    clauses: usize,
}

/// Whether both columns hold the values of facts: any JSON, of which null is a value like others.
fn is_json((outer, inner): &(String, String)) -> bool {
    outer == "value" && inner == "value"
}
