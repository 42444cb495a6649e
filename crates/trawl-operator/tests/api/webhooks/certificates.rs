//! Certificates of the webhooks, before, during and after their rotation.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use trawl_operator::webhook::certificates::plan::Limits;

use crate::support::hooks::{Hooks, say, tap};
use crate::support::world::eventually;

/// Creates and deletes without a break, and remembers every refusal.
struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU32>,
    workers: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(hooks: &Hooks) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let workers = (0..4).map(|worker| {
            let (user, stop, done) = (hooks.admin(), stop.clone(), done.clone());
            tokio::spawn(async move {
                let mut refused = Vec::new();
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let object = tap(&format!("load-{worker}-{n}"));
                    match user.create(&object).await {
                        Ok(_) => done.fetch_add(1, Ordering::Relaxed),
                        Err(refusal) => {
                            refused.push(refusal.message);
                            continue;
                        }
                    };
                    if let Err(refusal) = user.delete(&object).await {
                        refused.push(refusal.message);
                    }
                }
                refused
            })
        });
        let workers = workers.collect();
        Self { stop, done, workers }
    }

    /// Ends it; nothing may have been refused. Says how many requests went through.
    async fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            let refused = worker.await.unwrap();
            assert!(refused.is_empty(), "{} refused: {}", refused.len(), refused[0]);
        }
        self.done.load(Ordering::Relaxed)
    }

    /// Waits for more requests to have gone through.
    async fn more(&self) {
        let seen = self.done.load(Ordering::Relaxed);
        eventually("more requests", async || {
            (self.done.load(Ordering::Relaxed) > seen + 20).then_some(())
        })
        .await;
    }
}

async fn secret(hooks: &Hooks, key: &str) -> String {
    let api: Api<Secret> = Api::namespaced(hooks.admin.clone(), &hooks.namespace);
    let data = api
        .get("trawl-webhook-tls")
        .await
        .expect("the Secret")
        .data
        .unwrap_or_default();
    String::from_utf8(data.get(key).map(|v| v.0.clone()).unwrap_or_default()).expect("PEM")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_own_certificate_rotates_under_load_and_no_request_is_refused() {
    let mut hooks = Hooks::installed().await;
    // The certificate begins an hour early, for clocks that are behind, so two thirds are over 5 s from now.
    let hour = Duration::from_secs(3600);
    hooks.limits = Limits {
        life: hour / 2 + Duration::from_secs(8),
        grace: Duration::from_secs(3),
    };
    hooks.start().await;
    let first = secret(&hooks, "ca.crt").await;
    assert!(!first.is_empty());
    assert_eq!(hooks.bundle().await, first);
    let load = Load::start(&hooks);
    let second = eventually("another certificate", async || {
        let now = secret(&hooks, "ca.crt").await;
        (now != first).then_some(now)
    })
    .await;
    load.more().await;
    let bundle = hooks.bundle().await;
    assert!(
        bundle.contains(&first) && bundle.contains(&second),
        "both are trusted"
    );
    let done = load.end().await;
    say(&format!(
        "{done} requests went through while the operator's own certificate rotated"
    ));
    assert_eq!(secret(&hooks, "retired-ca.crt").await, first);
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_was_applied_anew_gets_its_bundle_back_and_a_restart_changes_nothing() {
    let mut hooks = Hooks::new().await;
    let bundle = hooks.bundle().await;
    hooks.forget_bundles().await;
    eventually("the bundle to be back", async || {
        (hooks.bundle().await == bundle).then_some(())
    })
    .await;
    eventually("answers", async || {
        hooks.analyst().create(&tap("back")).await.ok()
    })
    .await;
    hooks.stop().await;
    hooks.start().await;
    assert_eq!(
        hooks.bundle().await,
        bundle,
        "the kept certificate is served again"
    );
    hooks.analyst().create(&tap("again")).await.unwrap();
    hooks.end().await;
}

/// An authority, and certificates of it in a directory.
struct Files {
    authority: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Files {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { authority, issuer }
    }

    /// Certificate and key.
    fn pair(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// Writes the pair as the kubelet does: into a new directory, to which a link is then pointed in one step.
fn swap(directory: &Path, name: &str, pair: &(String, String)) {
    let data = directory.join(name);
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("tls.crt"), &pair.0).unwrap();
    std::fs::write(data.join("tls.key"), &pair.1).unwrap();
    let link = directory.join("..data_tmp");
    std::os::unix::fs::symlink(name, &link).unwrap();
    std::fs::rename(&link, directory.join("..data")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_again_when_they_change_under_load_and_a_broken_pair_leaves_the_old_one_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let authority = Files::new("first");
    swap(at, "..1", &authority.pair());
    for file in ["tls.crt", "tls.key"] {
        std::os::unix::fs::symlink(format!("..data/{file}"), at.join(file)).unwrap();
    }
    let mut hooks = Hooks::installed().await;
    hooks.files = Some(at.to_owned());
    hooks.inject(&authority.authority).await;
    hooks.start().await;
    let load = Load::start(&hooks);
    let mut before = hooks.presented().await;

    swap(at, "..2", &authority.pair());
    before = eventually("the swapped pair", async || {
        let now = hooks.presented().await;
        (now != before).then_some(now)
    })
    .await;
    load.more().await;

    // A key that does not belong to the certificate, as between two plain writes.
    let (certificate, key) = authority.pair();
    std::fs::remove_file(at.join("tls.crt")).unwrap();
    std::fs::write(at.join("tls.crt"), certificate).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(hooks.presented().await, before, "the old one is still served");
    load.more().await;
    std::fs::remove_file(at.join("tls.key")).unwrap();
    std::fs::write(at.join("tls.key"), key).unwrap();
    eventually("the written pair", async || {
        (hooks.presented().await != before).then_some(())
    })
    .await;
    load.more().await;
    let done = load.end().await;
    say(&format!(
        "{done} requests went through while the files changed three times"
    ));
    hooks.end().await;
}
