//! What the sample answers to queries, as tables against hand-made expectations.
//!
//! A table is text: one case a line, its columns parted by ` | `, remarks behind `#`.

mod estate;
mod extracts;
mod filters;
mod refusals;

use estate::estate;
use pdbmux_samples::{Answer, Estate, Request, Timestamp};
use serde_json::Value;

/// The cases of a table.
fn lines<const COLUMNS: usize>(table: &str) -> impl Iterator<Item = [&str; COLUMNS]> {
    let cases = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    cases.map(|line| {
        let mut columns = line.splitn(COLUMNS, " |").map(str::trim);
        std::array::from_fn(|_| columns.next().unwrap_or("a column is missing"))
    })
}

/// Asks each query of a table `path | query | column | values` and compares that column.
fn check_columns(table: &str) {
    for [path, query, name, values] in lines(table) {
        assert_eq!(column(&ask(path, query), name), values, "{path} {query}");
    }
}

fn ask(path: &str, query: &str) -> Answer {
    get(&estate(), path, &[("query", query)])
}

/// `root` stands for the empty path below `/pdb/query/v4`.
fn get(estate: &Estate, path: &str, params: &[(&str, &str)]) -> Answer {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(params);
    let path = if path == "root" { "" } else { path };
    let request = Request {
        method: "GET",
        path: &format!("/pdb/query/v4{path}"),
        query: &query.finish(),
        ..Request::default()
    };
    estate.answer(&request, Timestamp::from_millis(0))
}

/// The values of one column, joined, or the text of the refusal.
fn column(answer: &Answer, name: &str) -> String {
    match serde_json::from_str(&answer.body) {
        Ok(Value::Array(rows)) => {
            let cells = rows.iter().map(|row| match &row[name] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            cells.collect::<Vec<_>>().join(" ")
        }
        _ => format!("{} {}", answer.status, answer.body),
    }
}
