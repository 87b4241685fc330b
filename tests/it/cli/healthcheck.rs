//! `healthcheck`: what it asks, where, and how it ends.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener};
use std::thread::{self, JoinHandle};

use tempfile::{TempDir, tempdir};

use super::{printed, program, write};

/// Answers one request with this status, and tells its first line.
fn answering(listener: TcpListener, status: &'static str) -> JoinHandle<String> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            request.extend(byte);
        }
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
        let request = String::from_utf8(request).unwrap();
        request.lines().next().unwrap().to_owned()
    })
}

/// Exit status, standard output and standard error of `healthcheck`, `listen` being in the file.
fn check(dir: &TempDir, listen: &str, args: &[&str]) -> (i32, String, String) {
    write(dir, "config.yaml", format!("listen: '{listen}'\n"));
    let run = program(dir)
        .env("PDBMUX_CONFIG", "config.yaml")
        .arg("healthcheck")
        .args(args)
        .assert();
    let output = run.get_output();
    let code = output.status.code().unwrap();
    (
        code,
        printed(&output.stdout, dir),
        printed(&output.stderr, dir),
    )
}

#[test]
fn it_asks_livez_or_readyz_and_an_answer_of_200_means_well() {
    for (args, asked, well) in [
        (&[][..], "GET /livez HTTP/1.1", "live"),
        (&["--ready"], "GET /readyz HTTP/1.1", "ready"),
    ] {
        let dir = tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let request = answering(listener, "200 OK");
        let said = check(&dir, &address, args);
        let sentence = format!("pdbmux on {address} is {well}\n");
        assert_eq!(said, (0, sentence, String::new()));
        assert_eq!(request.join().unwrap(), asked);
    }
}

#[test]
fn another_status_and_no_answer_end_with_status_1_and_one_sentence() {
    let dir = tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let request = answering(listener, "503 Service Unavailable");
    let (code, out, why) = check(&dir, &address, &["--ready"]);
    let sentence = format!("pdbmux: pdbmux on {address} answers /readyz with status 503\n");
    assert_eq!((code, out.as_str(), why), (1, "", sentence));
    request.join().unwrap();

    // Nobody listens there any more.
    let (code, out, why) = check(&dir, &address, &[]);
    let sentence = format!("pdbmux: pdbmux is not reached on {address}: connection refused\n");
    assert_eq!((code, out.as_str(), why), (1, "", sentence));

    // Takes the connection and says nothing.
    let _silent = TcpListener::bind(&address).unwrap();
    let (code, out, why) = check(&dir, &address, &[]);
    let sentence = format!("pdbmux: pdbmux does not answer /livez on {address} within 3s\n");
    assert_eq!((code, out.as_str(), why), (1, "", sentence));
}

#[test]
fn an_address_of_every_interface_is_asked_on_this_machine_in_either_family() {
    let dir = tempdir().unwrap();
    let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = v4.local_addr().unwrap().port();
    for (listen, loopback, listener) in [
        (":", "127.0.0.1", v4.try_clone().unwrap()),
        ("0.0.0.0:", "127.0.0.1", v4.try_clone().unwrap()),
        ("[::]:", "127.0.0.1", v4.try_clone().unwrap()),
        ("localhost:", "127.0.0.1", v4),
    ] {
        let request = answering(listener, "200 OK");
        let said = check(&dir, &format!("{listen}{port}"), &[]);
        let sentence = format!("pdbmux on {loopback}:{port} is live\n");
        assert_eq!(said, (0, sentence, String::new()), "{listen}");
        request.join().unwrap();
    }
    // Where there is no IPv6 there is nothing to ask by it.
    let Ok(v6) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        return;
    };
    let port = v6.local_addr().unwrap().port();
    for (listen, listener) in [
        (":", v6.try_clone().unwrap()),
        ("[::]:", v6.try_clone().unwrap()),
        ("[::1]:", v6),
    ] {
        let request = answering(listener, "200 OK");
        let said = check(&dir, &format!("{listen}{port}"), &[]);
        let sentence = format!("pdbmux on [::1]:{port} is live\n");
        assert_eq!(said, (0, sentence, String::new()), "{listen}");
        request.join().unwrap();
    }
}

#[test]
fn it_takes_the_configuration_in_its_layers() {
    let dir = tempdir().unwrap();
    let (code, _, why) = check(&dir, ":0", &[]);
    let sentence = "pdbmux: listen :0 has no fixed port that could be asked\n";
    assert_eq!((code, why.as_str()), (1, sentence));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let request = answering(listener, "200 OK");
    assert_eq!(check(&dir, ":1", &["--listen", &address]).0, 0);
    request.join().unwrap();

    let (code, _, why) = check(&dir, "8080", &[]);
    assert_eq!(code, 2, "{why}");
}
