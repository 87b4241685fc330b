//! What is not answered with rows, and single records.

use super::{ask, estate, get, lines};

#[test]
fn mistakes_get_the_status_of_puppetdb() {
    for [path, query, status, part] in lines(MISTAKES) {
        let answer = ask(path, query);
        let told = (answer.status.to_string(), answer.content_type);
        let text = Some("text/plain;charset=utf-8");
        assert_eq!(told, (status.to_owned(), text), "{path} {query}");
        assert!(answer.body.contains(part), "{query}: {}", answer.body);
    }
}

const MISTAKES: &str = r#"
/nodes | [] | 400 | [] is not well-formed: queries must contain at least one operator
/nodes | {} | 500 | Output of convert-query-params does not match schema
/nodes | ["=","nope",1] | 400 | 'nope' is not a queryable object for nodes. Known queryable objects are 'cached_catalog_status', 
/nodes | ["extract",["nope"]] | 400 | Can't extract unknown 'nodes' field 'nope'. Acceptable fields are 
/nodes | ["extract",["function","count"]] | 400 | Can't extract unknown 'nodes' field
/nodes | ["extract","certname",[]] | 400 | not well-formed
/nodes | ["extract","certname",["limit",1]] | 400 | Unrecognized AST clause
/nodes | ["and"] | 400 | requires at least one term
/nodes | ["not",["=","certname","a"],["=","certname","b"]] | 400 | takes exactly one argument
/nodes | ["AND",["=","certname","a"]] | 400 | AST validation failed
/nodes | ["or",["extract","certname"]] | 400 | Unrecognized AST clause
/nodes | ["from","nodes"] | 400 | Unrecognized AST clause
/nodes | [">","certname","a"] | 400 | Query operators >,>=,<,<= are not allowed on field certname
/nodes | ["=","certname",1] | 500 | ERROR: operator does not exist
/nodes | ["=","report_timestamp","soon"] | 400 | not a valid timestamp
/nodes | ["~","certname","("] | 400 | ERROR: invalid regular expression: 
/nodes | ["extract",[["function","COUNT"]]] | 500 | An unexpected error occurred
/nodes | ["extract",[["function","sum","certname"]]] | 500 | ERROR: function sum
/nodes | ["extract",[["function","max","latest_report_noop"]]] | 500 | ERROR: function max
/nodes | ["extract",["certname",["function","count"]]] | 500 | must appear in the GROUP BY clause
/nodes | ["extract",["certname"],["group_by"]] | 500 | ERROR: syntax error
/nodes | ["in",["certname","deactivated"],["array",[["a","b"]]]] | 500 | single field
/reports | ["=","report_format","12"] | 400 | incompatible with the numeric field
/facts | ["extract",[["function","count","value"]]] | 500 | invalid input syntax for type numeric
/environments | ["=",["node","active"],true] | 400 | does not evaluate
root | ["=","certname","a"] | 400 | This query must be of the form ["from", <entity>, (<optional-query>)].
root | ["from","nosuch"] | 400 | Invalid entity 'nosuch' in query
root | ["from","fact_names"] | 500 | does not exist
# What a real PuppetDB could answer is refused as well, never guessed.
/nodes | ["subquery","facts",["=","name","os"]] | 400 | does not evaluate
/nodes | ["extract",[["function","to_string","report_timestamp","DAY"]]] | 400 | does not evaluate
/inventory | ["=","facts.os",{"family":"Debian"}] | 400 | does not evaluate
/inventory | ["=","facts.a[0]",1] | 400 | does not evaluate
/events | ["=","new_value","x"] | 400 | does not evaluate
/nodes | ["in","certname",["from","facts",["extract","certname"],["limit",1]]] | 400 | does not evaluate
/edges | null | 400 | does not evaluate /pdb/query/v4/edges
"#;

#[test]
fn single_records_are_found_whatever_their_state_and_written_pretty() {
    let answer = get(&estate(), "/environments/production", &[]);
    assert_eq!(answer.body, "{\n  \"name\" : \"production\"\n}");
    // A query is read, but has no effect here.
    let answer = get(
        &estate(),
        "/nodes/c",
        &[("query", r#"["=","certname","a"]"#)],
    );
    assert!(
        answer.body.contains("\"certname\" : \"c\""),
        "{}",
        answer.body
    );
    let answer = get(&estate(), "/reports/h1/logs", &[]);
    assert_eq!(answer.body, r#"[{"level": "notice"}]"#);
}

#[test]
fn what_is_missing_is_named_in_json() {
    for [path, what] in lines(MISSING) {
        let answer = get(&estate(), path, &[]);
        let body = format!("{{\n  \"error\" : \"No information is known about {what}\"\n}}");
        assert_eq!((answer.status, answer.body), (404, body));
        assert_eq!(answer.content_type, Some("application/json;charset=utf-8"));
    }
}

const MISSING: &str = "
/nodes/x | node x
/nodes/x/facts | node x
/factsets/x | factset x
/catalogs/x/resources | catalog x
/environments/x | environment x
/reports/x/metrics | report x
";
