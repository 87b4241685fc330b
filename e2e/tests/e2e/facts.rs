//! `/facts`, its named forms, the fact that names the backend, and `/fact-names`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use pdbmux_e2e::daemon::Daemon;
use pdbmux_e2e::estate::{IMPOSTOR, Side, Strategy};
use pdbmux_e2e::http::Answer;
use pdbmux_e2e::records::Record;
use serde_json::Value;

use crate::world::{SOURCE, World, bytes_by_certname, same, sorted};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r041_r042_r043_r049_all_facts_of_a_node_are_its_owners,
    r045_r048_static_owner_is_the_first_that_has_the_node,
    r010_numbers_beyond_64_bits_keep_their_digits,
    r047_a_fact_that_only_a_loser_has_is_still_served,
    r053_r055_a_named_fact_comes_from_the_owner_alone,
    r056_encoded_segments_reach_the_backends,
    r057_r058_r061_r062_the_source_fact_can_be_asked_for,
    r059_a_query_narrows_the_source_fact,
    r071_r072_namesakes_pass_where_pdbmux_does_not_use_the_name,
    r077_r080_r085_some_queries_get_no_source_fact,
    r086_r087_r091_fact_names_are_the_union,
    r220_r221_cached_paths_say_so,
];

fn r041_r042_r043_r049_all_facts_of_a_node_are_its_owners(world: &World) -> Result<()> {
    same_facts(world, &world.pdbmux, Strategy::Freshness, Some(SOURCE))
}

fn r045_r048_static_owner_is_the_first_that_has_the_node(world: &World) -> Result<()> {
    let fixed = world.pdbmux_with(&[("PDBMUX_MERGE", "static")])?;
    same_facts(world, &fixed, Strategy::Static, Some(SOURCE))
}

fn r010_numbers_beyond_64_bits_keep_their_digits(world: &World) -> Result<()> {
    for (name, number) in [
        ("huge_integer", "18446744073709551617"),
        ("big_integer", "9007199254740993"),
    ] {
        let answer = world.query(
            &format!("facts/{name}"),
            &[("query", r#"["=","certname","web1.example.com"]"#)],
        )?;
        ensure!(answer.body.contains(number), "{}", answer.body);
    }
    Ok(())
}

fn r047_a_fact_that_only_a_loser_has_is_still_served(world: &World) -> Result<()> {
    for (side, name) in [(Side::A, "only_in_a"), (Side::B, "only_in_b")] {
        let path = format!("facts/{name}");
        same(
            name,
            &sorted(&world.query(&path, &[])?.records()?),
            &sorted(&world.backend(side).query(&path, &[])?.records()?),
        )?;
    }
    Ok(())
}

fn r053_r055_a_named_fact_comes_from_the_owner_alone(world: &World) -> Result<()> {
    for path in [
        "facts/site",
        "facts/uptime_seconds",
        "facts/nothing",
        "facts/kernel/Linux",
    ] {
        same_named(world, path)?;
    }
    // The stale copies match this value: where the owner has no such record, they speak (R047).
    same(
        "facts/site/a",
        &sorted(&world.query("facts/site/a", &[])?.records()?),
        &sorted(
            &world
                .backend(Side::A)
                .query("facts/site/a", &[])?
                .records()?,
        ),
    )?;
    ensure!(
        world.query("facts/site/nosuch", &[])?.body == "[]",
        "a value nobody has"
    );
    ensure!(
        world.query("facts/nosuch", &[])?.body == "[]",
        "a name nobody has"
    );
    Ok(())
}

fn r056_encoded_segments_reach_the_backends(world: &World) -> Result<()> {
    for path in [
        "facts/mount%2Fdata",
        "facts/mount%2Fdata/%2Fsrv%2Fdata",
        "facts/%6Bernel/Linux",
    ] {
        same_named(world, path)?;
    }
    Ok(())
}

fn r057_r058_r061_r062_the_source_fact_can_be_asked_for(world: &World) -> Result<()> {
    let all = world.query("facts", &[])?;
    let mut wanted = Vec::new();
    for record in all.records()? {
        if record.field("name")? == SOURCE {
            wanted.push(record);
        }
    }
    same(
        "the source fact",
        &sorted(&world.query("facts/pdbmux_source", &[])?.records()?),
        &sorted(&wanted),
    )?;
    for side in [Side::A, Side::B] {
        let name = world.name(side);
        let of_backend: Vec<_> = wanted
            .iter()
            .copied()
            .filter(|record| record.field("value").is_ok_and(|value| value == name))
            .collect();
        let got = world.query(&format!("facts/pdbmux_source/{name}"), &[])?;
        same(name, &sorted(&got.records()?), &sorted(&of_backend))?;
        ensure!(!of_backend.is_empty(), "no node is owned by {name}");
    }
    let nosuch = world.query("facts/pdbmux_source/nosuch", &[])?;
    ensure!(nosuch.body == "[]", "{}", nosuch.body);
    Ok(())
}

fn r059_a_query_narrows_the_source_fact(world: &World) -> Result<()> {
    let answer = world.query(
        "facts/pdbmux_source",
        &[("query", r#"["~","certname","^(edge|tie)1"]"#)],
    )?;
    let mut pairs = Vec::new();
    for record in answer.records()? {
        pairs.push((record.certname()?, record.text("value")?));
    }
    pairs.sort();
    let wanted = [
        ("edge1.example.com", Side::B),
        ("tie1.example.com", Side::A),
    ]
    .map(|(certname, side)| (certname.to_owned(), world.name(side).to_owned()));
    same("edge1 and tie1", &pairs, &wanted)
}

fn r071_r072_namesakes_pass_where_pdbmux_does_not_use_the_name(world: &World) -> Result<()> {
    let plain = world.pdbmux_with(&[("PDBMUX_SOURCE_FACT_ENABLED", "false")])?;
    same_facts(world, &plain, Strategy::Freshness, None)?;
    let names: Vec<String> = plain.client.query("fact-names", &[])?.json()?;
    ensure!(
        names.iter().filter(|name| *name == SOURCE).count() == 1,
        "the real fact's name: {names:?}"
    );

    let renamed = world.pdbmux_with(&[("PDBMUX_SOURCE_FACT", "which_backend")])?;
    same_facts(world, &renamed, Strategy::Freshness, Some("which_backend"))?;
    let impostor = renamed.client.query("facts/pdbmux_source", &[])?;
    ensure!(
        impostor.body.contains("an impostor") && impostor.records()?.len() == 1,
        "{}",
        impostor.body
    );
    Ok(())
}

fn r077_r080_r085_some_queries_get_no_source_fact(world: &World) -> Result<()> {
    for (query, injected) in [
        ("", true),
        (r#"["=","certname","web1.example.com"]"#, true),
        (
            r#"["in","certname",["extract","certname",["select_facts",["=","name","kernel"]]]]"#,
            true,
        ),
        (r#"["=","name","kernel"]"#, false),
        (
            r#"["and",["=","certname","web1.example.com"],["~","name","^k"]]"#,
            false,
        ),
        (
            r#"["extract",["certname","name","value"],["=","certname","web1.example.com"]]"#,
            false,
        ),
    ] {
        let answer = world.query("facts", &[("query", query)])?;
        ensure!(answer.body.len() > 2, "{query}: nothing found");
        ensure!(
            answer.body.contains("\"pdbmux_source\"") == injected,
            "{query}: {}",
            answer.body
        );
    }
    Ok(())
}

fn r086_r087_r091_fact_names_are_the_union(world: &World) -> Result<()> {
    let mut union = BTreeSet::from([SOURCE.to_owned()]);
    for answer in &world.both("fact-names", &[])? {
        union.extend(answer.json::<Vec<String>>()?);
    }
    let mut wanted: Vec<_> = union.into_iter().collect();
    same(
        "fact-names",
        &world.query("fact-names", &[])?.json::<Vec<String>>()?,
        &wanted,
    )?;
    let total = world.query(
        "fact-names",
        &[("include_total", "true"), ("limit", "3"), ("offset", "2")],
    )?;
    same("a window", &total.json::<Vec<String>>()?, &wanted[2..5])?;
    ensure!(
        total.header("x-records") == Some(wanted.len().to_string().as_str()),
        "R090: {:?}",
        total.headers
    );
    wanted.reverse();
    let descending = [("order_by", r#"[{"field":"name","order":"desc"}]"#)];
    same(
        "descending",
        &world
            .query("fact-names", &descending)?
            .json::<Vec<String>>()?,
        &wanted,
    )
}

/// Exactly the owners' facts, node by node, and one record in each that names the owner.
fn same_facts(
    world: &World,
    pdbmux: &Daemon,
    strategy: Strategy,
    source: Option<&str>,
) -> Result<()> {
    let both = world.both("facts", &[])?;
    let held = [bytes_by_certname(&both[0])?, bytes_by_certname(&both[1])?];
    let answer = pdbmux.client.query("facts", &[])?;
    let (own, rest) = split(&answer, source)?;

    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (certname, owner) in world.estate.owners(strategy) {
        let mut records = held[owner as usize]
            .get(certname)
            .context(certname)?
            .clone();
        if source == Some(SOURCE) && certname == IMPOSTOR {
            // R068
            records.retain(|record| !record.contains("\"an impostor\""));
        }
        wanted.insert(certname.to_owned(), records);
        if source.is_some() {
            let named = own
                .get(certname)
                .with_context(|| format!("no source fact of {certname}"))?;
            ensure!(named.len() == 1, "{certname} has {named:?}");
            let environment = Record(&wanted[certname][0]).field("environment")?;
            let columns = Record(&named[0]).columns()?;
            ensure!(
                columns
                    .iter()
                    .eq(["certname", "environment", "name", "value"])
                    && Record(&named[0]).field("value")? == world.name(owner)
                    && Record(&named[0]).field("environment")? == environment,
                "R050: {} of a node of {owner:?} in {environment}",
                named[0]
            );
        }
    }
    same(
        &answer.asked,
        &rest.into_iter().collect::<Vec<_>>(),
        &wanted.into_iter().collect::<Vec<_>>(),
    )?;
    together(&answer)
}

type ByCertname = BTreeMap<String, Vec<String>>;

/// pdbmux's own records and the others.
fn split(answer: &Answer, source: Option<&str>) -> Result<(ByCertname, ByCertname)> {
    let all = bytes_by_certname(answer)?;
    let is_own = |record: &String| {
        source.is_some()
            && Record(record)
                .field("name")
                .ok()
                .as_ref()
                .and_then(Value::as_str)
                == source
    };
    let part = |wanted: bool| -> ByCertname {
        all.iter()
            .map(|(certname, records)| {
                (
                    certname.clone(),
                    records
                        .iter()
                        .filter(|record| is_own(record) == wanted)
                        .cloned()
                        .collect(),
                )
            })
            .collect()
    };
    Ok((part(true), part(false)))
}

/// R051: a node's records stand together.
fn together(answer: &Answer) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut last = String::new();
    for record in answer.records()? {
        let certname = record.certname()?;
        if certname != last {
            ensure!(
                seen.insert(certname.clone()),
                "the facts of {certname} are scattered"
            );
            last = certname;
        }
    }
    Ok(())
}

/// One record per node whose owner has one, the owner's bytes, and nothing made by pdbmux.
fn same_named(world: &World, path: &str) -> Result<()> {
    let both = world.both(path, &[])?;
    let held = [bytes_by_certname(&both[0])?, bytes_by_certname(&both[1])?];
    let mut wanted = BTreeMap::new();
    for (certname, owner) in world.estate.owners(Strategy::Freshness) {
        wanted.insert(
            certname.to_owned(),
            held[owner as usize]
                .get(certname)
                .context(certname)?
                .clone(),
        );
    }
    same(
        path,
        &bytes_by_certname(&world.query(path, &[])?)?
            .into_iter()
            .collect::<Vec<_>>(),
        &wanted.into_iter().collect::<Vec<_>>(),
    )
}

fn r220_r221_cached_paths_say_so(world: &World) -> Result<()> {
    let fresh = world.pdbmux_with(&[])?;
    let outcomes = [
        fresh.client.query("facts", &[])?,
        fresh.client.query("facts", &[])?,
    ];
    let marks: Vec<_> = outcomes
        .iter()
        .map(|answer| answer.header("x-cache"))
        .collect();
    same("X-Cache", &marks, &[Some("miss"), Some("hit")])?;
    ensure!(
        outcomes[0].header("age") == Some("0"),
        "{:?}",
        outcomes[0].headers
    );
    ensure!(
        outcomes[0].body == outcomes[1].body,
        "the stored body differs"
    );
    let off = world.pdbmux_with(&[("PDBMUX_FACTS_TTL", "0s")])?;
    ensure!(
        off.client.query("facts", &[])?.header("x-cache").is_none(),
        "R209"
    );
    Ok(())
}
