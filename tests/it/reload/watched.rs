//! A config file that is looked at.

use std::fs;
use std::os::unix::fs::symlink;

use super::{File, NEW, OLD, backend, pairs, sources, until_read};
use crate::harness::Pdbmux;

const WATCHED: &str = "listen: 127.0.0.1:0\nhealth_probe_enabled: false\nfacts_ttl: 0s\n\
                       reload_interval: 10ms\n";

#[tokio::test]
async fn a_file_that_is_written_over_or_replaced_is_read_again_without_an_order() {
    let (a, b) = (
        backend(&[("m", OLD)], "a").await,
        backend(&[("n", NEW)], "b").await,
    );
    let (file, mut read) = (File::with(WATCHED), 0);
    file.write(&[("pdb-a", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    file.write(&[("pdb-b", &b)], "");
    until_read(&mux, &mut read).await;
    assert_eq!(sources(&mux).await, pairs(&[("n", "pdb-b")]));
    let same = fs::read(file.path()).unwrap();
    let text = String::from_utf8(same).unwrap().replace("pdb-b", "named");
    fs::write(file.path(), text).unwrap();
    until_read(&mux, &mut read).await;
    assert_eq!(sources(&mux).await, pairs(&[("n", "named")]));
    // Once it is not to be looked at, it is not: an order reads it.
    let text = fs::read_to_string(file.path()).unwrap();
    let text = text.replace("reload_interval: 10ms", "reload_interval: 0s");
    fs::write(file.path(), &text).unwrap();
    until_read(&mux, &mut read).await;
    fs::write(file.path(), text.replace("named", "ordered")).unwrap();
    assert_eq!(sources(&mux).await, pairs(&[("n", "named")]));
    super::reload(&mux, &mut read).await;
    assert_eq!(sources(&mux).await, pairs(&[("n", "ordered")]));
}

/// As Kubernetes replaces what a volume of a ConfigMap holds: the file is a link into a folder, which is
/// a link that is renamed over the one before.
#[tokio::test]
async fn a_file_whose_folder_is_exchanged_is_read_again() {
    let a = backend(&[("n", OLD)], "a").await;
    let (file, mut read) = (File::with(WATCHED), 0);
    let root = file.dir.path();
    let publish = |version: &str, name: &str| {
        file.write(&[(name, &a)], "");
        fs::create_dir(root.join(version)).unwrap();
        fs::rename(file.path(), root.join(version).join("config.yaml")).unwrap();
        symlink(version, root.join("..data_tmp")).unwrap();
        fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    };
    publish("..1", "before");
    symlink("..data/config.yaml", root.join("config.yaml")).unwrap();
    let mux = Pdbmux::of_file(&root.join("config.yaml")).await;
    assert_eq!(sources(&mux).await, pairs(&[("n", "before")]));
    publish("..2", "after");
    until_read(&mux, &mut read).await;
    assert_eq!(sources(&mux).await, pairs(&[("n", "after")]));
}
