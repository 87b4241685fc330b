//! What those who run pdbmux see: metrics, the ids of requests, and logs of them.

mod certificates;
mod ids;
mod logs;
mod origin;
#[cfg(feature = "otlp")]
mod otlp;
mod scrape;
mod site;

use std::collections::BTreeMap;

use crate::client::{Response, in_time};
use crate::harness::Pdbmux;

/// Series of one scrape.
#[derive(Debug)]
pub(crate) struct Scrape(Vec<Series>);

#[derive(Debug)]
struct Series {
    name: String,
    labels: BTreeMap<String, String>,
    /// Without its fraction.
    value: i64,
}

impl Scrape {
    pub(crate) async fn of(mux: &Pdbmux) -> Self {
        Self::read(get(mux, "/metrics").await.ok())
    }

    /// Scrapes until what is counted after the end of an answer is there.
    async fn until(mux: &Pdbmux, is_there: impl Fn(&Self) -> bool) -> Self {
        in_time(async {
            loop {
                let scrape = Self::of(mux).await;
                if is_there(&scrape) {
                    return scrape;
                }
            }
        })
        .await
    }

    fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.map(Series::read).collect())
    }

    /// The sum of the series of this name that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> i64 {
        let has = |series: &&Series| {
            let has = |(label, value): &(&str, &str)| {
                series.labels.get(*label).is_some_and(|it| it == value)
            };
            series.name == name && labels.iter().all(has)
        };
        self.0.iter().filter(has).map(|series| series.value).sum()
    }
}

impl Series {
    /// Of a line as `name{label="value"} 1`; no value in these tests has an escape.
    fn read(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels.strip_suffix('}').unwrap();
        let pairs = labels.split("\",").filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (label, value) = pair.split_once("=\"").unwrap();
            (label.to_owned(), value.trim_end_matches('"').to_owned())
        });
        Self {
            name: name.to_owned(),
            labels: pairs.collect(),
            value: value.split('.').next().unwrap().parse().unwrap(),
        }
    }
}

/// Asks the admin listener.
async fn get(mux: &Pdbmux, target: &str) -> Response {
    mux.connect_admin().await.get(target).await
}

/// A GET with these header lines.
fn request(target: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("GET {target} HTTP/1.1\r\nHost: pdbmux\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head + "\r\n"
}
