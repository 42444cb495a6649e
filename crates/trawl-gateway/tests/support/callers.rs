//! ServiceAccounts, their rights, and tokens by TokenRequest.

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, PostParams},
    config::Kubeconfig,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{AUDIENCE, Site};

/// The gateway's own credential.
pub struct GatewayIdentity {
    pub kubeconfig: String,
    pub token: String,
}

impl Site {
    /// A ServiceAccount that may download every capture of the namespace.
    pub async fn analyst(&self, name: &str) {
        self.stranger(name).await;
        let rules =
            json!([{"apiGroups": ["trawl.cloud"], "resources": ["capturejobs/download"], "verbs": ["get"]}]);
        bind(&self.admin, &self.namespace, name, rules).await;
    }

    /// A ServiceAccount without any right.
    pub async fn stranger(&self, name: &str) {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), &self.namespace);
        create(&accounts, json!({"metadata": {"name": name}})).await;
    }

    /// Lets `name` see jobs and taps, and make jobs.
    pub async fn may_ask_for_captures(&self, name: &str) {
        let rules = json!([
            {"apiGroups": ["trawl.cloud"], "resources": ["capturejobs"], "verbs": ["create", "get", "list", "watch"]},
            {"apiGroups": ["trawl.cloud"], "resources": ["networktaps"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        ]);
        let (role, binding) = (format!("{name}-asks"), name);
        bind_as(&self.admin, &self.namespace, &role, binding, rules).await;
    }

    /// A token of `account` for the gateway's audience.
    pub async fn token(&self, account: &str) -> String {
        self.token_for(account, Some(AUDIENCE)).await
    }

    /// A token of `account` for `audience`, otherwise for the API server.
    pub async fn token_for(&self, account: &str, audience: Option<&str>) -> String {
        let token = request_token(&self.admin, &self.namespace, account, audience).await;
        self.tokens.lock().expect("tokens").push(token.clone());
        token
    }
}

async fn request_token(admin: &Client, namespace: &str, account: &str, audience: Option<&str>) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
    let audiences = audience.map(str::to_owned).into_iter().collect();
    let spec = TokenRequestSpec {
        audiences,
        expiration_seconds: Some(3600),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest {
        spec,
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await;
    answer.expect("TokenRequest").status.expect("token").token
}

/// What the gateway may do, and no more: two reviews in the cluster, reading jobs in the namespace.
pub async fn gateway_kubeconfig(
    admin: &Client,
    namespace: &str,
    mut kubeconfig: Kubeconfig,
    server: Option<&str>,
) -> GatewayIdentity {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
    create(&accounts, json!({"metadata": {"name": "gateway"}})).await;
    let rules = json!([{"apiGroups": ["trawl.cloud"], "resources": ["capturejobs"], "verbs": ["get"]}]);
    bind(admin, namespace, "gateway", rules).await;
    let rules = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]);
    create(
        &Api::<ClusterRole>::all(admin.clone()),
        json!({"metadata": {"name": namespace}, "rules": rules}),
    )
    .await;
    let binding = json!({
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "gateway", "namespace": namespace}],
    });
    create(&Api::<ClusterRoleBinding>::all(admin.clone()), binding).await;
    let token = request_token(admin, namespace, "gateway", None).await;
    if let (Some(server), Some(cluster)) = (server, kubeconfig.clusters[0].cluster.as_mut()) {
        cluster.server = Some(server.to_owned());
    }
    let mut text = serde_json::to_value(&kubeconfig).expect("kubeconfig");
    for user in text["users"].as_array_mut().expect("users") {
        user["user"] = json!({"token": token});
    }
    GatewayIdentity {
        kubeconfig: text.to_string(),
        token,
    }
}

pub async fn remove_cluster_binding(admin: &Client, name: &str) {
    let now = DeleteParams::default();
    Api::<ClusterRoleBinding>::all(admin.clone())
        .delete(name, &now)
        .await
        .expect("delete binding");
    Api::<ClusterRole>::all(admin.clone())
        .delete(name, &now)
        .await
        .expect("delete role");
}

async fn bind(admin: &Client, namespace: &str, account: &str, rules: Value) {
    bind_as(admin, namespace, account, account, rules).await;
}

async fn bind_as(admin: &Client, namespace: &str, role: &str, account: &str, rules: Value) {
    let roles: Api<Role> = Api::namespaced(admin.clone(), namespace);
    create(&roles, json!({"metadata": {"name": role}, "rules": rules})).await;
    let bindings: Api<RoleBinding> = Api::namespaced(admin.clone(), namespace);
    let binding = json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    });
    create(&bindings, binding).await;
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).expect("object");
    api.create(&PostParams::default(), &object).await.expect("create");
}
