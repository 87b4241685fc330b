//! The binary as it is shipped, in a root that holds no more than the image does, and the files the
//! image is built by. Needs root, for `chroot` and the port of DNS.

#![allow(clippy::unwrap_used, clippy::panic, reason = "all of it is tests")]

mod backends;
mod dockerfile;
mod root;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use pdbmux_e2e::process::free_port;
use pdbmux_e2e::settings::Settings;
use serde_json::Value;

use backends::{Backends, DNS, PLAIN, SECURE};
use dockerfile::{repository, stages};
use root::Root;

#[test]
fn r292_the_binary_is_static() {
    let binary = Settings::from_env().unwrap().pdbmux_binary().unwrap();
    let output = Command::new("ldd").arg(&binary).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.contains("statically linked") || said.contains("not a dynamic executable"),
        "{} is not static: {said}",
        binary.display()
    );
}

#[test]
fn r292_r293_r294_in_an_empty_root_it_finds_its_config_and_merges_what_it_reaches_by_name() {
    let backends = Backends::start();
    let port = free_port().unwrap();
    let [_, image] = stages();
    let healthcheck = image.command("HEALTHCHECK");
    let root = Root::new(image);
    root.write("/etc/hosts", &format!("127.0.0.1 {PLAIN}\n"));
    root.write("/etc/resolv.conf", &format!("nameserver {DNS}\n"));
    root.write("/etc/ssl/certs/ca-certificates.crt", &backends.authority);
    let (plain_port, secure_port) = (backends.plain_port, backends.front.port);
    root.write(
        "/etc/pdbmux/config.yaml",
        &format!(
            "listen: localhost:{port}\n\
             backends:\n\
             - name: plain\n  url: http://{PLAIN}:{plain_port}\n\
             - name: secure\n  url: https://{SECURE}:{secure_port}\n"
        ),
    );
    let files = root.files();
    assert_eq!(
        root.run(&healthcheck).status.code(),
        Some(1),
        "nobody serves"
    );

    let (first, client) = root.start(port, &[]);
    let answer = client.get("/pdb/query/v4/nodes", &[]).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}\n{}", first.tail());
    assert_eq!(answer.headers["x-backends"], "2/2", "{}", first.tail());
    let nodes: Vec<Value> = serde_json::from_str(&answer.body).unwrap();
    let sources: BTreeSet<_> = nodes
        .iter()
        .map(|node| node["pdbmux_source"].as_str().unwrap())
        .collect();
    assert_eq!(sources, ["plain", "secure"].into());

    let well = root.run(&healthcheck);
    let said = String::from_utf8(well.stdout).unwrap();
    assert_eq!(said, format!("pdbmux on 127.0.0.1:{port} is live\n"));
    assert!(well.status.success());

    // A second one beside it shares nothing with it, and neither leaves anything behind.
    let other = free_port().unwrap();
    let listen = ["--listen".to_owned(), format!("localhost:{other}")];
    let (_second, beside) = root.start(other, &listen);
    drop(first);
    let again = beside.get("/pdb/query/v4/nodes", &[]).unwrap();
    assert_eq!(again.headers["x-backends"], "2/2");
    assert_eq!(again.body, answer.body);
    assert_eq!(root.files(), files);
}

#[test]
fn r296_test_lint_and_build_need_no_container() {
    let output = Command::new("make")
        .args(["--dry-run", "CARGO=cargo", "test", "lint", "build"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let commands = String::from_utf8(output.stdout).unwrap();
    for engine in ["docker", "podman", "buildah", "nerdctl"] {
        assert!(!commands.contains(engine), "{engine}");
    }
    for step in ["cargo test", "cargo clippy", "cargo build --release"] {
        assert!(commands.contains(step), "{step}");
    }
}

#[test]
fn r292_the_dockerfile_builds_as_the_makefile_does_and_ships_the_binary_alone() {
    let [build, image] = stages();
    assert_eq!(build.one("FROM"), "${BUILD_IMAGE} AS build");
    assert_eq!(build.one("WORKDIR"), "/src");
    assert_eq!(build.copies(), [(vec!["."], ".")]);
    assert_eq!(build.one("RUN"), "make build");
    let makefile = fs::read_to_string(repository().join("Makefile")).unwrap();
    assert!(makefile.contains("\nbuild:"));
    assert!(makefile.contains(" dist/pdbmux\n"), "where build puts it");

    assert_eq!(image.one("FROM"), "${BASE_IMAGE}");
    let copy = image.one("COPY");
    assert_eq!(copy, "--from=build /src/dist/pdbmux /pdbmux");
    assert_eq!(image.command("ENTRYPOINT"), ["/pdbmux"]);
    assert_eq!(image.command("HEALTHCHECK"), ["/pdbmux", "healthcheck"]);
    // By number, since an orchestrator that wants no root cannot look names up.
    assert_eq!(image.one("USER"), "65532:65532");
    assert_eq!(image.one("EXPOSE"), "8080");
}

#[test]
fn what_docker_does_not_get_to_see_is_not_needed_to_build() {
    let text = fs::read_to_string(repository().join(".dockerignore")).unwrap();
    let hidden: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix('/'))
        .collect();
    for needed in [
        "Cargo.toml",
        "Cargo.lock",
        "Makefile",
        "src",
        "core",
        "samples",
        "e2e",
    ] {
        assert!(repository().join(needed).exists(), "{needed}");
        assert!(!hidden.contains(&needed), "{needed}");
    }
    for secret_or_large in [".git", "target", ".rig"] {
        assert!(hidden.contains(&secret_or_large), "{secret_or_large}");
    }
}

#[test]
fn the_pipeline_pushes_on_version_tags_and_keeps_every_place_and_secret_outside() {
    let text = fs::read_to_string(repository().join(".woodpecker/docker.yaml")).unwrap();
    let pipeline: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(pipeline["when"][0]["event"], "tag");
    assert_eq!(pipeline["when"][0]["ref"], "refs/tags/v*");
    let settings = &pipeline["steps"][0]["settings"];
    for setting in ["registry", "repo", "username", "password", "build_args"] {
        assert!(settings[setting]["from_secret"].is_string(), "{setting}");
    }
}
