//! The kubeconfig, read as kubectl reads it, and the client that comes out of it.

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{ExecAuthCluster, ExecConfig, KubeConfigOptions, Kubeconfig},
};
use trawl_api::names::DEFAULT_NAMESPACE;

use crate::{Failure, cli::Place, warnings};

/// A kubeconfig with the chosen context.
pub struct Cluster {
    kubeconfig: Kubeconfig,
    context: String,
    pub namespace: String,
}

impl Cluster {
    /// Reads the kubeconfig. Nothing is asked over the network.
    pub fn load(place: &Place) -> Result<Self, Failure> {
        let kubeconfig = match &place.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let kubeconfig = kubeconfig.map_err(|error| {
            Failure::usage(format!("no usable kubeconfig: {error}"))
                .hint("name one with --kubeconfig FILE, set KUBECONFIG, or put it at ~/.kube/config")
        })?;
        let context = place
            .context
            .clone()
            .or_else(|| kubeconfig.current_context.clone());
        let context = context.filter(|name| !name.is_empty()).ok_or_else(|| {
            Failure::usage("the kubeconfig has no current context").hint("choose one with --context NAME")
        })?;
        let named = kubeconfig
            .contexts
            .iter()
            .find(|named| named.name == context)
            .ok_or_else(|| {
                let known: Vec<&str> = kubeconfig
                    .contexts
                    .iter()
                    .map(|named| named.name.as_str())
                    .collect();
                Failure::usage(format!("the kubeconfig has no context named \"{context}\""))
                    .hint(format!("its contexts are: {}", known.join(", ")))
            })?;
        let of_context = named
            .context
            .as_ref()
            .and_then(|context| context.namespace.clone());
        let namespace = place
            .namespace
            .clone()
            .or(of_context)
            .unwrap_or_else(|| DEFAULT_NAMESPACE.into());
        Ok(Self {
            context,
            namespace,
            kubeconfig,
        })
    }

    /// A client of the API server.
    pub async fn client(&self) -> Result<Client, Failure> {
        let options = KubeConfigOptions {
            context: Some(self.context.clone()),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(self.kubeconfig.clone(), &options).await;
        let mut config =
            config.map_err(|error| Failure::usage(format!("the kubeconfig cannot be used: {error}")))?;
        config.default_namespace.clone_from(&self.namespace);
        let client = ClientBuilder::try_from(config)
            .map_err(|error| Failure::usage(format!("the kubeconfig cannot be used: {error}")))?;
        Ok(client.with_layer(&warnings::shown()).build())
    }

    /// The exec plugin of the context's user, with the cluster where the plugin wants to know it.
    pub fn exec_plugin(&self) -> Option<ExecConfig> {
        let config = &self.kubeconfig;
        let context = config
            .contexts
            .iter()
            .find(|named| named.name == self.context)?
            .context
            .as_ref()?;
        let user = context.user.as_ref()?;
        let named = config.auth_infos.iter().find(|named| &named.name == user)?;
        let mut exec = named.auth_info.as_ref()?.exec.clone()?;
        if exec.provide_cluster_info {
            let named = config
                .clusters
                .iter()
                .find(|named| named.name == context.cluster)?;
            exec.cluster = ExecAuthCluster::try_from(named.cluster.as_ref()?).ok();
        }
        Some(exec)
    }
}

/// Loads the kubeconfig and connects.
pub async fn connect(place: &Place) -> Result<(Client, String), Failure> {
    let cluster = Cluster::load(place)?;
    Ok((cluster.client().await?, cluster.namespace))
}

/// An answer of the API server as a failure: `what` was tried on `name`.
pub fn api_failure(what: &str, namespace: &str, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => {
            let failure = Failure::new(format!("{what}: {}", status.message));
            match status.code {
                401 => failure.hint("the API server did not accept your credentials; check the kubeconfig"),
                403 => failure
                    .hint("ask for the right in this namespace, or choose another with -n or --context"),
                404 => failure.hint(format!("namespace: {namespace}; choose another with -n NAME")),
                500..600 => failure.hint(
                    "the cluster could not judge this, and nothing was changed; try again, and see whether trawl-operator \
                     runs: kubectl get pods -A -l app.kubernetes.io/name=trawl-operator",
                ),
                _ => failure,
            }
        }
        other => Failure::new(format!("{what}: {}", causes(other)))
            .hint("is the cluster reachable? try: kubectl version; choose another with --context NAME"),
    }
}

/// An error with its causes, each once.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}
