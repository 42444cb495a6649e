//! The command line, led by the gateway to a real S3 server.

mod line;
#[path = "../../trawl-gateway/tests/support/mod.rs"]
mod support;

use line::{Proxy, capture_file, trawlctl};
use support::s3::S3;

#[tokio::test(flavor = "multi_thread")]
async fn a_download_from_s3_goes_on_over_a_new_link_when_the_store_breaks_off() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let path = Proxy::start(S3::address(), vec![None, Some(1_500_000), None], None).await;
    let direct = S3::from_env(None);
    let broken = S3::from_env(Some(path.url()));
    let site = broken.site().await;
    site.analyst("ana").await;
    let token = site.dir.path().join("token");
    std::fs::write(&token, site.token("ana").await).expect("token");
    let content = capture_file(60_000);
    let uid = direct.ready(&site, "good", &content).await;

    let output = site.dir.path().join("good.pcapng");
    let mut command = trawlctl();
    command
        .args(["-n", &site.namespace, "capture", "download", "good", "-o"])
        .arg(&output);
    command
        .args(["--gateway", &site.gateway.url(), "--ca"])
        .arg(&site.certificates.ca);
    command.args(["--token-exec", &format!("cat {}", token.display())]);
    let done = line::run(command).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("going on at"), "{done:?}");
    assert!(
        !done.err.contains("X-Amz-") && !done.err.contains(&uid),
        "no link is shown: {}",
        done.err
    );
    assert!(std::fs::read(&output).expect("file") == content);
    site.end().await;
}
