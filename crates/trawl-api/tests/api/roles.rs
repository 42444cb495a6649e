//! What the shipped roles for people allow and deny, asked of the API server's own authorizer.

use std::{collections::BTreeSet, fs, path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::harness::{Api, in_namespace};

const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];
const READ: &str = "get list watch";
const WRITE: &str = "get list watch create update patch";
const ALL: &str = "get list watch create update patch delete";
const ASK: &str = "get list watch create";
const NONE: &str = "";

/// The table of the contract: file, role, and the verbs on taps, policies, jobs, `capturejobs/download`, mirrors.
const ROLES: [(&str, &str, [&str; 5]); 6] = [
    ("viewer", "trawl-viewer", [READ, READ, NONE, NONE, NONE]),
    ("analyst", "trawl-analyst", [READ, READ, ASK, "get", NONE]),
    ("operator", "trawl-user-operator", [WRITE, ALL, ASK, "get", NONE]),
    ("admin", "trawl-admin", [ALL, ALL, ALL, "get", NONE]),
    (
        "port-mirror/viewer",
        "trawl-port-mirror-viewer",
        [READ, NONE, NONE, NONE, READ],
    ),
    (
        "port-mirror/admin",
        "trawl-port-mirror-admin",
        [READ, NONE, NONE, NONE, ALL],
    ),
];
const RESOURCES: [(&str, &str); 5] = [
    ("networktaps", ""),
    ("capturepolicies", ""),
    ("capturejobs", ""),
    ("capturejobs", "download"),
    ("portmirrors", ""),
];
/// What no person gets, by any role.
const NOBODY: [(&str, &str, &str); 14] = [
    ("trawl.cloud", "networktaps", "status"),
    ("trawl.cloud", "capturepolicies", "status"),
    ("trawl.cloud", "capturejobs", "status"),
    ("trawl.cloud", "portmirrors", "status"),
    ("trawl.cloud", "networktaps", "finalizers"),
    ("trawl.cloud", "capturejobs", "finalizers"),
    ("trawl.cloud", "networktaps", "download"),
    ("", "secrets", ""),
    ("", "pods", ""),
    ("", "pods", "exec"),
    ("", "configmaps", ""),
    ("batch", "jobs", ""),
    ("rbac.authorization.k8s.io", "roles", ""),
    ("rbac.authorization.k8s.io", "rolebindings", ""),
];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn yaml(path: &str) -> Value {
    let path = directory().join(path);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Installs every role as it is shipped, each bound to a user of its own who is called like the role.
async fn install(api: &Api) {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", api.namespace);
    for (file, name, _) in ROLES {
        let role = yaml(&format!("rbac/{file}.yaml"));
        assert_eq!(role["metadata"]["name"], name, "{file}");
        api.post(&format!("{path}/roles"), &role).await.expect("the role");
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user(api, name)}],
        });
        api.post(&format!("{path}/rolebindings"), &binding)
            .await
            .expect("the binding");
    }
    // The authorizer learns of bindings by watching; the last one it learns of is the last one made.
    let (_, last, _) = ROLES[ROLES.len() - 1];
    for attempt in 0.. {
        if allowed(api, last, "get", ("trawl.cloud", "networktaps", "", "x")).await {
            return;
        }
        assert!(attempt < 200, "the authorizer never saw the binding of {last}");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// A name that no other test binds anything to.
fn user(api: &Api, role: &str) -> String {
    format!("{role}@{}", api.namespace)
}

async fn allowed(api: &Api, role: &str, verb: &str, target: (&str, &str, &str, &str)) -> bool {
    allowed_in(api, &api.namespace, role, verb, target).await
}

async fn allowed_in(
    api: &Api,
    namespace: &str,
    role: &str,
    verb: &str,
    (group, resource, subresource, name): (&str, &str, &str, &str),
) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user(api, role),
            "groups": ["system:authenticated"],
            "resourceAttributes": {
                "namespace": namespace,
                "group": group,
                "resource": resource,
                "subresource": subresource,
                "verb": verb,
                "name": name,
            },
        },
    });
    let answer = api
        .post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review)
        .await
        .expect("an answer of the authorizer");
    answer["status"]["allowed"].as_bool().expect("a decision")
}

#[tokio::test]
async fn each_role_allows_the_verbs_of_the_contracts_table_and_no_other() {
    in_namespace(|api| async move {
        install(&api).await;
        let (mut asked, mut wrong) = (0, vec![]);
        for (_, role, columns) in ROLES {
            for ((resource, subresource), verbs) in RESOURCES.into_iter().zip(columns) {
                let expected: BTreeSet<&str> = verbs.split_whitespace().collect();
                for verb in VERBS {
                    asked += 1;
                    let target = ("trawl.cloud", resource, subresource, "x");
                    let is = allowed(&api, role, verb, target).await;
                    if is != expected.contains(verb) {
                        let word = if is { "may" } else { "may not" };
                        wrong.push(format!("{role} {word} {verb} {resource}/{subresource}"));
                    }
                }
            }
        }
        assert_eq!(asked, ROLES.len() * RESOURCES.len() * VERBS.len());
        assert!(wrong.is_empty(), "{wrong:#?}");
    })
    .await;
}

#[tokio::test]
async fn no_role_writes_a_status_or_reaches_what_lies_beside_the_resources() {
    in_namespace(|api| async move {
        install(&api).await;
        let mut wrong = vec![];
        for (_, role, _) in ROLES {
            for (group, resource, subresource) in NOBODY {
                for verb in VERBS {
                    if allowed(&api, role, verb, (group, resource, subresource, "x")).await {
                        wrong.push(format!("{role} may {verb} {resource}/{subresource}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    })
    .await;
}

#[tokio::test]
async fn whoever_may_download_may_read_where_the_gateway_is_and_no_other_configuration() {
    in_namespace(|api| async move {
        install(&api).await;
        for (_, role, columns) in ROLES {
            let gateway = ("", "configmaps", "", "trawl-gateway");
            let other = ("", "configmaps", "", "trawl-config");
            assert_eq!(
                allowed(&api, role, "get", gateway).await,
                columns[3] == "get",
                "{role}"
            );
            assert!(!allowed(&api, role, "get", other).await, "{role}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_role_opens_nothing_in_another_namespace() {
    in_namespace(|api| async move {
        install(&api).await;
        for (_, role, _) in ROLES {
            for (resource, subresource) in RESOURCES {
                let target = ("trawl.cloud", resource, subresource, "x");
                assert!(
                    !allowed_in(&api, "default", role, "get", target).await,
                    "{role} {resource}"
                );
            }
        }
    })
    .await;
}

#[test]
fn the_components_ship_these_roles_and_no_overlay_ships_those_of_port_mirrors() {
    let listed = |path: &str, key: &str| -> BTreeSet<String> {
        let file = yaml(&format!("{path}/kustomization.yaml"));
        let entries = file[key].as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .map(|e| e.as_str().expect("a path").to_owned())
            .collect()
    };
    let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(
        listed("rbac", "resources"),
        set(&["viewer.yaml", "analyst.yaml", "operator.yaml", "admin.yaml"])
    );
    assert_eq!(
        listed("rbac/port-mirror", "resources"),
        set(&["viewer.yaml", "admin.yaml"])
    );
    for overlay in fs::read_dir(directory().join("overlays")).expect("overlays") {
        let name = overlay.expect("an overlay").file_name();
        let name = format!("overlays/{}", name.to_string_lossy());
        let mut parts = listed(&name, "components");
        assert!(parts.contains("../../rbac"), "{name} ships no roles for people");
        parts.extend(listed(&name, "resources"));
        assert!(
            !parts.iter().any(|p| p.contains("port-mirror")),
            "{name} lets somebody reconfigure switches by default"
        );
    }
}

#[test]
fn no_role_for_people_has_a_wildcard_or_a_cluster_wide_reach() {
    for (file, name, _) in ROLES {
        let role = yaml(&format!("rbac/{file}.yaml"));
        assert_eq!(role["kind"], "Role", "{name}");
        assert!(!role.to_string().contains('*'), "{name}");
    }
}
