//! Pass-through, versions, clocks, metrics and pdbmux's own health.

use anyhow::{Context, Result, ensure};
use pdbmux_e2e::estate::Side;
use serde_json::Value;

use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r240_r242_r305_other_collections_are_the_first_backends,
    r243_r244_the_version_is_the_lowest,
    r246_the_clock_is_a_backends,
    r248_r250_a_gauge_is_summed,
    r253_r258_an_escaped_mbean_name_reaches_the_backends,
    r256_r257_an_mbean_that_nobody_has_is_jolokias_own_404,
    r259_the_mbean_tree_is_the_union,
    r189_r193_everything_is_healthy,
];

fn r240_r242_r305_other_collections_are_the_first_backends(world: &World) -> Result<()> {
    for (entity, query) in [
        ("environments", ""),
        ("producers", ""),
        ("resources", r#"["=","certname","core1.example.com"]"#),
        ("inventory", r#"["=","certname","core1.example.com"]"#),
        ("factsets", r#"["=","certname","core1.example.com"]"#),
        (
            "",
            r#"["from","nodes",["=","certname","core1.example.com"]]"#,
        ),
        ("", r#"nodes[certname]{ certname = "core1.example.com" }"#),
    ] {
        let path = format!("/pdb/query/v4/{entity}");
        let (path, parameters) = (path.trim_end_matches('/'), [("query", query)]);
        let (got, wanted) = (
            world.pdbmux.client.get(path, &parameters)?,
            world.backend(Side::A).get(path, &parameters)?,
        );
        ensure!(
            wanted.status == 200,
            "{path} {query}: {} {}",
            wanted.status,
            wanted.body
        );
        ensure!(
            (got.status, &got.body) == (200, &wanted.body),
            "{path} {query}: {} {}",
            got.status,
            got.body
        );
    }
    Ok(())
}

fn r243_r244_the_version_is_the_lowest(world: &World) -> Result<()> {
    // R302: the two versions of the rig differ.
    let parts = |version: &str| {
        version
            .split('.')
            .map(|part| part.parse::<u64>().unwrap_or(0))
            .collect::<Vec<_>>()
    };
    let lowest = world
        .rig
        .backends
        .iter()
        .map(|one| &one.version)
        .min_by_key(|version| parts(version));
    let answer: Value = world
        .pdbmux
        .client
        .get("/pdb/meta/v1/version", &[])?
        .json()?;
    ensure!(
        answer["version"].as_str() == lowest.map(String::as_str),
        "{answer}, the lowest is {lowest:?}"
    );
    Ok(())
}

fn r246_the_clock_is_a_backends(world: &World) -> Result<()> {
    let before: Value = world
        .backend(Side::A)
        .get("/pdb/meta/v1/server-time", &[])?
        .json()?;
    let answer = world.pdbmux.client.get("/pdb/meta/v1/server-time", &[])?;
    let got: Value = answer.json()?;
    let after: Value = world
        .backend(Side::A)
        .get("/pdb/meta/v1/server-time", &[])?
        .json()?;
    let time = |value: &Value| value["server_time"].as_str().map(str::to_owned);
    ensure!(
        time(&got).is_some() && time(&before) <= time(&got) && time(&got) <= time(&after),
        "{before} <= {got} <= {after}"
    );
    Ok(())
}

fn r248_r250_a_gauge_is_summed(world: &World) -> Result<()> {
    for name in [
        "puppetlabs.puppetdb.population:name=num-nodes",
        "puppetlabs.puppetdb.population%3Aname%3Dnum-nodes",
        "puppetlabs.puppetdb.population:name=num-active-nodes",
    ] {
        let path = format!("/metrics/v2/read/{name}");
        let [a, b, got] = three(world, &path)?;
        ensure!(
            got["value"]["Value"].as_u64()
                == a["value"]["Value"]
                    .as_u64()
                    .zip(b["value"]["Value"].as_u64())
                    .map(|(a, b)| a + b),
            "{path}: {got} of {a} and {b}"
        );
        ensure!(
            got["request"] == a["request"] && got["status"] == 200,
            "{got}"
        );
    }
    Ok(())
}

fn r253_r258_an_escaped_mbean_name_reaches_the_backends(world: &World) -> Result<()> {
    // Both layers: `!/` is Jolokia's slash, the rest is percent-encoded.
    let path =
        "/metrics/v2/read/puppetlabs.puppetdb.http%3Aname%3D!%2Fpdb!%2Fcmd!%2Fv1.service-time";
    let [a, b, got] = three(world, path)?;
    ensure!(got["status"] == 200, "{got}");
    let number = |value: &Value, name: &str| {
        value["value"][name]
            .as_f64()
            .with_context(|| format!("no {name} in {value}"))
    };
    ensure!(
        (number(&got, "Max")? - number(&a, "Max")?.max(number(&b, "Max")?)).abs() < 1e-9,
        "R252: {got}"
    );
    ensure!(
        (number(&got, "Count")? - number(&a, "Count")? - number(&b, "Count")?).abs() < 1e-9,
        "R250: {got}"
    );
    let mean = f64::midpoint(number(&a, "Mean")?, number(&b, "Mean")?);
    ensure!((number(&got, "Mean")? - mean).abs() < 1e-9, "R253: {got}");
    Ok(())
}

fn r256_r257_an_mbean_that_nobody_has_is_jolokias_own_404(world: &World) -> Result<()> {
    let path = "/metrics/v2/read/puppetlabs.puppetdb.population:name=nosuch";
    let (got, wanted) = (
        world.pdbmux.client.get(path, &[])?,
        world.backend(Side::A).get(path, &[])?,
    );
    ensure!(
        (got.status, &got.body) == (wanted.status, &wanted.body),
        "{} {}",
        got.status,
        got.body
    );
    Ok(())
}

fn r259_the_mbean_tree_is_the_union(world: &World) -> Result<()> {
    let [a, b, got] = three(world, "/metrics/v2/list")?;
    let domains = |value: &Value| {
        value["value"]
            .as_object()
            .map(|all| all.keys().cloned().collect::<Vec<_>>())
            .unwrap_or_default()
    };
    let mut wanted = [domains(&a), domains(&b)].concat();
    wanted.sort();
    wanted.dedup();
    let mut got = domains(&got);
    got.sort();
    ensure!(
        got == wanted && !got.is_empty(),
        "{got:?}, wanted {wanted:?}"
    );
    Ok(())
}

fn r189_r193_everything_is_healthy(world: &World) -> Result<()> {
    let answer = world.pdbmux.client.get("/healthz", &[])?;
    let body: Value = answer.json()?;
    ensure!(
        answer.status == 200 && body["status"] == "ok",
        "{} {}",
        answer.status,
        answer.body
    );
    for one in &world.rig.backends {
        ensure!(
            answer.body.contains(&format!("\"{}\"", one.name)),
            "{} is not in {}",
            one.name,
            answer.body
        );
        ensure!(
            !answer.body.contains(one.client.base()),
            "R018: an address in {}",
            answer.body
        );
    }
    Ok(())
}

fn three(world: &World, path: &str) -> Result<[Value; 3]> {
    Ok([
        world.backend(Side::A).get(path, &[])?.json()?,
        world.backend(Side::B).get(path, &[])?.json()?,
        world.pdbmux.client.get(path, &[])?.json()?,
    ])
}
