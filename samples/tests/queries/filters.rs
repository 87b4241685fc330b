//! Which records a query keeps.

use super::check_columns;

#[test]
fn filters_on_nodes_keep_what_puppetdb_keeps() {
    check_columns(NODES);
}

#[test]
fn inactive_nodes_show_only_where_and_when_puppetdb_shows_them() {
    check_columns(STATES);
}

#[test]
fn fact_values_compare_as_json() {
    check_columns(FACTS);
}

#[test]
fn path_segments_narrow_to_exact_texts() {
    check_columns(PATHS);
}

#[test]
fn dotted_paths_lead_into_inventory() {
    check_columns(INVENTORY);
}

#[test]
fn reports_events_and_resources_have_fields_of_their_own() {
    check_columns(OWN_FIELDS);
}

const NODES: &str = r#"
/nodes | null | certname | a b d
/nodes | ["=","certname","a"] | certname | a
/nodes | ["=","certname","A"] | certname |
/nodes | ["~","certname","^[ab]$"] | certname | a b
/nodes | [">","report_timestamp","2026-11-13T00:00:30Z"] | certname | a
/nodes | [">=","report_timestamp","2026-11-13T00:00:30Z"] | certname | a d
/nodes | ["<","report_timestamp","2026-11-13 00:01:00"] | certname | d
/nodes | ["<=","report_timestamp",1794528030000] | certname | d
/nodes | ["=","report_timestamp","2026-11-13T00:01:00.014Z"] | certname | a
/nodes | ["null?","report_timestamp",true] | certname | b
/nodes | ["null?","report_timestamp",false] | certname | a d
/nodes | ["=","report_timestamp",null] | certname | b
/nodes | ["=","latest_report_noop",true] | certname | d
# The flag of b is unknown, and so is its negation.
/nodes | ["not",["=","latest_report_noop",true]] | certname | a
/nodes | ["not",["or",["=","latest_report_noop",true],["=","certname","x"]]] | certname | a
/nodes | ["not",["and",["=","latest_report_noop",true],["=","certname","b"]]] | certname | a d
/nodes | ["and",["=","certname","a"],["=","certname","b"]] | certname |
/nodes | ["or",["=","certname","a"],["=","latest_report_noop",true]] | certname | a d
/nodes | ["in","certname",["array",["a","c","x"]]] | certname | a
/nodes | ["not",["in","certname",["array",["a"]]]] | certname | b d
/nodes | ["in","certname",["extract","certname",["select_facts",["=","value","FreeBSD"]]]] | certname | d
/nodes | ["in","certname",["from","facts",["extract",["certname"],["=","name","virtual"]]]] | certname | a
/nodes | ["in",["certname","latest_report_hash"],["from","reports",["extract",["certname","hash"],["=","status","changed"]]]] | certname | a d
# A set that holds NULL makes every other membership unknown.
/nodes | ["in","latest_report_hash",["from","nodes",["extract","latest_report_hash",["~","certname","[a-d]"]]]] | certname | a d
/nodes | ["not",["in","latest_report_hash",["from","nodes",["extract","latest_report_hash",["=","certname","b"]]]]] | certname |
/nodes | ["=",["fact","kernel"],"Linux"] | certname | a b
/nodes | [">",["fact","uptime"],5] | certname | a
/nodes | ["~",["fact","kernel"],"BSD$"] | certname | d
"#;

const STATES: &str = r#"
/nodes | ["=",["node","active"],true] | certname | a b d
/nodes | ["=",["node","active"],"false"] | certname | a b d
/nodes | ["=",["node","active"],false] | certname | c
/nodes | ["=","node_state","Inactive"] | certname | c
/nodes | ["=","node_state","any"] | certname | a b c d
/nodes | ["and",["=","node_state","any"],["null?","deactivated",false]] | certname | c
/facts/kernel | null | certname | a b d
/facts/kernel | ["=","node_state","inactive"] | certname | c
/nodes/c/facts | null | certname |
/reports | null | certname | a a d c
/events | ["=","status","skipped"] | certname | c
root | ["from","reports"] | certname | a a d
root | ["from","nodes",["=","node_state","any"]] | certname | a b c d
"#;

const FACTS: &str = r#"
/facts | ["=","value","Linux"] | name | kernel kernel
/facts | ["=","value",10] | name | uptime
/facts | ["=","value",10.0] | name | uptime
/facts | ["=","value","10"] | name |
/facts | ["=","value",true] | name | virtual
/facts | ["=","value",{"a":2,"bb":1}] | name | os
/facts | ["null?","value",true] | name | note
# A regular expression sees the text of a number, and never the JSON null.
/facts | ["~","value","^1|^2"] | name | uptime uptime
/facts | ["and",["=","name","uptime"],[">","value",2.5]] | name | uptime
/facts | ["and",["=","name","uptime"],[">=","value",2.5]] | name | uptime uptime
# Booleans and objects stand behind all numbers in the order of jsonb.
/facts | [">","value",99] | name | virtual os
/facts | ["in","value",["array",["FreeBSD",true]]] | name | virtual kernel
"#;

const PATHS: &str = "
/facts/kernel/Linux | null | certname | a b
/facts/uptime/10 | null | certname |
/facts/nope | null | certname |
/nodes/a/facts/kernel | null | certname | a
/facts/kernel/Free%42SD | null | certname | d
";

const INVENTORY: &str = r#"
/inventory | ["=","facts.os.family","Debian"] | certname | a
/inventory | ["not",["=","facts.os.family","Debian"]] | certname | b d
/inventory | ["~","facts.os.family","^R"] | certname | b
/inventory | [">","facts.os.major",11] | certname | a
# true and 5 are more than 4, but no text is.
/inventory | [">","facts.up",4] | certname | a d
/inventory | ["not",[">","facts.nope",4]] | certname | a b d
/inventory | ["null?","facts.os.major",true] | certname | b d
/inventory | ["=","facts.\"a.b\"","x"] | certname | a
/inventory | ["=","trusted.certname","d"] | certname | d
/inventory | ["in","facts.os.family",["array",["Debian","RedHat"]]] | certname | a b
"#;

const OWN_FIELDS: &str = r#"
/reports | ["=","latest_report?",true] | hash | h2 h3 h4
/reports | ["=","latest_report?",false] | hash | h1
/reports | ["=","type","any"] | hash | h1 h2 h3 h4 h5
/reports | ["=","type","plan"] | hash | h5
/reports | [">","report_format",12] | hash |
/reports | ["=","report_format",12] | hash | h1 h2 h3 h4
/events | ["=","latest_report?",true] | status | success success noop skipped
/resources | ["=","tag","WEB"] | title | /x
/resources | ["=","parameters.mode","0644"] | title | /x
/resources | ["=","exported",false] | title | /y
/resources/File/%2Fx | null | certname | a
/resources/file | null | certname |
"#;
