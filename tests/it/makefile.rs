//! What people are told to run.

use std::fs;

#[test]
fn r296_r309_building_testing_and_linting_are_targets_that_need_no_container() {
    let makefile = concat!(env!("CARGO_MANIFEST_DIR"), "/Makefile");
    let text = fs::read_to_string(makefile).unwrap();
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
