//! All that is served, below a path.

use super::NODES;
use crate::harness::Pdbmux;
use crate::stub::Stub;

#[tokio::test]
async fn the_whole_surface_is_below_the_base_path_and_health_also_at_its_own() {
    let a = Stub::start().await;
    a.on(NODES, "[]").on("/pdb/query/v4/environments", "[]");
    let mux = Pdbmux::with(&[&a], |config| {
        config.door.base_path = Some("/puppetdb".to_owned());
    })
    .await;
    for path in [
        "/puppetdb/pdb/query/v4/nodes?query=%5B%22%3D%22%2C%22certname%22%2C%22a%2Fb%22%5D",
        "/puppetdb/pdb/query/v4/environments",
    ] {
        assert_eq!(mux.get(path).await.ok(), "[]", "{path}");
    }
    let below = "/pdb/query/v4/nodes?query=%5B%22%3D%22%2C%22certname%22%2C%22a%2Fb%22%5D";
    assert_eq!(a.targets(), [below, "/pdb/query/v4/environments"]);
    for path in ["/livez", "/puppetdb/livez", "/puppetdb/healthz", "/readyz"] {
        assert_eq!(mux.get(path).await.status, 200, "{path}");
    }
    for (path, status) in [
        (NODES, 404),
        ("/", 404),
        ("/puppetdb", 404),
        ("/puppetdb/", 404),
        ("/puppetdbs/pdb/query/v4/nodes", 404),
        ("/puppetdb/nowhere", 404),
        ("/puppetdb/../pdb/query/v4/nodes", 400),
    ] {
        let response = mux.get(path).await;
        assert_eq!(response.status, status, "{path}");
        assert_eq!(response.header("location"), None);
    }
    assert_eq!(
        mux.get(NODES).await.text(),
        "pdbmux does not serve this path"
    );
}
