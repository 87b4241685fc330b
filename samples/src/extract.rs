//! `extract` and `group_by`: which columns an answer has, and what its functions compute.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::Value;

use crate::compare;
use crate::decimal::Decimal;
use crate::fault::Fault;
use crate::field::Field;
use crate::render::{Cell, Row};
use crate::schema::{Entity, Kind};

/// The columns of an answer; without an `extract`, all that the entity returns.
#[derive(Debug)]
pub(crate) struct Projection {
    columns: Vec<(String, Source)>,
    pub(crate) grouping: Grouping,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// One row a record.
    None,
    /// One row over everything, even over nothing.
    Whole,
    /// One row for each different set of these values.
    By(Vec<Field>),
}

#[derive(Debug)]
enum Source {
    Column(Field),
    Function(Function, Argument),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

#[derive(Debug)]
enum Argument {
    None,
    Column(Field),
    /// `count` takes any name and finds nothing under it.
    Unknown,
}

impl Projection {
    /// All columns that the entity returns.
    pub(crate) fn all(entity: Entity) -> Self {
        let returned = entity.columns().iter().filter(|it| it.is_returned());
        let columns = returned.map(|it| (it.name.to_owned(), Source::Column(Field::plain(it))));
        Self {
            columns: columns.collect(),
            grouping: Grouping::None,
        }
    }

    /// Reads the columns of an `extract` and the items of its `group_by`.
    pub(crate) fn parse(
        entity: Entity,
        columns: &Value,
        group_by: Option<&[Value]>,
    ) -> Result<Self, Fault> {
        let one = std::slice::from_ref(columns);
        let items = columns.as_array().map_or(one, Vec::as_slice);
        if items.is_empty() && group_by.is_none() {
            return Ok(Self::all(entity));
        }
        // Functions stand before plain columns, whatever their places in the query.
        let (functions, plain): (Vec<_>, Vec<_>) = items.iter().partition(|it| it.is_array());
        let mut names = Names::default();
        let mut outputs = Vec::new();
        for item in &functions {
            let (function, argument) = function(entity, item)?;
            let name = names.next(function.name());
            outputs.push((name, Source::Function(function, argument)));
        }
        for item in plain {
            let Value::String(text) = item else {
                return Err(Fault::unsupported(format!("extract of {item}")));
            };
            let field = Field::extractable(entity, text)?;
            outputs.push((names.next(text), Source::Column(field)));
        }
        let grouping = match group_by {
            Some(items) => Grouping::By(group_fields(entity, items)?),
            None if functions.is_empty() => Grouping::None,
            None => Grouping::Whole,
        };
        let projection = Self {
            columns: outputs,
            grouping,
        };
        projection.check_grouped()?;
        Ok(projection)
    }

    /// Whether PuppetDB looks at facts with numeric values only: `sum`, `avg`, `min` and `max` cast
    /// the value, and so narrow every other column of their row too.
    pub(crate) fn wants_numeric_facts(&self) -> bool {
        let casts = |function: Function| function != Function::Count;
        self.functions().any(|(function, _)| casts(function))
    }

    /// The row of one record.
    pub(crate) fn row(&self, record: &Value) -> Row {
        let cells = self
            .columns
            .iter()
            .filter_map(|(name, source)| match source {
                Source::Column(field) => Some((name.clone(), cell(field, record))),
                Source::Function(..) => None,
            });
        cells.collect()
    }

    /// The row of one group of records.
    pub(crate) fn group_row(&self, members: &[&Value]) -> Result<Row, Fault> {
        let cells = self.columns.iter().map(|(name, source)| {
            let cell = match (source, members.first()) {
                (Source::Column(field), Some(first)) => cell(field, first),
                (Source::Column(_), None) => Cell::Json(Value::Null),
                (Source::Function(function, argument), _) => compute(*function, argument, members)?,
            };
            Ok((name.clone(), cell))
        });
        cells.collect()
    }

    fn functions(&self) -> impl Iterator<Item = (Function, &Argument)> {
        self.columns.iter().filter_map(|(_, source)| match source {
            Source::Function(function, argument) => Some((*function, argument)),
            Source::Column(_) => None,
        })
    }

    /// A plain column of a grouped query has to be grouped by, as SQL demands.
    fn check_grouped(&self) -> Result<(), Fault> {
        let grouped = |field: &Field| match &self.grouping {
            Grouping::None => true,
            Grouping::Whole => false,
            Grouping::By(fields) => fields.contains(field),
        };
        for (name, source) in &self.columns {
            if let Source::Column(field) = source
                && !grouped(field)
            {
                return Err(Fault::Broken(format!(
                    "ERROR: column \"{name}\" must appear in the GROUP BY clause \
                     or be used in an aggregate function"
                )));
            }
        }
        Ok(())
    }
}

/// Names answer columns: the nth repeat of a name gets `_n`.
#[derive(Default)]
struct Names<'a>(HashMap<&'a str, usize>);

impl<'a> Names<'a> {
    fn next(&mut self, name: &'a str) -> String {
        let seen = self.0.entry(name).or_default();
        *seen += 1;
        match *seen {
            1 => name.to_owned(),
            n => format!("{name}_{n}"),
        }
    }
}

impl Function {
    fn named(name: &str) -> Option<Self> {
        let all = [Self::Count, Self::Sum, Self::Avg, Self::Min, Self::Max];
        all.into_iter().find(|function| function.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

fn function(entity: Entity, item: &Value) -> Result<(Function, Argument), Fault> {
    let words = item.as_array().map_or(&[][..], Vec::as_slice);
    let (name, arguments) = match words {
        [Value::String(word), Value::String(name), arguments @ ..] if word == "function" => {
            (name.as_str(), arguments)
        }
        _ => return Err(Fault::unsupported(format!("extract of {item}"))),
    };
    if matches!(name, "to_string" | "jsonb_typeof") {
        return Err(Fault::unsupported(format!("the function {name}")));
    }
    let unexpected = "An unexpected error occurred while processing the request";
    let function = Function::named(name).ok_or_else(|| Fault::Broken(unexpected.to_owned()))?;
    let field = match arguments {
        [] if function == Function::Count => return Ok((function, Argument::None)),
        [Value::String(column)] => match (Field::extractable(entity, column), function) {
            (Err(_), Function::Count) => return Ok((function, Argument::Unknown)),
            (field, _) => field?,
        },
        _ => {
            return Err(Fault::Broken(format!(
                "ERROR: function {name} does not exist"
            )));
        }
    };
    check_type(entity, function, &field)?;
    Ok((function, Argument::Column(field)))
}

fn check_type(entity: Entity, function: Function, field: &Field) -> Result<(), Fault> {
    let name = function.name();
    match (function, field.column.kind) {
        (Function::Count, _)
        | (_, Kind::Number)
        | (Function::Min | Function::Max, Kind::Text | Kind::Timestamp) => Ok(()),
        (_, Kind::Json) if entity == Entity::Facts => Ok(()),
        (_, Kind::Json | Kind::Tree | Kind::Opaque | Kind::Tag | Kind::Document) => {
            Err(Fault::unsupported(format!("{name} of {}", field.text)))
        }
        (_, Kind::Text | Kind::Timestamp | Kind::Boolean) => Err(Fault::Broken(format!(
            "ERROR: function {name}({}) does not exist",
            field.text
        ))),
    }
}

fn group_fields(entity: Entity, items: &[Value]) -> Result<Vec<Field>, Fault> {
    if items.is_empty() {
        let text = "ERROR: syntax error at end of input";
        return Err(Fault::Broken(text.to_owned()));
    }
    let fields = items.iter().map(|item| match item {
        Value::String(text) => Field::extractable(entity, text),
        other => Err(Fault::unsupported(format!("group_by {other}"))),
    });
    fields.collect()
}

fn cell(field: &Field, record: &Value) -> Cell {
    let value = field.value(record).cloned().unwrap_or_default();
    match field.column.kind {
        Kind::Tree if field.path.is_empty() => Cell::Stored(value),
        Kind::Document => Cell::Stored(value),
        _ => Cell::Json(value),
    }
}

fn compute(function: Function, argument: &Argument, members: &[&Value]) -> Result<Cell, Fault> {
    let field = match argument {
        Argument::None => return Ok(Cell::Json(members.len().into())),
        Argument::Unknown => return Ok(Cell::Json(0.into())),
        Argument::Column(field) => field,
    };
    let values = members.iter().filter_map(|record| field.value(record));
    let values: Vec<_> = values.collect();
    if field.column.kind == Kind::Json
        && let Some(text) = values.iter().find(|value| !value.is_number())
    {
        return Err(Fault::Broken(format!(
            "ERROR: invalid input syntax for type numeric: {text}"
        )));
    }
    let extreme = |wanted: Ordering| {
        let pick = values.iter().copied().reduce(|best, value| {
            if compare::json(value, best) == wanted {
                value
            } else {
                best
            }
        });
        Cell::Json(pick.cloned().unwrap_or_default())
    };
    match function {
        Function::Count => Ok(Cell::Json(values.len().into())),
        Function::Min => Ok(extreme(Ordering::Less)),
        Function::Max => Ok(extreme(Ordering::Greater)),
        Function::Sum | Function::Avg if values.is_empty() => Ok(Cell::Json(Value::Null)),
        Function::Sum => Ok(Cell::Decimal(sum(&values)?)),
        Function::Avg => {
            let count = u32::try_from(values.len()).ok();
            let mean = count.and_then(|count| sum(&values).ok()?.mean(count));
            mean.map(Cell::Decimal).ok_or_else(too_large)
        }
    }
}

fn sum(values: &[&Value]) -> Result<Decimal, Fault> {
    let mut numbers = values.iter().map(|value| match value {
        Value::Number(number) => Decimal::from_json(number),
        _ => None,
    });
    let sum = numbers.try_fold(Decimal::ZERO, |sum, number| sum.plus(number?));
    sum.ok_or_else(too_large)
}

fn too_large() -> Fault {
    Fault::unsupported("numbers of more than 38 digits")
}
