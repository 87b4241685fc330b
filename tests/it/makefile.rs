//! What people are told to run.

use std::fs;
use std::path::Path;

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

#[test]
fn r296_r309_building_testing_and_linting_are_targets_that_need_no_container() {
    let text = read("Makefile");
    for target in ["build", "test", "lint", "e2e"] {
        let (_, rest) = text.split_once(&format!("\n{target}: ")).expect(target);
        let (recipe, _) = rest.split_once("\n\n").unwrap();
        assert!(
            recipe.contains("cargo") || recipe.contains("$(CARGO)"),
            "{recipe}"
        );
        for engine in ["docker", "podman", "buildah"] {
            assert!(!recipe.contains(engine), "{recipe}");
        }
    }
}

#[test]
fn r300_what_the_end_to_end_tests_use_can_be_chosen() {
    let (compose, documented) = (read("e2e/compose.yaml"), read("e2e/README.md"));
    for image in ["OPENVOXDB", "POSTGRES", "PUPPETBOARD", "TUNNEL"] {
        let variable = format!("PDBMUX_E2E_{image}_IMAGE");
        assert!(compose.contains(&format!("${{{variable}:-")), "{variable}");
        assert!(documented.contains(&variable), "{variable}");
    }
    assert!(documented.contains("PDBMUX_E2E_NODE_LOOKUP"));
}
