//! The manifests in `deploy/kubernetes/` and the files of the Debian package, held against the
//! program and against each other. Whether Kubernetes takes the one is for `deploy/check.sh` to say,
//! whether Debian takes the other for `packaging/check-deb.sh`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pdbmux::config::{Config, Environment, Flags, KEYS, Loaded, SYSTEM_FILE, load};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::harness::Pdbmux;
use crate::stub::Stub;

const PROBES: [&str; 3] = ["startupProbe", "livenessProbe", "readinessProbe"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes")
}

fn manifest(name: &str) -> Value {
    let text = fs::read_to_string(folder().join(format!("{name}.yaml"))).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn pod() -> Value {
    manifest("deployment")["spec"]["template"]["spec"].clone()
}

/// What pdbmux makes of the config map's file.
fn loaded() -> Loaded {
    let dir = tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    let map = manifest("configmap");
    fs::write(&path, map["data"]["config.yaml"].as_str().unwrap()).unwrap();
    let flags = Flags {
        config: Some(path),
        ..Flags::default()
    };
    load(&flags, &Environment::default()).unwrap()
}

/// Kubernetes' notation of bytes.
fn quantity(value: &Value) -> usize {
    let text = value.as_str().unwrap();
    let (number, unit) = text.split_at(text.find(char::is_alphabetic).unwrap());
    let unit = match unit {
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        unit => panic!("{unit} is no unit that this test knows"),
    };
    number.parse::<usize>().unwrap() * unit
}

#[test]
fn r293_the_config_map_is_mounted_where_pdbmux_looks_without_any_variable() {
    let pod = pod();
    let container = &pod["containers"][0];
    assert_eq!(
        (&container["env"], &container["envFrom"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&container["command"], &container["args"]),
        (&Value::Null, &Value::Null)
    );
    // Nor are there the variables that Kubernetes sets for a service of this name.
    assert_eq!(pod["enableServiceLinks"], false);

    let map = manifest("configmap");
    let (volume, mount) = (&pod["volumes"][0], &container["volumeMounts"][0]);
    assert_eq!(volume["configMap"]["name"], map["metadata"]["name"]);
    assert_eq!(volume["name"], mount["name"]);
    let folder = Path::new(mount["mountPath"].as_str().unwrap());
    let files: Vec<_> = map["data"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["config.yaml"]);
    assert_eq!(folder.join(files[0]), Path::new(SYSTEM_FILE));
}

#[test]
fn r293_the_config_map_is_a_configuration_to_serve_with() {
    let loaded = loaded();
    assert!(loaded.config.backends.len() > 1);
    assert_eq!(loaded.notes, [""; 0]);
}

#[test]
fn the_service_the_probes_and_the_configuration_mean_one_port() {
    let container = &pod()["containers"][0];
    let port = &container["ports"][0];
    assert_eq!(port["containerPort"], loaded().config.listen[0].port);
    assert_eq!(
        manifest("service")["spec"]["ports"][0]["targetPort"],
        port["name"]
    );
    for probe in PROBES {
        assert_eq!(container[probe]["httpGet"]["port"], port["name"], "{probe}");
    }
}

#[tokio::test]
async fn r201_every_probe_asks_for_a_path_that_pdbmux_answers() {
    let backend = Stub::start().await;
    let mux = Pdbmux::start(&[&backend]).await;
    for probe in PROBES {
        let path = pod()["containers"][0][probe]["httpGet"]["path"].clone();
        mux.get(path.as_str().unwrap()).await.ok();
    }
    assert_eq!(
        backend.seen().len(),
        0,
        "a probe must not depend on a backend's speed"
    );
}

#[test]
fn a_pod_is_given_the_time_that_pdbmux_takes_to_stop() {
    let pod = pod();
    let sleep = &pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"];
    let config = loaded().config;
    let stopping =
        config.drain_delay + config.shutdown_timeout + Duration::from_secs(sleep.as_u64().unwrap());
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(stopping < Duration::from_secs(grace), "{stopping:?}");
}

#[test]
fn r294_replicas_share_nothing_and_two_are_always_there() {
    assert_eq!(
        manifest("horizontalpodautoscaler")["spec"]["minReplicas"],
        2
    );
    assert_eq!(manifest("deployment")["spec"]["replicas"], Value::Null);
    assert_eq!(manifest("poddisruptionbudget")["spec"]["maxUnavailable"], 1);
    let pod = pod();
    assert_eq!(
        pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"],
        true
    );
    assert_eq!(
        pod["volumes"].as_array().unwrap().len(),
        1,
        "no volume but the configuration"
    );
}

#[test]
fn r295_the_memory_limit_is_room_for_the_cache_and_two_rounds_of_the_largest_bodies() {
    let config = loaded().config;
    let rounds = 2 * config.backends.len() * config.max_body_bytes;
    let limit = &pod()["containers"][0]["resources"]["limits"]["memory"];
    // A quarter is left for what is noted of records, and for the program itself.
    assert!(
        config.facts_cache_bytes + rounds <= quantity(limit) / 4 * 3,
        "{limit}"
    );
}

#[test]
fn the_container_has_no_rights_that_it_could_lose() {
    let pod = pod();
    let user = json!({
        "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let container = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    });
    assert_eq!(pod["securityContext"], user);
    assert_eq!(pod["containers"][0]["securityContext"], container);
    assert_eq!(pod["automountServiceAccountToken"], false);
}

#[test]
fn everything_selects_the_pods_of_the_deployment() {
    let deployment = manifest("deployment");
    let label = json!({"app.kubernetes.io/name": "pdbmux"});
    let matching = json!({"matchLabels": label});
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"], label);
    assert_eq!(deployment["spec"]["selector"], matching);
    assert_eq!(manifest("service")["spec"]["selector"], label);
    assert_eq!(
        manifest("poddisruptionbudget")["spec"]["selector"],
        matching
    );
    for spread in pod()["topologySpreadConstraints"].as_array().unwrap() {
        assert_eq!(spread["labelSelector"], matching);
    }
    let target = &manifest("horizontalpodautoscaler")["spec"]["scaleTargetRef"];
    for key in ["apiVersion", "kind"] {
        assert_eq!(target[key], deployment[key]);
    }
    assert_eq!(target["name"], deployment["metadata"]["name"]);
}

#[test]
fn kustomize_takes_every_manifest_and_the_image_of_the_deployment() {
    let kustomization = manifest("kustomization");
    let names = fs::read_dir(folder()).unwrap();
    let mut files: BTreeSet<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(files.remove("kustomization.yaml"));
    let taken = kustomization["resources"].as_array().unwrap();
    let taken: BTreeSet<_> = taken
        .iter()
        .map(|it| it.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(taken, files);
    assert_eq!(
        kustomization["images"][0]["name"],
        pod()["containers"][0]["image"]
    );
}

fn of_debian(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/debian");
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn systemd_waits_longer_than_pdbmux_takes_to_stop() {
    let unit = of_debian("pdbmux.service");
    let wait = unit
        .lines()
        .find_map(|line| line.strip_prefix("TimeoutStopSec="));
    let wait = wait
        .and_then(|it| it.strip_suffix('s'))
        .unwrap()
        .parse()
        .unwrap();
    let Config {
        drain_delay,
        shutdown_timeout,
        ..
    } = Config::default();
    assert!(drain_delay + shutdown_timeout < Duration::from_secs(wait));
}

#[test]
fn the_variables_that_the_package_suggests_are_those_of_keys() {
    let known: Vec<_> = KEYS.iter().map(pdbmux::config::Key::env).collect();
    let file = of_debian("default");
    let named = file
        .lines()
        .filter_map(|line| line.strip_prefix('#')?.split_once('='));
    let named: Vec<_> = named
        .filter(|(name, _)| name.starts_with("PDBMUX_"))
        .collect();
    assert!(!named.is_empty());
    for (name, value) in named {
        assert!(known.iter().any(|key| key == name), "{name}");
        let env: Environment = [(name, value.trim_matches('"'))].into_iter().collect();
        assert!(load(&Flags::default(), &env).is_ok(), "{name}={value}");
    }
}
