//! Questions made at random, the same for the same seed and estate: entity, filter, projection or
//! functions, order, window, total, and the form they travel in.

mod dice;
mod filter;
mod schema;

use serde_json::{Value, json};

use super::ask::{Ask, Method};
use super::corpus::Case;
use super::sample::Sample;
use dice::Dice;
use schema::{Column, ENTITIES, Entity, Kind};

/// `count` questions.
pub fn cases(seed: u64, count: u64, sample: &Sample) -> Vec<Case> {
    let mut all: Vec<Case> = (0..count)
        .map(|number| one(&mut Dice::new(seed, number), sample))
        .collect();
    // The table's lines.
    all.sort_by(|one, other| one.feature.cmp(&other.feature));
    all
}

fn one(dice: &mut Dice, sample: &Sample) -> Case {
    let entity = dice.pick(ENTITIES);
    let mut made = Made::of(dice, entity, sample);
    let kind = match (&made.query, made.has_subquery) {
        (_, true) => "subqueries",
        (Query::Functions, _) => "functions",
        (Query::Groups, _) => "groups",
        (Query::Columns | Query::Rows, _) => entity.path,
    };
    Case {
        feature: format!("random: {kind}"),
        ask: made.ask(dice),
    }
}

/// The entities whose records name the node or the report that they belong to.
pub fn narrowed_entities() -> impl Iterator<Item = &'static str> {
    let of_nodes = |entity: &&Entity| entity.columns.iter().any(|it| it.name == "certname");
    let is_counted = |entity: &&Entity| entity.path.ends_with("event-counts");
    let entities = ENTITIES.iter().filter(of_nodes);
    entities.filter(move |it| !is_counted(it)).map(|it| it.path)
}

/// `count` filters of one of them. `sources` are what `pdbmux_source` may be compared with.
pub fn filters(seed: u64, count: u64, path: &str, sources: &[&str], sample: &Sample) -> Vec<Value> {
    let Some(entity) = ENTITIES.iter().find(|it| it.path == path) else {
        return Vec::new();
    };
    let one = |number: u64| {
        let dice = &mut Dice::new(seed, number);
        let mut made = filter::tree(dice, entity, sample, 3);
        let mut parts = Vec::new();
        // A backend asks its own history: what it does not hold is no matter of rewriting.
        if entity.relates && entity.has_state && dice.chance(25) {
            parts.push(filter::subquery(dice, sample));
        }
        if dice.chance(20) {
            parts.push(json!(["=", "pdbmux_source", dice.pick(sources)]));
        }
        parts.extend(filter::state(dice, entity));
        for part in parts {
            let part = if dice.chance(30) {
                json!(["not", part])
            } else {
                part
            };
            made = json!([dice.pick(&["and", "or"]), made, part]);
        }
        made
    };
    (0..count).map(one).collect()
}

/// What a query answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Query {
    /// Whole records.
    Rows,
    /// Some columns.
    Columns,
    /// Functions, in one row.
    Functions,
    /// Functions or none, by group.
    Groups,
}

/// The parts of a question.
struct Made<'a> {
    entity: &'a Entity,
    query: Query,
    has_subquery: bool,
    /// Absent: no filter, all columns.
    ast: Option<Value>,
    order: Vec<(&'a str, bool)>,
    limit: Option<u64>,
    offset: Option<u64>,
    total: bool,
    /// What event counts need.
    more: Vec<(&'static str, Value)>,
}

impl<'a> Made<'a> {
    fn of(dice: &mut Dice, entity: &'a Entity, sample: &Sample) -> Self {
        let mut filter = dice
            .chance(65)
            .then(|| filter::tree(dice, entity, sample, 2));
        let has_subquery = entity.relates && dice.chance(8);
        if has_subquery {
            let clause = filter::subquery(dice, sample);
            filter = Some(match filter {
                Some(own) => json!(["and", own, clause]),
                None => clause,
            });
        }
        if let Some(clause) = filter::state(dice, entity) {
            filter = Some(match filter {
                Some(own) => json!(["and", own, clause]),
                None => clause,
            });
        }
        let mut made = Self {
            entity,
            query: Query::Rows,
            has_subquery,
            ast: filter.clone(),
            order: Vec::new(),
            limit: None,
            offset: None,
            total: dice.chance(30) && entity.path != "aggregate-event-counts",
            more: Vec::new(),
        };
        if entity.path.ends_with("event-counts") {
            made.count_events(dice);
        } else {
            made.project(dice, filter);
        }
        made.cut(dice);
        made
    }

    fn project(&mut self, dice: &mut Dice, filter: Option<Value>) {
        let plain: Vec<&Column> = self.entity.columns.iter().filter(|it| it.shown).collect();
        let mut ordered: Vec<&str> = self.entity.orderable().collect();
        let shape = dice.below(10);
        let (columns, grouped) = match shape {
            // All of a record.
            0..=3 => return self.sort(dice, &ordered),
            4..=6 => {
                self.query = Query::Columns;
                (dice.some(&plain, 4), false)
            }
            7 => {
                self.query = Query::Functions;
                (Vec::new(), false)
            }
            _ => {
                self.query = Query::Groups;
                let groupable: Vec<&Column> =
                    plain.iter().copied().filter(|it| it.groups()).collect();
                (dice.some(&groupable, 2), true)
            }
        };
        ordered.retain(|name| columns.iter().any(|it| it.name == *name));
        let mut listed: Vec<Value> = Vec::new();
        let mut filter = filter;
        if shape == 7 || (grouped && dice.chance(70)) {
            let (functions, needed) = self.functions(dice);
            listed.extend(functions);
            filter = match (filter, needed) {
                (Some(own), Some(needed)) => Some(json!(["and", needed, own])),
                (own, needed) => needed.or(own),
            };
        }
        listed.extend(columns.iter().map(|it| json!(it.name)));
        let mut ast = vec![json!("extract"), json!(listed)];
        ast.extend(filter);
        if grouped {
            let mut by = vec![json!("group_by")];
            by.extend(columns.iter().map(|it| json!(it.name)));
            ast.push(json!(by));
        }
        self.ast = Some(json!(ast));
        self.sort(dice, &ordered);
    }

    /// Functions over columns that take them, and the filter that facts need for theirs.
    fn functions(&self, dice: &mut Dice) -> (Vec<Value>, Option<Value>) {
        if self.entity.path == "facts" && dice.chance(60) {
            let names = ["uptime_seconds", "load", "big_integer", "negative"];
            let name = dice.pick(&names);
            let function = dice.pick(&["sum", "avg", "min", "max", "count"]);
            let needed = json!(["=", "name", name]);
            return (vec![json!(["function", function, "value"])], Some(needed));
        }
        let mut made = Vec::new();
        let mut used = Vec::new();
        for column in dice.some(&self.entity.columns.iter().collect::<Vec<_>>(), 2) {
            let function = match column.kind {
                Kind::Number => dice.pick(&["sum", "avg", "min", "max", "count"]),
                Kind::Time | Kind::Text => dice.pick(&["min", "max", "count"]),
                Kind::Flag | Kind::Json => &"count",
            };
            if column.shown && column.kind != Kind::Json && !used.contains(function) {
                used.push(*function);
                made.push(json!(["function", function, column.name]));
            }
        }
        if made.is_empty() || (!used.contains(&"count") && dice.chance(50)) {
            made.push(json!(["function", "count"]));
        }
        (made, None)
    }

    fn count_events(&mut self, dice: &mut Dice) {
        let by = *dice.pick(&["certname", "resource", "containing_class"]);
        self.more.push(("summarize_by", json!(by)));
        if dice.chance(30) {
            self.more.push(("count_by", json!("certname")));
        }
        if dice.chance(30) {
            let field = dice.pick(&["failures", "successes", "noops", "skips"]);
            let operator = dice.pick(&["=", ">", ">=", "<", "<="]);
            let filter = json!([operator, field, dice.below(3)]);
            self.more.push(("counts_filter", filter));
        }
        if self.entity.path == "event-counts" {
            let names: &[&str] = match by {
                "certname" => &["certname"],
                "resource" => &["resource_type", "resource_title"],
                _ => &["containing_class"],
            };
            let mut all = vec!["failures", "successes", "noops", "skips"];
            all.extend(names);
            self.sort(dice, &all);
        }
    }

    fn sort(&mut self, dice: &mut Dice, orderable: &[&'a str]) {
        if dice.chance(50) && self.query != Query::Functions {
            let picked = dice.some(orderable, 3);
            self.order = picked
                .into_iter()
                .map(|name| (name, dice.chance(40)))
                .collect();
        }
    }

    fn cut(&mut self, dice: &mut Dice) {
        if self.entity.path == "aggregate-event-counts" {
            return;
        }
        // A window without an order shows any records; now and then that is asked too.
        let odds = if self.order.is_empty() { 10 } else { 50 };
        self.limit = dice.chance(odds).then(|| 1 + dice.below(30));
        self.offset = dice.chance(odds / 2).then(|| dice.below(20));
    }

    /// The question in one of the forms it may travel in.
    fn ask(&mut self, dice: &mut Dice) -> Ask {
        if self.entity.at_root && dice.chance(20) {
            return self.at_root(dice);
        }
        let fields = self.fields();
        let (method, parameters, body) = if dice.chance(20) {
            let map: serde_json::Map<String, Value> = fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            (
                Method::Post,
                Vec::new(),
                Some(Value::Object(map).to_string()),
            )
        } else {
            let text = |value: Value| match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let parameters = fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), text(value)))
                .collect();
            (Method::Get, parameters, None)
        };
        Ask {
            method,
            path: format!("/pdb/query/v4/{}", self.entity.path),
            parameters,
            headers: Vec::new(),
            body,
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields: Vec<(&'static str, Value)> = Vec::new();
        fields.extend(self.ast.clone().map(|ast| ("query", ast)));
        fields.extend(self.more.iter().cloned());
        if !self.order.is_empty() {
            let keys = self.order.iter().map(|(field, descending)| {
                json!({"field": field, "order": if *descending { "desc" } else { "asc" }})
            });
            fields.push(("order_by", keys.collect()));
        }
        fields.extend(self.limit.map(|limit| ("limit", json!(limit))));
        fields.extend(self.offset.map(|offset| ("offset", json!(offset))));
        if self.total {
            fields.push(("include_total", json!(true)));
        }
        fields
    }

    /// As `["from", ...]` with paging inside.
    fn at_root(&self, dice: &mut Dice) -> Ask {
        let mut from = vec![json!("from"), json!(self.entity.path.replace('-', "_"))];
        from.extend(self.ast.clone());
        if !self.order.is_empty() {
            let keys = self.order.iter().map(|(field, descending)| {
                if *descending {
                    json!([field, "desc"])
                } else {
                    json!(field)
                }
            });
            from.push(json!(["order_by", keys.collect::<Vec<_>>()]));
        }
        from.extend(self.limit.map(|limit| json!(["limit", limit])));
        from.extend(self.offset.map(|offset| json!(["offset", offset])));
        let (method, parameters, body) = if dice.chance(50) {
            let body = json!({"query": from, "include_total": self.total});
            (Method::Post, Vec::new(), Some(body.to_string()))
        } else {
            let total = self.total.then(|| ("include_total".into(), "true".into()));
            let query = ("query".to_owned(), json!(from).to_string());
            let parameters = [query].into_iter().chain(total).collect();
            (Method::Get, parameters, None)
        };
        Ask {
            method,
            path: "/pdb/query/v4".into(),
            parameters,
            headers: Vec::new(),
            body,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn a_seed_makes_the_same_questions_again_and_another_makes_others() {
        let sample = Sample {
            named: BTreeMap::new(),
            active: vec!["a".into(), "b".into()],
            reports: vec!["0".into()],
            silent_nodes: false,
            other_order: false,
        };
        let texts = |seed| -> Vec<String> {
            cases(seed, 200, &sample)
                .iter()
                .map(|case| case.ask.to_string())
                .collect()
        };
        assert_eq!(texts(1), texts(1));
        let (one, other): (BTreeSet<_>, BTreeSet<_>) = (
            texts(1).into_iter().collect(),
            texts(2).into_iter().collect(),
        );
        assert!(one.len() > 180 && one.intersection(&other).count() < 20);
    }
}
