//! Commands that need no cluster, on files that are right, wrong, or meant to harm.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::line::{Done, capture_file, run, run_with_input, trawlctl};

fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples")
}

async fn call(args: &[&str]) -> Done {
    let mut command = trawlctl();
    command.args(args);
    run(command).await
}

async fn lint(text: &str, args: &[&str]) -> Done {
    let mut command = trawlctl();
    command.args(["lint", "-"]).args(args);
    run_with_input(command, text).await
}

const JOB: &str = "apiVersion: trawl.cloud/v1alpha1
kind: CaptureJob
metadata: {name: x}
spec: {tapRef: {name: t}, targetNode: node-1, duration: 1m, maxSize: 1Mi, filter: tcp}
";

#[tokio::test]
async fn every_sample_is_sound_as_directory_as_file_and_as_json() {
    let directory = samples();
    let done = call(&["lint", directory.to_str().expect("path")]).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("7 checked, all sound"), "{}", done.out);
    assert!(
        done.err
            .contains("CapturePolicy/on-high-severity-alert: spec.armed: "),
        "{}",
        done.err
    );
    let file = directory.join("networktap-mirror.yaml");
    let done = call(&["lint", file.to_str().expect("path"), "-o", "json"]).await;
    let report: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!((done.code, &report["refused"]), (0, &Value::from(0)));
    assert_eq!(report["documents"][0]["kind"], "NetworkTap");
    let json = serde_json::to_string(&serde_saphyr::from_str::<Value>(JOB).expect("YAML")).expect("JSON");
    assert_eq!(lint(&json, &[]).await.code, 0);
}

#[tokio::test]
async fn problems_are_lines_that_name_file_document_object_and_field() {
    let text = format!(
        "# nothing\n---\n{JOB}---\n{}---\napiVersion: v1\nkind: Namespace\n---\n{}",
        JOB.replace("1Mi", "2Gi").replace("name: x", "name: second"),
        JOB.replace("filter: tcp", "filter: host secretword")
            .replace("duration", "durration")
    );
    let done = lint(&text, &[]).await;
    assert_eq!(done.code, 1, "{done:?}");
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(
        lines[0].starts_with("-:2 CaptureJob/second: spec.maxSize: "),
        "{lines:?}"
    );
    assert!(lines[0].contains("1Gi"), "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|l| l.starts_with("-:4 CaptureJob/x: spec.durration: is no field here")),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"-:4 CaptureJob/x: spec.duration: is required"),
        "{lines:?}"
    );
    assert!(
        done.err.contains("2 of 3 would be refused") && !format!("{done:?}").contains("secretword"),
        "{done:?}"
    );
}

#[tokio::test]
async fn lists_are_opened_and_the_rules_of_an_installation_can_be_given() {
    let item = JOB.replace('\n', "\n  ");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}", item.trim_end());
    let done = lint(&list, &["--retention-ceiling", "10d"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("lowered to 10d"), "{}", done.err);
    let long = JOB.replace("filter: tcp", "filter: tcp, retention: 11d");
    let done = lint(&long, &["--retention-ceiling", "10d"]).await;
    assert!(
        done.out.contains("spec.retention: must be from 1h to 10d"),
        "{done:?}"
    );
    let elsewhere = JOB.replace("{name: x}", "{name: x, namespace: trawl-system}");
    assert_eq!(lint(&elsewhere, &[]).await.code, 0);
    let done = lint(&elsewhere, &["-n", "other"]).await;
    assert!(done.out.contains("metadata.namespace: must be other"), "{done:?}");
}

#[tokio::test]
async fn a_word_that_yaml_reads_as_something_else_is_refused_with_advice() {
    let done = lint(&JOB.replace("node-1", "n"), &[]).await;
    assert!(
        done.out
            .contains("spec.targetNode: must be a text, not true or false; put it in quotes"),
        "{done:?}"
    );
}

#[tokio::test]
async fn checking_nothing_is_no_success() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().to_str().expect("path");
    for text in ["", "---\n", "# only words\n", "apiVersion: v1\nkind: Secret\n"] {
        let done = lint(text, &[]).await;
        assert!(
            done.code == 1 && done.err.contains("nothing was checked"),
            "{done:?}"
        );
    }
    let done = call(&["lint", path]).await;
    assert!(
        done.code == 2 && done.err.contains("no .yaml, .yml or .json file"),
        "{done:?}"
    );
    let done = call(&["lint", "/nonexistent.yaml"]).await;
    assert!(
        done.code == 2 && done.err.contains("cannot read /nonexistent.yaml"),
        "{done:?}"
    );
    assert_eq!(call(&["lint"]).await.code, 2);
}

#[tokio::test]
async fn manifests_that_are_none_or_are_meant_to_harm_are_refused_with_their_place() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    let deep = "[".repeat(100_000);
    let many = "---\na: 1\n".repeat(5000);
    for text in [
        "a: [1",
        "a: 1\na: 2\n",
        "a: b: c",
        "\u{1}",
        "{",
        bomb,
        &deep,
        &many,
    ] {
        let done = lint(text, &[]).await;
        assert_eq!(done.code, 1, "{:?}", done.err);
        assert!(
            done.out.starts_with("-:1 -/-: document: is not YAML or JSON"),
            "{:?}",
            done.out
        );
        assert!(
            done.out.len() < 400 && !done.out.contains("Options"),
            "{}",
            done.out
        );
    }
    let mut command = trawlctl();
    let directory = tempfile::tempdir().expect("directory");
    let latin = directory.path().join("latin.yaml");
    fs::write(&latin, b"a: \xe9\n").expect("file");
    command.arg("lint").arg(&latin);
    let done = run(command).await;
    assert!(
        done.code == 1 && done.out.contains("is not UTF-8 from byte 3 on"),
        "{done:?}"
    );
    let huge = directory.path().join("huge.yaml");
    fs::File::create(&huge)
        .expect("file")
        .set_len(1 << 33)
        .expect("size");
    let mut command = trawlctl();
    command.arg("lint").arg(&huge);
    let done = run(command).await;
    assert!(done.code == 2 && done.err.contains("more than 8 MiB"), "{done:?}");
}

#[tokio::test]
async fn names_in_manifests_cannot_steer_the_terminal() {
    let text = JOB
        .replace("name: x", "name: \"\\e[31mx\"")
        .replace("filter:", "\"\\e[2J\":");
    let done = lint(&text, &[]).await;
    assert_eq!(done.code, 1);
    assert!(
        !done.out.contains('\u{1b}') && !done.err.contains('\u{1b}'),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_filter_is_explained_with_what_is_added_its_program_and_its_surprises() {
    let done = call(&["filter", "explain", "host  10.0.0.50 and tcp port 443"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    for words in [
        "host 10.0.0.50 and tcp port 443",
        "VLAN tags",
        "program (",
        "(000) ldh",
        "later fragments",
    ] {
        assert!(done.out.contains(words), "{words}: {}", done.out);
    }
    let done = call(&["filter", "explain", "(vlan and host 10.0.0.50) or host 10.0.0.50"]).await;
    assert!(
        done.out.contains("warnings:") && done.out.contains("untagged"),
        "{}",
        done.out
    );
    let done = call(&["filter", "explain", "--literal", "-o", "json", "port 53"]).await;
    let report: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(report["expansion"]["vlanTags"], 0);
    assert!(report["program"].as_array().is_some_and(|lines| lines.len() > 5));
    let done = call(&["filter", "explain", ""]).await;
    assert!(done.code == 0 && done.out.contains("every frame"), "{done:?}");
    assert_eq!(
        call(&["filter", "explain", "--literal", "--tunnels", "tcp"])
            .await
            .code,
        2
    );
}

#[tokio::test]
async fn a_filter_that_is_none_is_an_error_with_its_place_and_not_its_text() {
    for (text, words) in [
        ("host secretword", "byte 6"),
        ("tcp and udp", "rejects all packets"),
        ("tcp and", "filter"),
        ("secret\nword", "printable ASCII"),
    ] {
        for command in [vec!["explain", text], vec!["test", text, "/nonexistent"]] {
            let done = call(&[&["filter"], &command[..]].concat()).await;
            assert_eq!(done.code, 1, "{done:?}");
            assert!(
                done.err.contains(words) && !done.err.contains("secret"),
                "{done:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_filter_is_tested_on_every_packet_and_shown_for_the_first() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x.pcapng");
    fs::write(&path, capture_file(150)).expect("file");
    let path = path.to_str().expect("path");
    let done = call(&["filter", "test", "ip", path]).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.out.lines().count(), 101, "{}", done.out);
    assert!(
        done.out
            .ends_with("150 packets: 150 match, 0 do not; the first 100 are shown, see --limit\n")
    );
    let done = call(&["filter", "test", "--limit", "2", "arp or udp port 53", path]).await;
    assert!(
        done.out.contains("     2  no match  ") && done.out.contains("- udp port 53"),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("150 packets: 0 match, 150 do not"),
        "{}",
        done.out
    );
    let done = call(&["filter", "test", "-o", "json", "--limit", "1", "arp", path]).await;
    let report: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(
        (&report["packets"], &report["matched"], &report["complete"]),
        (&150.into(), &0.into(), &true.into())
    );
    assert_eq!(report["shown"][0]["tests"][0]["holds"], false);
    assert_eq!(report["shown"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_broken_capture_file_is_counted_up_to_its_break() {
    let whole = capture_file(10);
    let directory = tempfile::tempdir().expect("directory");
    let test = async |bytes: &[u8]| {
        let path = directory.path().join("x");
        fs::write(&path, bytes).expect("file");
        call(&[
            "filter",
            "test",
            "--limit",
            "0",
            "ip",
            path.to_str().expect("path"),
        ])
        .await
    };
    let done = test(&whole[..whole.len() - 5]).await;
    assert_eq!(done.code, 1);
    assert!(done.out.contains("9 packets: 9 match"), "{}", done.out);
    assert!(done.err.contains("ends in the middle of a block"), "{}", done.err);
    let mut damaged = whole.clone();
    let last = damaged.len() - 1;
    damaged[last] = 0xff;
    assert!(test(&damaged).await.err.contains("damaged"));
    for (bytes, words) in [
        (&b""[..], "is empty"),
        (b"hello", "neither a pcapng nor a pcap"),
        (&[0x28, 0xb5, 0x2f, 0xfd, 0], "decompress it first"),
    ] {
        let done = test(bytes).await;
        assert!(done.code == 1 && done.err.contains(words), "{done:?}");
    }
    let done = call(&["filter", "test", "ip", directory.path().to_str().expect("path")]).await;
    assert!(done.code == 2 && done.err.contains("directory"), "{done:?}");
}

#[tokio::test]
async fn a_capture_is_not_asked_for_with_a_filter_that_is_none() {
    let done = call(&["capture", "create", "--tap", "t", "--filter", "host secretword"]).await;
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err.contains("--filter: filter, byte 6") && !done.err.contains("secretword"),
        "{}",
        done.err
    );
    assert!(!done.err.contains("kubeconfig"), "nobody was asked: {}", done.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_of_the_api_server_are_shown_with_what_was_done_and_with_what_was_refused() {
    use axum::{Router, http::StatusCode, routing::post};
    let answer = |body: String| {
        let refused = body.contains("refused");
        let headers = [(
            "warning",
            r#"299 - "spec.tapRef.name: there is no NetworkTap \"x\"""#,
        )];
        let status =
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not so","code":422}"#;
        if refused {
            (StatusCode::UNPROCESSABLE_ENTITY, headers, status.to_owned())
        } else {
            (StatusCode::CREATED, headers, body)
        }
    };
    let path = "/apis/trawl.cloud/v1alpha1/namespaces/trawl-system/capturejobs";
    let app = Router::new().route(path, post(move |body: String| async move { answer(body) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("port");
    let address = listener.local_addr().expect("address");
    let server = axum_server::from_tcp(listener.into_std().expect("listener")).expect("server");
    tokio::spawn(server.serve(app.into_make_service()));
    let directory = tempfile::tempdir().expect("directory");
    let kubeconfig = directory.path().join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'http://{address}'}}}}]\nusers: [{{name: a, user: {{}}}}]\n"
    );
    fs::write(&kubeconfig, text).expect("kubeconfig");
    let create = async |name: &str| {
        let config = kubeconfig.to_str().expect("path");
        call(&[
            "--kubeconfig",
            config,
            "capture",
            "create",
            name,
            "--tap",
            "t",
            "--node",
            "n",
        ])
        .await
    };
    let warning = "warning: spec.tapRef.name: there is no NetworkTap \"x\"\n";
    let done = create("wanted").await;
    assert_eq!((done.code, done.err.as_str()), (0, warning), "{done:?}");
    assert_eq!(done.out, "capturejob.trawl.cloud/wanted created\n");
    let done = create("refused").await;
    assert!(
        done.code == 1 && done.err.starts_with(warning) && done.err.contains("not so"),
        "{done:?}"
    );
}
