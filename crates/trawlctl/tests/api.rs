//! The command line against a real API server and a gateway in front of it.

#[path = "../../trawl-gateway/tests/support/mod.rs"]
mod support;

mod line;

use std::{
    io::Read,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use line::{Proxy, capture_file, trawlctl};
use serde_json::{Value, json};
use support::{Site, jobs::sha256};

/// A file that holds a fresh token of `account`.
async fn token_file(site: &Site, account: &str) -> (String, String) {
    let token = site.token(account).await;
    let path = site.dir.path().join(format!("{account}.token"));
    std::fs::write(&path, &token).expect("token");
    (format!("cat {}", path.display()), token)
}

/// `trawlctl capture download NAME` through `gateway`.
fn download(site: &Site, gateway: &str, name: &str, output: &Path, exec: &str) -> Command {
    let mut command = trawlctl();
    command.args([
        "-n",
        &site.namespace,
        "capture",
        "download",
        name,
        "--gateway",
        gateway,
        "--ca",
    ]);
    command
        .arg(&site.certificates.ca)
        .arg("-o")
        .arg(output)
        .args(["--token-exec", exec]);
    command.env("KUBECONFIG", support::kubeconfig_path());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_a_private_verified_file() {
    let site = Site::new().await;
    site.analyst("ana").await;
    let (exec, token) = token_file(&site, "ana").await;
    let content = capture_file(1000);
    site.ready("good", &content).await;
    let output = site.dir.path().join("good.pcapng");

    let done = line::run(download(&site, &site.gateway.url(), "good", &output, &exec)).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains(&sha256(&content)), "{done:?}");
    assert!(!done.err.contains(&token) && !done.out.contains(&token));
    assert!(
        !done.err.contains('\u{1b}'),
        "no terminal, no escape codes: {}",
        done.err
    );
    assert_eq!(std::fs::read(&output).expect("file"), content);
    assert_eq!(
        output.metadata().expect("file").permissions().mode() & 0o777,
        0o600
    );
    assert!(!output.with_extension("pcapng.part").exists());

    let mut verify = trawlctl();
    verify
        .args(["-n", &site.namespace, "capture", "verify"])
        .arg(&output)
        .args(["--job", "good"]);
    verify.env("KUBECONFIG", support::kubeconfig_path());
    let verified = line::run(verify).await;
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(verified.out.contains("packets:       1000"), "{verified:?}");

    std::fs::write(&output, &content[..content.len() - 40]).expect("damage");
    let mut verify = trawlctl();
    verify
        .args(["-n", &site.namespace, "capture", "verify"])
        .arg(&output)
        .args(["--job", "good", "-o", "json"]);
    verify.env("KUBECONFIG", support::kubeconfig_path());
    let damaged = line::run(verify).await;
    assert_eq!(damaged.code, 1, "{damaged:?}");
    let report: Value = serde_json::from_str(&damaged.out).expect("JSON");
    assert_eq!(report["verified"], false);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_breaks_off_goes_on_where_it_stopped() {
    let site = Site::new().await;
    site.analyst("ana").await;
    let (exec, _) = token_file(&site, "ana").await;
    let content = capture_file(60_000);
    site.ready("good", &content).await;
    let output = site.dir.path().join("good.pcapng");
    // Cut in the middle, twice; the third connection is left alone.
    let proxy = Proxy::start(site.gateway.address, vec![Some(1_500_000), Some(1_000_000)], None).await;
    let done = line::run(download(&site, &proxy.url(), "good", &output, &exec)).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.matches("going on at").count() >= 2, "{}", done.err);
    assert!(std::fs::read(&output).expect("file") == content);
    assert!(
        proxy.carried() < content.len() as u64 + 1_000_000,
        "nothing was fetched twice: {}",
        proxy.carried()
    );
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_whose_process_dies_is_taken_up_by_the_next_one() {
    let site = Site::new().await;
    site.analyst("ana").await;
    let (exec, token) = token_file(&site, "ana").await;
    let content = capture_file(60_000);
    site.ready("good", &content).await;
    let output = site.dir.path().join("good.pcapng");
    let part = site.dir.path().join("good.pcapng.part");
    let slow = Proxy::start(site.gateway.address, Vec::new(), Some(Duration::from_millis(20))).await;
    let mut child = download(&site, &slow.url(), "good", &output, &exec)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    wait_until(|| part.metadata().is_ok_and(|meta| meta.len() > 200_000)).await;

    // While it runs, nobody on this machine can read the token off it.
    let proc = Path::new("/proc").join(child.id().to_string());
    for place in ["cmdline", "environ"] {
        let mut bytes = Vec::new();
        std::fs::File::open(proc.join(place))
            .expect("proc")
            .read_to_end(&mut bytes)
            .expect("proc");
        assert!(
            !bytes.is_empty() && !String::from_utf8_lossy(&bytes).contains(&token),
            "{place}"
        );
    }
    let second = line::run(download(&site, &slow.url(), "good", &output, &exec)).await;
    assert_eq!(
        second.code, 2,
        "one unfinished file is not written by two: {second:?}"
    );
    child.kill().expect("kill");
    child.wait().expect("wait");
    let left = part.metadata().expect("part").len();
    assert!(left > 0 && left < content.len() as u64 && !output.exists());

    let direct = Proxy::start(site.gateway.address, Vec::new(), None).await;
    let done = line::run(download(&site, &direct.url(), "good", &output, &exec)).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(std::fs::read(&output).expect("file") == content);
    assert!(!part.exists());
    let rest = content.len() as u64 - left;
    assert!(
        direct.carried() < rest + 200_000,
        "only the rest was fetched: {} of {rest}",
        direct.carried()
    );

    // The rest of something else does not spoil the next download.
    let other = site.dir.path().join("other.pcapng");
    let unfinished = site.dir.path().join("other.pcapng.part");
    std::fs::write(&unfinished, b"something else").expect("part");
    std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(0o600)).expect("mode");
    let done = line::run(download(&site, &site.gateway.url(), "good", &other, &exec)).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(std::fs::read(&other).expect("file") == content);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_object_leaves_no_file() {
    let site = Site::new().await;
    site.analyst("ana").await;
    let (exec, _) = token_file(&site, "ana").await;
    let content = capture_file(100);
    let uid = site.ready("good", &content).await;
    let mut damaged = content.clone();
    damaged[content.len() / 2] ^= 1;
    for bytes in [&damaged[..], &content[..content.len() - 4], &[]] {
        std::fs::write(site.object_path(&uid), bytes).expect("damage");
        let output = site.dir.path().join("bad.pcapng");
        let done = line::run(download(&site, &site.gateway.url(), "good", &output, &exec)).await;
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.err.contains("is not the capture"), "{done:?}");
        assert!(!output.exists() && !site.dir.path().join("bad.pcapng.part").exists());
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_file_is_refused_before_a_token_is_spent() {
    let site = Site::new().await;
    let proxy = Proxy::start(site.gateway.address, Vec::new(), None).await;
    let (output, spent) = (
        site.dir.path().join("there.pcapng"),
        site.dir.path().join("spent"),
    );
    std::fs::write(&output, b"precious").expect("file");
    let exec = format!("touch {}; echo x", spent.display());
    let done = line::run(download(&site, &proxy.url(), "good", &output, &exec)).await;
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("exists already"), "{done:?}");
    assert_eq!(std::fs::read(&output).expect("file"), b"precious");
    assert!(!spent.exists(), "no token was asked for");
    assert_eq!(proxy.connections(), 0, "no request was made");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_gateway_says_what_to_do() {
    let site = Site::new().await;
    site.stranger("eve").await;
    site.analyst("ana").await;
    let (eve, _) = token_file(&site, "eve").await;
    let (ana, _) = token_file(&site, "ana").await;
    site.job("fresh").await;
    let output = site.dir.path().join("x.pcapng");
    for (name, exec, words) in [
        ("fresh", eve.as_str(), "capturejobs/download"),
        ("fresh", "echo garbage", "--audience trawl-artifact-gateway"),
        ("fresh", ana.as_str(), "capture watch"),
        ("absent", ana.as_str(), "capture list"),
    ] {
        let done = line::run(download(&site, &site.gateway.url(), name, &output, exec)).await;
        assert_eq!(done.code, 1, "{done:?}");
        assert!(
            done.err.contains(words) && done.err.contains("request "),
            "{words}: {done:?}"
        );
        assert!(!output.exists());
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_map_and_the_exec_plugin_stand_in_for_the_flags() {
    use k8s_openapi::api::core::v1::ConfigMap;
    let site = Site::new().await;
    site.analyst("ana").await;
    let (_, token) = token_file(&site, "ana").await;
    let content = capture_file(10);
    let uid = site.ready("good", &content).await;
    let manifest = site.object_path(&uid).with_file_name("manifest.json");
    std::fs::write(manifest, "{}").expect("manifest");
    let ca = std::fs::read_to_string(&site.certificates.ca).expect("ca");
    let map =
        json!({"metadata": {"name": "trawl-gateway"}, "data": {"url": site.gateway.url(), "ca.crt": ca}});
    let maps: kube::Api<ConfigMap> = kube::Api::namespaced(site.admin.clone(), &site.namespace);
    let map = serde_json::from_value(map).expect("ConfigMap");
    maps.create(&Default::default(), &map).await.expect("ConfigMap");

    // The plugin gives a token for the gateway; the API server is reached by the administrator's certificate.
    let credential = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}});
    let file = site.dir.path().join("credential.json");
    std::fs::write(&file, credential.to_string()).expect("credential");
    let text = std::fs::read_to_string(support::kubeconfig_path()).expect("kubeconfig");
    let mut kubeconfig: Value = serde_saphyr::from_str(&text).expect("kubeconfig");
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [file], "interactiveMode": "Never"});
    let reader = kubeconfig["users"][0]["name"].clone();
    kubeconfig["users"]
        .as_array_mut()
        .expect("users")
        .push(json!({"name": "plugin", "user": {"exec": exec}}));
    let cluster = kubeconfig["clusters"][0]["name"].clone();
    let context = |name: &str, user: Value| json!({"name": name, "context": {"cluster": cluster, "user": user, "namespace": site.namespace}});
    kubeconfig["contexts"] = json!([context("admin", reader), context("plugin", json!("plugin"))]);
    kubeconfig["current-context"] = json!("admin");
    let path = site.dir.path().join("kubeconfig.json");
    std::fs::write(&path, kubeconfig.to_string()).expect("kubeconfig");

    let (output, manifest) = (site.dir.path().join("a.pcapng"), site.dir.path().join("a.json"));
    let mut command = trawlctl();
    command
        .arg("--kubeconfig")
        .arg(&path)
        .args(["capture", "download", "good", "--token-stdin", "-o"])
        .arg(&output);
    command.arg("--manifest").arg(&manifest);
    let done = line::run_with_input(command, &token).await;
    assert_eq!(
        done.code, 0,
        "namespace of the context, ConfigMap, token from stdin: {done:?}"
    );
    assert_eq!(std::fs::read_to_string(manifest).expect("manifest"), "{}");

    let output = site.dir.path().join("b.pcapng");
    let mut command = trawlctl();
    command
        .arg("--kubeconfig")
        .arg(&path)
        .args(["--context", "plugin", "capture", "download", "good", "-o"]);
    command
        .arg(&output)
        .arg("--gateway")
        .arg(site.gateway.url())
        .arg("--ca")
        .arg(&site.certificates.ca);
    let done = line::run(command).await;
    assert_eq!(done.code, 0, "token from the exec plugin: {done:?}");

    let output = site.dir.path().join("c.pcapng");
    let mut command = trawlctl();
    command
        .arg("--kubeconfig")
        .arg(&path)
        .args(["capture", "download", "good", "-o"])
        .arg(&output);
    let done = line::run(command).await;
    assert_eq!(done.code, 2, "no source of a token: {done:?}");
    assert!(done.err.contains("--token-exec"), "{done:?}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_are_created_listed_and_watched_to_their_end() {
    let site = Site::new().await;
    let ask = |args: &[&str]| {
        let mut command = trawlctl();
        command
            .env("KUBECONFIG", support::kubeconfig_path())
            .args(["-n", &site.namespace])
            .args(args);
        command
    };
    let create = [
        "capture",
        "create",
        "--tap",
        "t",
        "--node",
        "n1",
        "--duration",
        "5s",
        "--max-size",
        "1Mi",
        "-o",
        "name",
    ];
    let created = line::run(ask(&create)).await;
    assert_eq!(created.code, 0, "{created:?}");
    let name = created
        .out
        .trim()
        .strip_prefix("capturejob.trawl.cloud/")
        .expect("name")
        .to_owned();
    assert!(name.starts_with("manual-"));
    let job = site.jobs().get(&name).await.expect("job");
    assert_eq!(
        (job.spec.duration.to_string(), job.spec.max_size.bytes()),
        ("5s".into(), 1 << 20)
    );

    let listed = line::run(ask(&["capture", "list"])).await;
    let lines: Vec<&str> = listed.out.lines().collect();
    assert!(
        lines[0].starts_with("NAME") && lines[0].contains("PHASE") && lines[1].starts_with(&name),
        "{listed:?}"
    );
    let names = line::run(ask(&["capture", "list", "-o", "name"])).await;
    assert_eq!(names.out.trim(), created.out.trim());
    let whole = line::run(ask(&["capture", "list", "-o", "json"])).await;
    let whole: Value = serde_json::from_str(&whole.out).expect("JSON");
    assert_eq!(whole["items"][0]["spec"]["duration"], "5s");
    let described = line::run(ask(&["capture", "describe", &name])).await;
    assert!(
        described.out.contains("Duration:") && described.out.contains("5s"),
        "{described:?}"
    );

    for (end, code) in [("Completed", 0), ("Failed", 1)] {
        site.status(&name, json!({"phase": "Pending"})).await;
        let watching = tokio::spawn(line::run(ask(&["capture", "watch", &name])));
        for phase in ["Capturing", "Storing", end] {
            tokio::time::sleep(Duration::from_millis(400)).await;
            site.status(&name, json!({"phase": phase, "packetCount": 7}))
                .await;
        }
        let watched = tokio::time::timeout(Duration::from_secs(20), watching)
            .await
            .expect("an end")
            .expect("run");
        assert_eq!(watched.code, code, "{watched:?}");
        for phase in ["Pending", "Capturing", "Storing, 7 packets", end] {
            assert!(watched.out.contains(phase), "{phase}: {watched:?}");
        }
    }

    let unknown = line::run(ask(&["capture", "watch", "absent"])).await;
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("capture list"), "{unknown:?}");
    let refused = line::run(ask(&[
        "capture",
        "create",
        "--tap",
        "t",
        "--node",
        "n1",
        "--duration",
        "9h",
    ]))
    .await;
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("duration"),
        "the API server's words are shown: {refused:?}"
    );
    let no_tap = line::run(ask(&["capture", "create", "--tap", "absent"])).await;
    assert!(no_tap.err.contains("tap list"), "{no_tap:?}");
    let taps = line::run(ask(&["tap", "list"])).await;
    assert_eq!((taps.code, taps.out.as_str()), (0, ""), "{taps:?}");
    site.end().await;
}

async fn wait_until(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "it did not happen in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
