//! Where the gateway is, and whom to trust.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use reqwest::{Certificate, Url};

use crate::{
    Failure,
    cli::DownloadArgs,
    connect::{Cluster, causes},
};

/// ConfigMap in the namespace that tells where the gateway is.
const DISCOVERY: &str = "trawl-gateway";

/// The gateway's URLs of one capture, and the only authorities that are trusted.
#[derive(Debug)]
pub struct Endpoint {
    pub capture: Url,
    pub manifest: Url,
    /// `None`: those of this machine.
    pub authorities: Option<Vec<Certificate>>,
}

/// From the flags, or from the ConfigMap where flags are absent.
pub async fn find(
    args: &DownloadArgs,
    cluster: Option<&Cluster>,
    namespace: &str,
    name: &str,
) -> Result<Endpoint, Failure> {
    let (base, ca) = match (&args.gateway, cluster) {
        (Some(url), _) => (url.clone(), None),
        (None, Some(cluster)) => discover(cluster, namespace).await?,
        (None, None) => return Err(Failure::usage("--gateway is needed without a kubeconfig")),
    };
    let ca = match &args.ca {
        Some(path) => Some(
            std::fs::read(path)
                .map_err(|error| Failure::usage(format!("--ca: cannot read {}: {error}", path.display())))?,
        ),
        None => ca,
    };
    let authorities = ca.map(|pem| authorities(&pem)).transpose()?;
    let base = parse_base(&base)?;
    Ok(Endpoint {
        capture: below(&base, namespace, name, "download")?,
        manifest: below(&base, namespace, name, "manifest")?,
        authorities,
    })
}

async fn discover(cluster: &Cluster, namespace: &str) -> Result<(String, Option<Vec<u8>>), Failure> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await?, namespace);
    let advice = "give --gateway URL and --ca FILE, or ask the administrator for the ConfigMap trawl-gateway \
                  with the keys url and ca.crt";
    let found = maps.get_opt(DISCOVERY).await.map_err(|error| {
        let what = format!(
            "the ConfigMap {DISCOVERY} in namespace {namespace} cannot be read: {}",
            causes(&error)
        );
        Failure::new(what).hint(advice)
    })?;
    let mut data = found.and_then(|map| map.data).ok_or_else(|| {
        Failure::usage(format!(
            "there is no ConfigMap {DISCOVERY} in namespace {namespace}"
        ))
        .hint(advice)
    })?;
    let url = data.remove("url").ok_or_else(|| {
        Failure::usage(format!(
            "the ConfigMap {DISCOVERY} in namespace {namespace} has no key url"
        ))
        .hint(advice)
    })?;
    Ok((url, data.remove("ca.crt").map(String::into_bytes)))
}

fn parse_base(text: &str) -> Result<Url, Failure> {
    let bad = |problem| {
        Failure::usage(format!("--gateway: {problem}")).hint("for example https://trawl.example.org")
    };
    let url = Url::parse(text.trim()).map_err(|error| bad(format!("not a URL: {error}")))?;
    if url.scheme() != "https" {
        return Err(bad(
            "must begin with https://, because a token is sent to it".into()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("must not hold credentials".into()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("must be without query and fragment".into()));
    }
    Ok(url)
}

fn below(base: &Url, namespace: &str, name: &str, leaf: &str) -> Result<Url, Failure> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| Failure::usage("--gateway: this URL cannot have a path"))?
        .pop_if_empty()
        .extend(["api", "v1", "namespaces", namespace, "capturejobs", name, leaf]);
    Ok(url)
}

fn authorities(pem: &[u8]) -> Result<Vec<Certificate>, Failure> {
    let bundle = Certificate::from_pem_bundle(pem).unwrap_or_default();
    if bundle.is_empty() {
        return Err(Failure::usage("--ca: it holds no PEM certificate")
            .hint("it must be a file of one or more BEGIN CERTIFICATE blocks"));
    }
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_is_not_https_is_refused_before_a_token_is_fetched() {
        for text in [
            "http://g",
            "g",
            "ftp://g",
            "https://u:p@g",
            "https://u@g",
            "https://g/?x=1",
            "https://g/#f",
            "",
        ] {
            assert!(parse_base(text).is_err(), "{text}");
        }
        assert!(parse_base(" https://g:8443/\n").is_ok());
    }

    #[test]
    fn names_are_escaped_into_one_path_segment_each() {
        let base = parse_base("https://g/trawl/").expect("base");
        let url = below(&base, "ns", "a/../b?c", "download").expect("url");
        assert_eq!(
            url.path(),
            "/trawl/api/v1/namespaces/ns/capturejobs/a%2F..%2Fb%3Fc/download"
        );
        assert_eq!(url.query(), None);
    }

    #[test]
    fn a_bundle_without_a_certificate_is_refused() {
        assert!(authorities(b"").is_err());
        assert!(authorities(b"-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n").is_err());
    }
}
