//! Any path and query string: what is asked of a backend stays a request line, and no dot segment
//! gets that far.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pdbmux_core::merge::{Fan, Merge};
use pdbmux_core::plan::{Ask, Plan};
use pdbmux_core::settings::Strategy;
use pdbmux_fuzz::round::{planned, settings};
use percent_encoding::percent_decode_str;

fuzz_target!(|target: &str| {
    // The HTTP server lets none of these through.
    if target.bytes().any(is_no_target) {
        return;
    }
    for strategy in [Strategy::Freshness, Strategy::Static] {
        match planned(target, &settings(strategy)) {
            None => {}
            Some(plan) => check(target, &plan),
        }
    }
});

fn is_no_target(byte: u8) -> bool {
    byte.is_ascii_control() || byte == b' '
}

fn check(target: &str, plan: &Plan) {
    let path = target.split('?').next().unwrap_or_default();
    for segment in path.split('/') {
        let decoded = percent_decode_str(segment).decode_utf8_lossy();
        assert!(
            decoded != "." && decoded != "..",
            "{path} holds a dot segment"
        );
    }
    match plan {
        // Only the source fact's own path is known to be empty.
        Plan::Nothing(_) => assert!(path.starts_with("/pdb/query/v4/facts/"), "{path}"),
        Plan::Turns(ask, _, _) => check_ask(path, ask),
        Plan::Fan(fan) => check_fan(path, fan),
        // Only under merge: exact, which asks other paths on purpose.
        Plan::Parent(..) | Plan::Translate(_) => assert!(path.starts_with("/pdb/query/v4")),
        Plan::Write => assert!(path.starts_with("/pdb/cmd") || path.starts_with("/pdb/admin")),
    }
}

fn check_fan(path: &str, fan: &Fan) {
    check_ask(path, &fan.ask);
    if let Merge::Holder(Some(otherwise)) = &fan.merge {
        check_fan("/pdb/query/v4/events", otherwise);
    }
}

fn check_ask(path: &str, ask: &Ask) {
    for ask in [ask.clone(), ask.clone().with_limit(Some(u32::MAX))] {
        let target = ask.target();
        assert!(
            target.starts_with('/') && !target.bytes().any(is_no_target),
            "{target}"
        );
        let asked = target.split('?').next().unwrap_or_default();
        // The source fact's own path is made of all facts.
        assert!(
            asked == path || asked == "/pdb/query/v4/facts",
            "{asked} instead of {path}"
        );
    }
}
