//! docs/requirements.md: which tests hold which requirement.
//!
//! What is asked is written there by hand; the tests are found by the numbers that they carry: in
//! their names (`r043_...`, `r189_to_r194_...`) or in comments in them (`R043`). The command that
//! writes them is `UPDATE_DOCS=1 cargo test`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The last requirement; the first is 1.
const LAST: u16 = 309;

/// Where tests are.
const FOLDERS: [&str; 9] = [
    ".ci",
    "core",
    "e2e",
    "fuzz",
    "model",
    "packaging",
    "samples",
    "src",
    "tests",
];

/// The lines that begin with this are the table's rows.
const ROW: &str = "| R";

#[test]
fn the_table_of_requirements_names_their_tests_and_none_is_missing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("docs/requirements.md");
    let held = tests(root);
    let text = fs::read_to_string(&file).unwrap();
    let mut expected = String::new();
    let mut numbers = Vec::new();
    for line in text.lines() {
        let Some(row) = line.strip_prefix(ROW) else {
            writeln!(expected, "{line}").unwrap();
            continue;
        };
        let mut cells = row.split(" | ");
        let number: u16 = cells.next().unwrap().parse().unwrap();
        let asked = cells.next().unwrap();
        let by = held.get(&number).into_iter().flatten();
        let by: Vec<_> = by.map(|test| format!("`{test}`")).collect();
        writeln!(
            expected,
            "{ROW}{number:03} | {asked} | {} |",
            by.join("<br>")
        )
        .unwrap();
        numbers.push(number);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &expected).unwrap();
    } else {
        assert!(
            expected == text,
            "docs/requirements.md is out of date: run with UPDATE_DOCS=1"
        );
    }
    assert_eq!(numbers, (1..=LAST).collect::<Vec<_>>(), "rows");
    let without = numbers.iter().filter(|number| !held.contains_key(number));
    let without: Vec<_> = without.collect();
    assert!(without.is_empty(), "without a test: {without:?}");
    let unknown: Vec<_> = held
        .keys()
        .filter(|number| !(1..=LAST).contains(*number))
        .collect();
    assert!(unknown.is_empty(), "tests name {unknown:?}: {held:?}");
}

/// The tests of each requirement, as `file::function`, or `file` for scripts.
fn tests(root: &Path) -> BTreeMap<u16, BTreeSet<String>> {
    let mut held: BTreeMap<u16, BTreeSet<String>> = BTreeMap::new();
    let mut folders: Vec<_> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            if path.is_dir() && name != "target" && name != "corpus" {
                folders.push(path);
            } else if let Some(read) = reader(&path)
                && !path.ends_with(file!())
            {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(root).unwrap().to_str().unwrap();
                for (number, test) in read(path, &text) {
                    held.entry(number).or_default().insert(test);
                }
            }
        }
    }
    held
}

type Found = Vec<(u16, String)>;

fn reader(path: &PathBuf) -> Option<fn(&str, &str) -> Found> {
    let is_script = || fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!"));
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => Some(of_rust),
        Some("sh") => Some(of_script),
        None if path.is_file() && is_script() => Some(of_script),
        _ => None,
    }
}

fn of_script(path: &str, text: &str) -> Found {
    let comments = text.lines().filter_map(|line| line.split_once('#'));
    let numbers = comments.flat_map(|(_, comment)| numbers(comment, 'R'));
    numbers.map(|number| (number, path.to_owned())).collect()
}

/// A function is a test if its name begins with a number or an attribute says so; the comments of
/// helpers count too where a whole file is tests.
fn of_rust(path: &str, text: &str) -> Found {
    let all_tests = path
        .split('/')
        .any(|folder| folder == "tests" || folder == "model");
    let mut found = Vec::new();
    let mut is_marked = false;
    let mut documented = Vec::new();
    let mut inside = None;
    for line in text.lines() {
        let code = line.trim_start();
        if let Some(document) = code.strip_prefix("///") {
            documented.extend(numbers(document, 'R'));
            continue;
        }
        if code.starts_with("#[test]") || code.starts_with("#[tokio::test") {
            is_marked = true;
        } else if let Some(name) = function(code) {
            let of_name = numbers(name, 'r');
            let counts = !of_name.is_empty() || is_marked || all_tests;
            inside = counts.then(|| format!("{path}::{name}"));
            is_marked = false;
            let of_name = of_name.into_iter().chain(documented.drain(..));
            found.extend(of_name.filter_map(|number| Some((number, inside.clone()?))));
        } else if !code.starts_with("#[") {
            documented.clear();
        }
        if let (Some(test), Some((_, comment))) = (&inside, code.split_once("// ")) {
            let of_comment = numbers(comment, 'R');
            found.extend(of_comment.into_iter().map(|number| (number, test.clone())));
        }
    }
    found
}

/// The name of the function that begins on this line.
fn function(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("fn ")?;
    let is_declaration = before
        .split_whitespace()
        .all(|word| ["pub", "async", "const"].contains(&word) || word.starts_with("pub("));
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_declaration && end > 0).then(|| &after[..end])
}

/// The numbers behind `mark` in a text, three digits each, and those between two that `to` or a
/// hyphen stands between.
fn numbers(text: &str, mark: char) -> Vec<u16> {
    let mut found = Vec::new();
    let mut is_range = false;
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
        let mut parts = word.split('-').peekable();
        while let Some(part) = parts.next() {
            let digits = part.strip_prefix(mark).filter(|digits| digits.len() == 3);
            if let Some(number) = digits.and_then(|digits| digits.parse::<u16>().ok()) {
                let from = match found.last() {
                    Some(last) if is_range => last + 1,
                    _ => number,
                };
                found.extend(from..=number);
                is_range = parts.peek().is_some();
            } else {
                is_range = part == "to";
            }
        }
    }
    found
}

#[test]
fn numbers_are_found_alone_in_rows_and_in_ranges() {
    for (text, expected) in [
        ("r043_an_owner", &[43][..]),
        ("r135_r137_rows", &[135, 137]),
        ("r189_to_r194_healthz", &[189, 190, 191, 192, 193, 194]),
        ("r016_r299_to_r301_nodes", &[16, 299, 300, 301]),
        ("r1_r12345_report_r12", &[]),
    ] {
        assert_eq!(numbers(text, 'r'), expected, "{text}");
    }
    for (text, expected) in [
        ("(R149, R307): counted", &[149, 307][..]),
        ("holds R202-R204.", &[202, 203, 204]),
        ("R007 to R009", &[7, 8, 9]),
        ("T12 and ruling 14", &[]),
    ] {
        assert_eq!(numbers(text, 'R'), expected, "{text}");
    }
}

#[test]
fn tests_are_told_from_other_functions() {
    let text = "
        /// R001: not in a test.
        fn helper() {} // R002
        #[test]
        fn a_test() {
            // R003: here
            let s = \"R004\";
        }
        fn r005_by_name(world: &World) {}
    ";
    let held = |path| -> Vec<_> { of_rust(path, text).into_iter().map(|(n, _)| n).collect() };
    assert_eq!(held("src/x.rs"), [3, 5]);
    assert_eq!(of_script("x.sh", "#!/bin/sh\n# R001\necho R002\n")[0].0, 1);
}
