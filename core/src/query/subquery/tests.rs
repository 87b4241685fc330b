use super::super::Query;
use super::*;

/// Entity, whether it is cut, and how it is linked: `outer=inner` if so for certnames.
fn described(subquery: &Subquery<'_>) -> String {
    let says = |holds: bool, word| if holds { word } else { "" };
    let link = if subquery.is_implied() {
        " implied"
    } else {
        says(subquery.joins("certname", "certname"), " by certname")
    };
    let inner: Vec<_> = subquery.inner().iter().map(described).collect();
    let inner = if inner.is_empty() {
        String::new()
    } else {
        format!(" ({})", inner.join(", "))
    };
    format!(
        "{}{link}{}{}{inner}",
        subquery.entity,
        says(subquery.is_cut, " cut"),
        says(subquery.demands("latest_report?"), " latest"),
    )
}

#[test]
fn subqueries_are_found_in_every_form() {
    for (text, expected) in [
        (r#"["=","certname","a"]"#, &[][..]),
        (r#"["in","certname",["array",["a"]]]"#, &[]),
        (r#"["extract",["certname"],["group_by","certname"]]"#, &[]),
        (
            r#"["in","certname",["extract","certname",["select_facts",["=","name","a"]]]]"#,
            &["facts by certname"],
        ),
        (
            r#"["in",["certname","name"],["extract",["certname","name"],["select_fact_contents"]]]"#,
            &["fact_contents by certname"],
        ),
        (
            r#"["in",["certname","name"],["extract",["certname"],["select_facts"]]]"#,
            &["facts"],
        ),
        (
            r#"["in","name",["extract","certname",["select_facts",["limit",1]]]]"#,
            &["facts cut"],
        ),
        (
            r#"["in","certname",["from","nodes",["extract",["certname"],["=","a",1]],["order_by",["certname"]],["offset",1]]]"#,
            &["nodes by certname cut"],
        ),
        (
            r#"["in","certname",["from","nodes",["extract",["certname"]],["order_by",["certname"]]]]"#,
            &["nodes by certname"],
        ),
        (
            r#"["and",["subquery","reports",["and",["=","latest_report?",true],["=","status","x"]]],["not",["or",["subquery","nodes"]]]]"#,
            &["reports implied latest", "nodes implied"],
        ),
        (
            r#"["subquery","reports",["or",["=","latest_report?",true],["=","latest_report?",false]]]"#,
            &["reports implied"],
        ),
        (
            r#"["extract",["certname"],["=",["fact","os"],"x"],["group_by","certname"]]"#,
            &["facts implied"],
        ),
        (
            r#"["in",["fact","os"],["array",["x"]]]"#,
            &["facts implied"],
        ),
        (
            r#"["subquery","nodes",["in","name",["extract","name",["select_facts",["limit",1]]]]]"#,
            &["nodes implied (facts cut)"],
        ),
        (r#"["in","certname",["from","nodes"]]"#, &[""]),
        (
            r#"["in","certname",["extract","certname",["nodes"]]]"#,
            &[""],
        ),
    ] {
        let Query::Ast(ast) = Query::read(Some(text)).unwrap() else {
            panic!("{text}");
        };
        let found: Vec<_> = ast.subqueries().iter().map(described).collect();
        assert_eq!(found, expected, "{text}");
    }
}

fn ast(text: &str) -> Ast {
    match Query::read(Some(text)).unwrap() {
        Query::Ast(ast) => ast,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_subquery_becomes_a_question_of_its_own() {
    let named = |name: &str, value| (name.to_owned(), value);
    for (text, columns, query, paging) in [
        (
            r#"["in","certname",["extract","name",["select_facts"]]]"#,
            Some(vec![("certname", "name")]),
            None,
            vec![],
        ),
        (
            r#"["in",["a","b"],["from","facts",["extract",["c","d"], ["=", "x", 1.0]],["limit",3],["order_by",["c"]]]]"#,
            Some(vec![("a", "c"), ("b", "d")]),
            Some(r#"["=", "x", 1.0]"#),
            vec![
                ("limit", "3"),
                ("order_by", r#"[{"field":"c","order":"asc"}]"#),
            ],
        ),
        (
            r#"["subquery","facts",["=","name","x"]]"#,
            None,
            Some(r#"["=","name","x"]"#),
            vec![],
        ),
        (
            r#"[">=",["fact","up\"time"], 5.0]"#,
            Some(vec![("certname", "certname")]),
            Some(r#"["and",["=","name","up\"time"],[">=","value",5.0]]"#),
            vec![],
        ),
        (
            r#"["in",["fact","os"],["array",["a"]]]"#,
            Some(vec![("certname", "certname")]),
            Some(r#"["and",["=","name","os"],["in","value",["array",["a"]]]]"#),
            vec![],
        ),
    ] {
        let apart = ast(text).subqueries()[0].apart().unwrap();
        let columns = columns.map(|columns| {
            let pairs = columns.into_iter();
            pairs
                .map(|(o, i)| named(o, i.to_owned()))
                .collect::<Vec<_>>()
        });
        assert_eq!(apart.columns, columns, "{text}");
        assert_eq!(apart.from.entity, "facts", "{text}");
        assert_eq!(apart.from.query.as_deref(), query, "{text}");
        let said: Vec<_> = apart.from.paging.iter().map(|(n, v)| (*n, &**v)).collect();
        assert_eq!(said, paging, "{text}");
    }
}

#[test]
fn what_a_backend_would_refuse_is_no_question() {
    for text in [
        r#"["in","a",["from","facts"]]"#,
        r#"["in","a",["from","facts",["extract",[["function","count"]]]]]"#,
        r#"["in","a",["from","inventory",["extract","facts.os"]]]"#,
        r#"["in","facts.os",["from","nodes",["extract","certname"]]]"#,
        r#"["in",["a","b"],["from","facts",["extract",["c"]]]]"#,
        r#"["in",[],["from","facts",["extract",[]]]]"#,
        r#"["in","a",["from","facts",["extract","c",["=","x",1],["group_by","c"]]]]"#,
        r#"["in","a",["from","facts",["extract","c"],["limit","x"]]]"#,
        r#"["in","a",["extract","c",["select_facts",["=","x",1],["limit",1]]]]"#,
        r#"["in","a",["extract","c",["select_facts",["limit",1]]]]"#,
        r#"["subquery","facts"]"#,
        r#"["in",["fact","os"],["from","facts",["extract","value"]]]"#,
    ] {
        for subquery in ast(text).subqueries() {
            assert_eq!(subquery.apart(), None, "{text}");
        }
    }
}

#[test]
fn clauses_are_replaced_wherever_they_stand() {
    let instead = |clause: &str, sign: Sign| {
        let is_it = clause.contains("\"here\"") && !clause.contains("\"around\"");
        is_it.then(|| format!("{sign:?}"))
    };
    let here = r#"["subquery","facts",["=","name","here"]]"#;
    let other = r#"["in","a",["from","b",["extract","c"]]]"#;
    for (text, expected) in [
        (here.to_owned(), "Affirmed".to_owned()),
        (format!(" {here} "), "Affirmed".to_owned()),
        (other.to_owned(), other.to_owned()),
        (
            format!(r#"["and",["not", {here}],["not",["or",["not",{here}],{other}]],{here}]"#),
            format!(r#"["and",["not", Denied],["not",["or",["not",Affirmed],{other}]],Affirmed]"#),
        ),
        (
            format!(r#"["extract",["x"],["not",{here}],["group_by","x"]]"#),
            r#"["extract",["x"],["not",Denied],["group_by","x"]]"#.to_owned(),
        ),
        // Inside a subquery that is left, only its own conditions count.
        (
            format!(r#"["not",["subquery","around",["and",{here},["=","a",1]]]]"#),
            r#"["not",["subquery","around",["and",Affirmed,["=","a",1]]]]"#.to_owned(),
        ),
        (
            r#"["in",["fact","here"],["array",["x"]]]"#.to_owned(),
            "Affirmed".to_owned(),
        ),
    ] {
        assert_eq!(ast(&text).with_clauses(&instead), expected, "{text}");
    }
}

#[test]
fn t42_a_state_that_was_asked_for_in_a_subquery_still_matters() {
    let query = |text: &str| Query::read(Some(text)).unwrap();
    let stated = r#"["subquery","nodes",["=","node_state","inactive"]]"#;
    let instead = |clause: &str, _: Sign| (clause == stated).then(|| r#"["=","a",1]"#.to_owned());
    for (text, expected) in [
        (
            stated.to_owned(),
            r#"["and",["=","node_state","any"],["=","a",1]]"#,
        ),
        (
            format!(r#"["and",{stated},["=",["node","active"],true]]"#),
            r#"["and",["=","a",1],["=",["node","active"],true]]"#,
        ),
    ] {
        let changed = query(&text).with_clauses(&instead).unwrap();
        assert_eq!(changed.text(), Some(expected));
    }
}
