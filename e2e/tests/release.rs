//! `packaging/release.sh`, in a repository of its own.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A repository whose `main` has the files that a release touches, as they are here.
struct Checkout(TempDir);

impl Checkout {
    fn new() -> Self {
        let checkout = Self(tempfile::tempdir().unwrap());
        let files = [
            "Cargo.toml",
            "Cargo.lock",
            "CHANGELOG.md",
            "fuzz/Cargo.lock",
            "packaging/release.sh",
        ];
        for file in files {
            let to = checkout.path(file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(repository().join(file), to).unwrap();
        }
        checkout.git(&["init", "--quiet", "--initial-branch", "main"]);
        checkout.commit();
        checkout
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "All of it"]);
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.0.path());
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "A Tester"),
            ("GIT_AUTHOR_EMAIL", "tester@example.com"),
            ("GIT_COMMITTER_NAME", "A Tester"),
            ("GIT_COMMITTER_EMAIL", "tester@example.com"),
        ] {
            command.env(name, value);
        }
        command
    }

    fn release(&self, args: &[&str]) -> Output {
        let script = self.path("packaging/release.sh");
        self.command(script).args(args).output().unwrap()
    }

    /// What the script says when it refuses, having changed nothing.
    fn refusal(&self, args: &[&str]) -> String {
        let before = self.state();
        let output = self.release(args);
        assert!(!output.status.success(), "{output:?}");
        assert_eq!(self.state(), before);
        String::from_utf8(output.stderr).unwrap()
    }

    fn state(&self) -> [String; 3] {
        [
            self.git(&["rev-parse", "HEAD"]),
            self.git(&["tag"]),
            self.git(&["status", "--porcelain"]),
        ]
    }
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

const CHANGES: &str = "# Changelog\n\n## Unreleased\n\n- Something new.\n\n## 0.1.0 - 2026-01-01\n";

#[test]
fn r308_a_release_raises_the_version_everywhere_dates_the_changelog_and_tags() {
    let old = env!("CARGO_PKG_VERSION");
    let parts: Vec<u64> = old.split('.').map(|part| part.parse().unwrap()).collect();
    for (part, new) in [
        (
            "patch",
            format!("{}.{}.{}", parts[0], parts[1], parts[2] + 1),
        ),
        ("minor", format!("{}.{}.0", parts[0], parts[1] + 1)),
        ("major", format!("{}.0.0", parts[0] + 1)),
    ] {
        let checkout = Checkout::new();
        checkout.write("CHANGELOG.md", CHANGES);
        checkout.commit();
        let [manifest, lock, fuzz] =
            ["Cargo.toml", "Cargo.lock", "fuzz/Cargo.lock"].map(|file| checkout.read(file));

        let output = checkout.release(&[part]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");

        assert_eq!(
            checkout.read("Cargo.toml"),
            raised(&manifest, "[workspace.package]", old, &new)
        );
        for (file, before) in [("Cargo.lock", lock), ("fuzz/Cargo.lock", fuzz)] {
            let ours = ["", "-bench", "-core", "-e2e", "-samples"];
            let raised = ours.iter().fold(before.clone(), |text, package| {
                raised(&text, &format!("name = \"pdbmux{package}\""), old, &new)
            });
            assert_ne!(raised, before, "{file}");
            assert_eq!(checkout.read(file), raised, "{file}");
        }
        let changes = checkout.read("CHANGELOG.md");
        let (today, rest) = changes
            .strip_prefix(&format!("# Changelog\n\n## Unreleased\n\n## {new} - "))
            .unwrap()
            .split_at("2026-01-01".len());
        assert!(today.starts_with("20"), "{today}");
        assert_eq!(rest, "\n\n- Something new.\n\n## 0.1.0 - 2026-01-01\n");

        assert_eq!(checkout.git(&["status", "--porcelain"]), "");
        assert_eq!(
            checkout.git(&["log", "-1", "--format=%s"]),
            format!("Release {new}")
        );
        let tag = format!("v{new}");
        assert_eq!(checkout.git(&["cat-file", "-t", &tag]), "tag");
        let commit = format!("{tag}^{{commit}}");
        assert_eq!(
            checkout.git(&["rev-parse", &commit]),
            checkout.git(&["rev-parse", "HEAD"])
        );
    }
}

/// `text` with the version after the line `head`, where it has that line, raised.
fn raised(text: &str, head: &str, old: &str, new: &str) -> String {
    let version = |version| format!("\n{head}\nversion = \"{version}\"\n");
    text.replace(&version(old), &version(new))
}

#[test]
fn what_is_no_state_to_release_is_refused_in_one_sentence() {
    let checkout = Checkout::new();
    checkout.write("CHANGELOG.md", CHANGES);
    checkout.commit();
    let refused = |args: &[&str], why: &str| {
        assert_eq!(checkout.refusal(args), format!("release: {why}\n"));
    };

    refused(
        &[],
        "say which part of the version to raise: patch, minor or major",
    );
    refused(
        &["huge"],
        "huge is no part of a version: say patch, minor or major",
    );
    checkout.write("new-file", "");
    refused(
        &["patch"],
        "the working tree has changes that are not committed",
    );
    fs::remove_file(checkout.path("new-file")).unwrap();

    checkout.git(&["checkout", "--quiet", "-b", "other"]);
    refused(&["patch"], "releases are made on main");
    checkout.git(&["checkout", "--quiet", "main"]);

    let (major, _) = env!("CARGO_PKG_VERSION").split_once('.').unwrap();
    let next = format!("v{}.0.0", major.parse::<u64>().unwrap() + 1);
    checkout.git(&["tag", &next]);
    refused(&["major"], &format!("the tag {next} exists already"));

    checkout.write("CHANGELOG.md", &CHANGES.replace("- Something new.\n\n", ""));
    checkout.commit();
    refused(&["minor"], "CHANGELOG.md has nothing under Unreleased");
}
