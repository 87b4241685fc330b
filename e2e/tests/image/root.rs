//! A folder that holds what the image holds, and nothing else, as the root of a process.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use pdbmux_e2e::http::Client;
use pdbmux_e2e::process::{Running, Service, StopBy};
use pdbmux_e2e::settings::{Lifetime, Settings};
use tempfile::TempDir;

use crate::dockerfile::Stage;

/// How long pdbmux may take until it serves.
const START: Duration = Duration::from_secs(30);

/// Where `chroot` is, outside the root.
const PATH: &str = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

/// The root, and beside it what the processes in it say.
#[derive(Debug)]
pub(crate) struct Root {
    folder: TempDir,
    image: Stage,
}

impl Root {
    /// The root that the Dockerfile describes, as far as the base image has nothing in it.
    pub(crate) fn new(image: Stage) -> Self {
        let root = Self {
            folder: tempfile::tempdir().unwrap(),
            image,
        };
        open(root.folder.path(), 0o755);
        fs::create_dir(root.inside("")).unwrap();
        for (sources, target) in root.image.copies() {
            assert_eq!(sources, ["/src/dist/pdbmux"], "only the binary is copied");
            let binary = Settings::from_env().unwrap().pdbmux_binary();
            fs::copy(binary.unwrap(), root.inside(target)).unwrap();
        }
        root
    }

    /// Adds a file that anybody can read.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.inside(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The path of `file`, which begins with a slash, from outside.
    pub(crate) fn inside(&self, file: &str) -> PathBuf {
        self.folder
            .path()
            .join("root")
            .join(file.trim_start_matches('/'))
    }

    /// Every file there is.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.inside("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                files.push(path);
            }
        }
        files.sort();
        files
    }

    /// Runs `command` in it as the image's user, without any variable but `PATH`.
    pub(crate) fn run(&self, command: &[String]) -> Output {
        let [program, args @ ..] = &self.command(command)[..] else {
            panic!("no command");
        };
        Command::new(program).args(args).output().unwrap()
    }

    /// Starts the image's program on `port`, with more arguments, and waits until it serves.
    pub(crate) fn start(&self, port: u16, arguments: &[String]) -> (Running, Client) {
        let name = format!("pdbmux-{port}");
        let service = Service {
            name: &name,
            folder: self.folder.path(),
            stop_by: StopBy::Kill,
        };
        let command = [self.image.command("ENTRYPOINT"), arguments.to_vec()].concat();
        let running = service.start(&self.command(&command), Lifetime::Bound, &[]);
        let running = running.unwrap();
        let client = Client::new(format!("http://127.0.0.1:{port}"));
        running
            .wait("pdbmux", START, || client.get("/livez", &[]).ok())
            .unwrap();
        (running, client)
    }

    fn command(&self, command: &[String]) -> Vec<String> {
        let user = format!("--userspec={}", self.image.one("USER"));
        let root = self.inside("").to_string_lossy().into_owned();
        let mut whole: Vec<String> = ["env", "-i", PATH, "chroot"].map(String::from).into();
        whole.extend([user, "--groups=".to_owned(), root]);
        whole.extend_from_slice(command);
        whole
    }
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
