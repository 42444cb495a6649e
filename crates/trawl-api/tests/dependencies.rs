//! Borders between crates and choices about third parties, proved on the resolved dependency graph. They are
//! recorded in `docs/adr/0001-crate-borders.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    sync::OnceLock,
};

use serde_json::Value;

/// Crates that handle packets, credentials or files of strangers, and what they share.
const WITHOUT_KUBERNETES: &[&str] = &[
    "trawl-artifact",
    "trawl-audit",
    "trawl-captured",
    "trawl-config",
    "trawl-control",
    "trawl-dataplane",
    "trawl-filter",
    "trawl-runner",
    "trawl-store",
    "trawl-traffic",
];

/// TLS and cryptography other than rustls with ring.
const FOREIGN_TLS: &[&str] = &[
    "aws-lc-fips-sys",
    "aws-lc-rs",
    "aws-lc-sys",
    "boring",
    "boring-sys",
    "native-tls",
    "openssl",
    "openssl-sys",
];

const PLATFORMS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// The resolved graph of one platform: package names, and the edges that reach a shipped program.
struct Graph {
    packages: BTreeSet<String>,
    shipped: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn of(platform: &str) -> Self {
        let output = Command::new(env!("CARGO"))
            .args([
                "metadata",
                "--format-version=1",
                "--locked",
                "--filter-platform",
                platform,
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo metadata starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");

        let names: BTreeMap<&str, &str> = array(&metadata["packages"])
            .map(|package| (text(&package["id"]), text(&package["name"])))
            .collect();
        let mut graph = Self {
            packages: BTreeSet::new(),
            shipped: BTreeMap::new(),
        };
        for node in array(&metadata["resolve"]["nodes"]) {
            let name = names[text(&node["id"])];
            graph.packages.insert(name.to_owned());
            let edges = graph.shipped.entry(name.to_owned()).or_default();
            for dependency in array(&node["deps"]) {
                // A kind of null is an ordinary dependency; "build" code runs on the builder, but is trusted too.
                if array(&dependency["dep_kinds"]).any(|kind| kind["kind"] != "dev") {
                    edges.insert(names[text(&dependency["pkg"])].to_owned());
                }
            }
        }
        graph
    }

    /// How `from` reaches a package that `wanted` accepts, one crate after the other.
    fn path(&self, from: &str, wanted: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        assert!(
            self.packages.contains(from),
            "no crate {from} in the workspace: correct this test"
        );
        let mut seen = BTreeSet::from([from.to_owned()]);
        let mut paths = vec![vec![from.to_owned()]];
        while let Some(path) = paths.pop() {
            for next in &self.shipped[path.last().expect("a path has a start")] {
                let longer = || path.iter().cloned().chain([next.clone()]).collect();
                if wanted(next) {
                    return Some(longer());
                }
                if seen.insert(next.clone()) {
                    paths.push(longer());
                }
            }
        }
        None
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value
        .as_array()
        .expect("a list in the output of cargo metadata")
        .iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string in the output of cargo metadata")
}

fn graphs() -> &'static [Graph] {
    static GRAPHS: OnceLock<Vec<Graph>> = OnceLock::new();
    GRAPHS.get_or_init(|| PLATFORMS.iter().map(|platform| Graph::of(platform)).collect())
}

fn speaks_kubernetes(name: &str) -> bool {
    name == "kube" || name.starts_with("kube-") || name == "k8s-openapi" || name == "trawl-api"
}

#[test]
fn no_tls_but_rustls_with_ring_is_anywhere_in_the_tree() {
    for graph in graphs() {
        let found: Vec<_> = FOREIGN_TLS
            .iter()
            .filter(|name| graph.packages.contains(**name))
            .collect();
        assert!(
            found.is_empty(),
            "{found:?} came in; see `cargo tree --workspace -i {}`",
            found[0]
        );
        assert!(
            graph.packages.contains("ring"),
            "ring is gone, so this test looks at the wrong thing"
        );
    }
}

#[test]
fn crates_beside_the_packets_do_not_reach_a_kubernetes_client() {
    for graph in graphs() {
        for from in WITHOUT_KUBERNETES {
            if let Some(path) = graph.path(from, speaks_kubernetes) {
                panic!("{from} must not know Kubernetes, but does: {}", path.join(" -> "));
            }
        }
    }
}

#[test]
fn the_graph_shows_who_does_reach_a_kubernetes_client() {
    for graph in graphs() {
        for from in [
            "trawl-operator",
            "trawl-reporter",
            "trawl-sensor",
            "trawl-gateway",
            "trawlctl",
        ] {
            assert!(
                graph.path(from, speaks_kubernetes).is_some(),
                "{from} should use kube"
            );
        }
    }
}
