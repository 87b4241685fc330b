//! What becomes of columns that would go by one name.

use super::function::Function;
use crate::query::{Column, Extract};

/// Why an `extract` cannot be combined. Found before any backend is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldRefusal {
    /// R134: no rule says what this function's values of several backends make together.
    #[error(
        "the function {0} cannot be combined across backends; \
         count, sum, avg, min, max, to_string and jsonb_typeof can"
    )]
    UnknownFunction(String),
    /// R131: both columns of the answer would go by one name.
    #[error("the function {0} is projected twice, so two columns would be named {0}")]
    RepeatedFunction(String),
    /// R132: as before, one of them a plain column.
    #[error(
        "the column {0} has the name of a projected function, so two columns would be named {0}"
    )]
    NamedLikeFunction(String),
    /// R125: the average is made from these two columns.
    #[error("avg is computed from sum and count, so {0} cannot be projected beside it")]
    BesideAverage(String),
    /// The average needs a count of its own column, but these rows have room for one count.
    #[error(
        "the average of {0} is computed from its sum and its count, and rows of this entity \
         hold no other count beside it"
    )]
    SecondCount(String),
}

/// What becomes of a name that several columns of an answer would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// It is refused (R125, R131, R132).
    Refused,
    /// The nth such column is `<name>_n`, as PuppetDB names it.
    Named,
    /// The same, but PuppetDB fails on it (500): its schema of these rows knows no such column. So
    /// none must be asked for unless the client does.
    Failing,
}

/// The functions that `extract` projects, once nothing speaks against them.
pub(super) fn functions(extract: &Extract, repeats: Repeats) -> Result<Vec<Function>, FoldRefusal> {
    let mut functions = Vec::new();
    for column in &extract.columns {
        if let Column::Function { name, .. } = column {
            let function = Function::named(name);
            functions.push(function.ok_or_else(|| FoldRefusal::UnknownFunction(name.clone()))?);
        }
    }
    match repeats {
        Repeats::Refused => refuse_repeats(extract, &functions)?,
        Repeats::Failing => refuse_second_count(extract)?,
        Repeats::Named => {}
    }
    Ok(functions)
}

fn refuse_repeats(extract: &Extract, functions: &[Function]) -> Result<(), FoldRefusal> {
    for (at, function) in functions.iter().enumerate() {
        if functions[..at].contains(function) {
            return Err(FoldRefusal::RepeatedFunction(function.name().to_owned()));
        }
    }
    for column in &extract.columns {
        if let Column::Plain(name) = column
            && Function::named(name).is_some_and(|named| functions.contains(&named))
        {
            return Err(FoldRefusal::NamedLikeFunction(name.clone()));
        }
    }
    if functions.contains(&Function::Avg) {
        for column in &extract.columns {
            let (Column::Plain(name) | Column::Function { name, .. }) = column;
            if let Some(Function::Sum | Function::Count) = Function::named(name) {
                return Err(FoldRefusal::BesideAverage(name.clone()));
            }
        }
    }
    Ok(())
}

/// Finds an average that needs a count beside the only one that there can be. Where the client
/// repeats a function itself, the backends have their say.
fn refuse_second_count(extract: &Extract) -> Result<(), FoldRefusal> {
    let of = |function| {
        let columns = extract.columns.iter();
        columns.filter(move |column| Function::of(column) == Some(function))
    };
    let mut averages = of(Function::Avg);
    let (Some(Column::Function { args, .. }), None) = (averages.next(), averages.next()) else {
        return Ok(());
    };
    let needed = count(extract, args, Repeats::Failing);
    let mut counts = of(Function::Count).peekable();
    if counts.peek().is_some() && counts.all(|column| *column != needed) {
        return Err(FoldRefusal::SecondCount(args.join(" ")));
    }
    Ok(())
}

/// The count that makes an average of a sum of the column `args`: of the *same* column, since on
/// facts a count of rows may count others than the sum adds (R119, trap T36).
pub(super) fn count(extract: &Extract, args: &[String], repeats: Repeats) -> Column {
    let own = Function::Count.column(args);
    if repeats != Repeats::Failing || args != ["value"] || extract.columns.contains(&own) {
        return own;
    }
    // Of fact contents only numbers are looked at where they are added up, so that every count of
    // a column that is never null counts the same (section 8 of the wire notes).
    let everywhere = [None, Some("certname"), Some("name"), Some("path")];
    let mut counts = extract.columns.iter().filter(|column| match column {
        Column::Function { name, args } => {
            name == Function::Count.name()
                && args.len() < 2
                && everywhere.contains(&args.first().map(String::as_str))
        }
        Column::Plain(_) => false,
    });
    counts.next().cloned().unwrap_or(own)
}
