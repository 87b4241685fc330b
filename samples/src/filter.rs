//! Which records a query keeps: the AST compiled once, then tested on each record.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::compare;
use crate::estate::Estate;
use crate::fault::Fault;
use crate::field::{self, Field};
use crate::pattern::Pattern;
use crate::render::stored_text;
use crate::schema::{Entity, Kind};
use crate::select;
use crate::time::Timestamp;

/// A compiled filter. Subqueries are not correlated, so each has become the set of its rows.
#[derive(Debug)]
pub(crate) enum Filter {
    /// `None` is SQL's unknown, which keeps no record and stays unknown under `not`.
    Constant(Option<bool>),
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
    Compare(Field, Operator, Operand),
    Matches(Field, Pattern),
    IsNull(Field),
    In(Vec<Field>, Vec<Vec<Option<Value>>>),
    /// The resource carries this tag.
    Tagged(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

#[derive(Debug)]
pub(crate) enum Operand {
    Text(String),
    Time(Timestamp),
    Flag(bool),
    Number(Number),
    Json(Value),
}

impl Operator {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "=" => Self::Equal,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            _ => return None,
        })
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
        }
    }
}

impl Filter {
    /// Keeps the records whose `column` is this text; the form in which a path narrows a query.
    pub(crate) fn column_is(entity: Entity, column: &str, text: &str) -> Result<Self, Fault> {
        let field = Field::queryable(entity, column)?;
        equal(field, &Value::from(text))
    }

    /// Compiles the criteria of a query on `entity`.
    pub(crate) fn compile(estate: &Estate, entity: Entity, ast: &Value) -> Result<Self, Fault> {
        let Value::Array(clause) = ast else {
            return Err(unrecognized(ast));
        };
        let Some(operator) = clause.first() else {
            return Err(Fault::Refused(
                "[] is not well-formed: queries must contain at least one operator".to_owned(),
            ));
        };
        let operands = &clause[1..];
        let every = |operands: &[Value]| {
            let each = operands.iter().map(|it| Self::compile(estate, entity, it));
            each.collect::<Result<Vec<_>, _>>()
        };
        match (operator.as_str().unwrap_or_default(), operands) {
            ("and" | "or" | "not", []) => Err(Fault::Refused(format!(
                "{operator} requires at least one term"
            ))),
            ("and", _) => Ok(Self::And(every(operands)?)),
            ("or", _) => Ok(Self::Or(every(operands)?)),
            ("not", [inner]) => {
                let inner = Self::compile(estate, entity, inner)?;
                Ok(inner.negated())
            }
            ("not", _) => Err(Fault::Refused(format!(
                "'not' takes exactly one argument, but {} were supplied",
                operands.len()
            ))),
            ("null?", [Value::String(field), wanted]) => {
                let field = Field::queryable(entity, field)?;
                comparable(&field)?;
                let wanted = !matches!(wanted, Value::Null | Value::Bool(false));
                let is_null = Self::IsNull(field);
                Ok(if wanted { is_null } else { is_null.negated() })
            }
            ("in", [fields, set]) => membership(estate, entity, fields, set),
            ("=" | ">" | ">=" | "<" | "<=" | "~", [field, value]) => {
                let name = operator.as_str().unwrap_or_default();
                binary(estate, entity, name, field, value)
            }
            ("=" | ">" | ">=" | "<" | "<=" | "~" | "in" | "null?", _) => Err(Fault::Refused(
                format!("{ast} is not well-formed: {operator} takes exactly two arguments"),
            )),
            ("subquery" | "~>", _) => Err(Fault::unsupported(format!("the operator {operator}"))),
            _ => Err(unrecognized(ast)),
        }
    }

    fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Whether the record is kept.
    pub(crate) fn keeps(&self, record: &Value) -> bool {
        self.test(record) == Some(true)
    }

    /// SQL's three-valued logic.
    fn test(&self, record: &Value) -> Option<bool> {
        match self {
            Self::Constant(verdict) => *verdict,
            Self::And(terms) => all(terms.iter().map(|term| term.test(record))),
            Self::Or(terms) => any(terms.iter().map(|term| term.test(record))),
            Self::Not(term) => term.test(record).map(|kept| !kept),
            Self::Compare(field, operator, operand) => {
                compare_field(field, *operator, operand, record)
            }
            Self::Matches(field, pattern) => {
                let value = field.value(record).filter(|value| !value.is_null())?;
                Some(match value {
                    Value::String(text) => pattern.is_match(text),
                    other => pattern.is_match(&stored_text(other)),
                })
            }
            // A JSON column cannot be NULL; what it holds then is the JSON `null`.
            Self::IsNull(field) => Some(field.value(record).is_none_or(Value::is_null)),
            Self::In(fields, rows) => {
                let values: Vec<_> = fields.iter().map(|field| field.value(record)).collect();
                any(rows.iter().map(|row| {
                    all(values.iter().zip(row).map(|(value, member)| {
                        Some(compare::json((*value)?, member.as_ref()?).is_eq())
                    }))
                }))
            }
            Self::Tagged(tag) => {
                let tags = record.get("tags").and_then(Value::as_array);
                let is_tag = |it: &Value| it.as_str() == Some(tag);
                Some(tags.is_some_and(|tags| tags.iter().any(is_tag)))
            }
        }
    }
}

fn all(terms: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(terms.map(|term| term.map(|kept| !kept))).map(|failed| !failed)
}

fn any(terms: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut verdict = Some(false);
    for term in terms {
        match term {
            Some(true) => return Some(true),
            Some(false) => {}
            None => verdict = None,
        }
    }
    verdict
}

fn compare_field(
    field: &Field,
    operator: Operator,
    operand: &Operand,
    record: &Value,
) -> Option<bool> {
    let Some(value) = field.value(record) else {
        // PuppetDB asks of a path with `=` whether the document contains it, and beside every other
        // operator whether its first key exists: both say no where a comparison would be unknown.
        let absent = field.path.len() <= 1 || operator == Operator::Equal;
        return (field.column.kind == Kind::Tree && absent).then_some(false);
    };
    let ordering = match operand {
        Operand::Text(text) => value.as_str()?.cmp(text.as_str()),
        Operand::Time(time) => Timestamp::parse(value.as_str()?)?.cmp(time),
        Operand::Flag(flag) => value.as_bool()?.cmp(flag),
        Operand::Number(number) => match value {
            Value::Number(value) => compare::numbers(value, number),
            _ => return None,
        },
        Operand::Json(json) => compare::json(value, json),
    };
    Some(operator.holds(ordering))
}

fn binary(
    estate: &Estate,
    entity: Entity,
    operator: &str,
    field: &Value,
    value: &Value,
) -> Result<Filter, Fault> {
    let name = match field {
        Value::String(name) => name.as_str(),
        Value::Array(of) => return nested(estate, entity, operator, of, value),
        other => return Err(unrecognized(other)),
    };
    match (name, operator) {
        ("node_state", "=") if entity.has_certname() => return node_state(estate, entity, value),
        ("latest_report?", "=") => return latest(estate, entity, value),
        ("type", "=") if entity == Entity::Reports && value == "any" => {
            return Ok(Filter::Constant(Some(true)));
        }
        _ => {}
    }
    let field = Field::queryable(entity, name)?;
    match Operator::named(operator) {
        None => matches(field, value),
        Some(Operator::Equal) => equal(field, value),
        Some(operator) => unequal(field, operator, value),
    }
}

fn matches(field: Field, pattern: &Value) -> Result<Filter, Fault> {
    comparable(&field)?;
    match (field.column.kind, pattern) {
        (Kind::Text | Kind::Json | Kind::Tree, Value::String(pattern)) => {
            Ok(Filter::Matches(field, Pattern::parse(pattern)?))
        }
        _ => Err(Fault::unsupported(format!("{} ~ {pattern}", field.text))),
    }
}

fn unequal(field: Field, operator: Operator, value: &Value) -> Result<Filter, Fault> {
    comparable(&field)?;
    let operand = match (field.column.kind, value) {
        (Kind::Timestamp, value) => Operand::Time(time(value)?),
        (Kind::Number, Value::Number(number)) => Operand::Number(number.clone()),
        (Kind::Json | Kind::Tree, Value::Number(_)) => Operand::Json(value.clone()),
        (Kind::Number | Kind::Json | Kind::Tree, _) => {
            return Err(Fault::Refused(format!(
                "Argument {value} and the operators >,>=,<,<= have incompatible types."
            )));
        }
        (Kind::Text | Kind::Boolean | Kind::Opaque | Kind::Tag | Kind::Document, _) => {
            return Err(Fault::Refused(format!(
                "Query operators >,>=,<,<= are not allowed on field {}",
                field.text
            )));
        }
    };
    Ok(Filter::Compare(field, operator, operand))
}

fn equal(field: Field, value: &Value) -> Result<Filter, Fault> {
    if let (Kind::Tag, Value::String(tag)) = (field.column.kind, value) {
        return Ok(Filter::Tagged(tag.to_lowercase()));
    }
    comparable(&field)?;
    if value.is_null() {
        return Ok(Filter::IsNull(field));
    }
    let operand = match (field.column.kind, value) {
        (Kind::Text, Value::String(text)) => Operand::Text(text.clone()),
        (Kind::Text, other) => {
            return Err(Fault::Broken(format!(
                "ERROR: operator does not exist: {} = {other}",
                field.text
            )));
        }
        (Kind::Timestamp, value) => Operand::Time(time(value)?),
        (Kind::Boolean, Value::Bool(flag)) => Operand::Flag(*flag),
        (Kind::Number, Value::Number(number)) => Operand::Number(number.clone()),
        (Kind::Number, Value::String(_)) => {
            return Err(Fault::Refused(format!(
                "Argument {value} is incompatible with the numeric field {}",
                field.text
            )));
        }
        (Kind::Json, value) => Operand::Json(value.clone()),
        // With an array or an object, PuppetDB asks for containment.
        (Kind::Tree, value) if !value.is_array() && !value.is_object() => {
            Operand::Json(value.clone())
        }
        (_, other) => {
            return Err(Fault::unsupported(format!("{} = {other}", field.text)));
        }
    };
    Ok(Filter::Compare(field, Operator::Equal, operand))
}

/// Refuses the columns that the sample only returns.
fn comparable(field: &Field) -> Result<(), Fault> {
    match field.column.kind {
        Kind::Tree if !field.path.is_empty() => Ok(()),
        Kind::Text | Kind::Timestamp | Kind::Boolean | Kind::Number | Kind::Json => Ok(()),
        Kind::Tree | Kind::Opaque | Kind::Tag | Kind::Document => {
            Err(Fault::unsupported(format!("filters on {}", field.text)))
        }
    }
}

fn time(value: &Value) -> Result<Timestamp, Fault> {
    let time = match value {
        Value::String(text) => Timestamp::parse(text),
        Value::Number(millis) => millis.as_i64().map(Timestamp::from_millis),
        _ => None,
    };
    time.ok_or_else(|| Fault::Refused(format!("{value} is not a valid timestamp value")))
}

/// `["node", "active"]` and `["fact", name]` in the place of a field.
fn nested(
    estate: &Estate,
    entity: Entity,
    operator: &str,
    of: &[Value],
    value: &Value,
) -> Result<Filter, Fault> {
    let [Value::String(kind), Value::String(name)] = of else {
        return Err(Fault::unsupported(format!("the field {}", Value::from(of))));
    };
    match (kind.as_str(), name.as_str(), operator) {
        ("node", "active", "=") if entity.has_certname() => {
            match value {
                Value::Null | Value::Bool(false) => inactive(estate, entity),
                // Any other value is true enough, even the text "false".
                _ => active(estate, entity),
            }
        }
        ("fact", name, _) if entity.has_certname() && !name.contains('.') => {
            let named = Filter::column_is(Entity::Facts, "name", name)?;
            let valued = binary(estate, Entity::Facts, operator, &"value".into(), value)?;
            let fact = Filter::And(vec![named, valued]);
            let holders = estate.rows(Entity::Facts);
            let holders = holders.iter().filter(|row| fact.keeps(row));
            let certnames = holders.map(|row| vec![row.get("certname").cloned()]);
            certname_in(entity, certnames.collect())
        }
        _ => Err(Fault::unsupported(format!("the field {}", Value::from(of)))),
    }
}

fn certname_in(entity: Entity, certnames: Vec<Vec<Option<Value>>>) -> Result<Filter, Fault> {
    let field = Field::queryable(entity, "certname")?;
    Ok(Filter::In(vec![field], certnames))
}

/// Keeps the records of nodes that are neither deactivated nor expired.
pub(crate) fn active(estate: &Estate, entity: Entity) -> Result<Filter, Fault> {
    Ok(inactive(estate, entity)?.negated())
}

fn inactive(estate: &Estate, entity: Entity) -> Result<Filter, Fault> {
    let certnames = estate.inactive().map(|name| vec![Some(name.clone())]);
    certname_in(entity, certnames.collect())
}

fn node_state(estate: &Estate, entity: Entity, state: &Value) -> Result<Filter, Fault> {
    let text = state.as_str().unwrap_or_default().to_lowercase();
    match text.as_str() {
        "active" => active(estate, entity),
        "inactive" => inactive(estate, entity),
        "any" => Ok(Filter::Constant(Some(true))),
        _ => Err(Fault::Refused(format!("No matching clause: {text}"))),
    }
}

fn latest(estate: &Estate, entity: Entity, wanted: &Value) -> Result<Filter, Fault> {
    let hash = match entity {
        Entity::Reports => "hash",
        Entity::Events => "report",
        _ => return Err(field::unknown(entity, "latest_report?")),
    };
    let Value::Bool(wanted) = wanted else {
        return Err(Fault::unsupported(format!("latest_report? = {wanted}")));
    };
    let latest = estate.rows(Entity::Nodes);
    let latest = latest
        .iter()
        .filter_map(|row| row.get("latest_report_hash"));
    let latest = latest.filter(|hash| !hash.is_null());
    let rows = latest.map(|hash| vec![Some(hash.clone())]).collect();
    let is_latest = Filter::In(vec![Field::queryable(entity, hash)?], rows);
    Ok(if *wanted {
        is_latest
    } else {
        is_latest.negated()
    })
}

fn membership(
    estate: &Estate,
    entity: Entity,
    fields: &Value,
    set: &Value,
) -> Result<Filter, Fault> {
    let Value::Array(clause) = set else {
        return Err(unrecognized(set));
    };
    let array = matches!(clause.as_slice(), [Value::String(word), _] if word == "array");
    if let (Value::Array(of), true) = (fields, array) {
        if of.first().is_some_and(|kind| kind == "fact") {
            return Err(Fault::unsupported("in on a fact"));
        }
        let text = "the operator 'in' with an array takes a single field";
        return Err(Fault::Broken(text.to_owned()));
    }
    let names = match fields {
        Value::Array(names) => names.iter().collect(),
        name => vec![name],
    };
    let fields = names.iter().map(|name| match name {
        Value::String(name) => {
            let field = Field::queryable(entity, name)?;
            comparable(&field)?;
            Ok(field)
        }
        other => Err(Fault::unsupported(format!("the field {other}"))),
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    if !array {
        let rows = select::subquery(estate, clause, fields.len())?;
        return Ok(Filter::In(fields, rows));
    }
    let Value::Array(members) = &clause[1] else {
        return Err(Fault::Refused(
            "Operator 'array' requires a vector argument".to_owned(),
        ));
    };
    // Each member obeys the type rules of `=`, and is tested as one.
    let field = &fields[0];
    let members = members.iter().map(|member| match member {
        Value::Null => Ok(Filter::Constant(None)),
        member => equal(field.clone(), member),
    });
    Ok(Filter::Or(members.collect::<Result<_, _>>()?))
}

pub(crate) fn unrecognized(ast: &Value) -> Fault {
    Fault::Refused(format!(
        "AST validation failed, but was successfully converted to SQL. \
         Unrecognized AST clause {ast}"
    ))
}
