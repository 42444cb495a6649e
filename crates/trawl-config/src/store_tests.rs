//! Every refusal of the store section names its field.

use super::*;

fn s3() -> S3Config {
    S3Config {
        endpoint: "https://s3.example:9000".into(),
        bucket: "trawl-evidence".into(),
        region: "us-east-1".into(),
        path_style: true,
        allow_http: false,
        ca_pem: None,
    }
}

fn fields(backend: StoreBackend) -> Vec<String> {
    let config = StoreConfig {
        profile: "local".into(),
        backend,
    };
    config.problems("store").into_iter().map(|p| p.field).collect()
}

#[test]
fn a_good_section_has_no_problems() {
    assert!(fields(StoreBackend::S3(s3())).is_empty());
    assert!(
        fields(StoreBackend::S3(S3Config {
            endpoint: "https://s3.example/".into(),
            ..s3()
        }))
        .is_empty()
    );
    let http = S3Config {
        endpoint: "http://127.0.0.1:7070".into(),
        allow_http: true,
        ..s3()
    };
    assert!(fields(StoreBackend::S3(http)).is_empty());
    assert!(
        fields(StoreBackend::Directory(DirectoryConfig {
            path: "/var/lib/trawl".into()
        }))
        .is_empty()
    );
}

#[test]
fn each_wrong_s3_field_is_named() {
    let table: [(S3Config, &str); 10] = [
        (
            S3Config {
                endpoint: "http://s3.example".into(),
                ..s3()
            },
            "endpoint",
        ),
        (
            S3Config {
                endpoint: "s3.example".into(),
                ..s3()
            },
            "endpoint",
        ),
        (
            S3Config {
                endpoint: "https://".into(),
                ..s3()
            },
            "endpoint",
        ),
        (
            S3Config {
                endpoint: "https://key:secret@s3.example".into(),
                ..s3()
            },
            "endpoint",
        ),
        (
            S3Config {
                endpoint: "https://s3.example/path".into(),
                ..s3()
            },
            "endpoint",
        ),
        (
            S3Config {
                bucket: "ab".into(),
                ..s3()
            },
            "bucket",
        ),
        (
            S3Config {
                bucket: "a/b/c".into(),
                ..s3()
            },
            "bucket",
        ),
        (
            S3Config {
                region: String::new(),
                ..s3()
            },
            "region",
        ),
        (
            S3Config {
                region: "us east".into(),
                ..s3()
            },
            "region",
        ),
        (
            S3Config {
                ca_pem: Some("/etc/ca.crt".into()),
                ..s3()
            },
            "caPem",
        ),
    ];
    for (config, field) in table {
        assert_eq!(
            fields(StoreBackend::S3(config.clone())),
            [format!("store.backend.s3.{field}")],
            "{config:?}"
        );
    }
}

#[test]
fn a_credential_in_the_endpoint_is_not_echoed() {
    let endpoint = "https://key:hush-hush@s3.example".into();
    let backend = StoreBackend::S3(S3Config { endpoint, ..s3() });
    let problems = StoreConfig {
        profile: "local".into(),
        backend,
    }
    .problems("store");
    assert!(!format!("{problems:?}").contains("hush-hush"));
}

#[test]
fn a_directory_is_absolute_and_not_everything() {
    for path in ["", "relative", "/", "/var/../etc"] {
        let backend = StoreBackend::Directory(DirectoryConfig { path: path.into() });
        assert_eq!(fields(backend), ["store.backend.directory.path"], "{path:?}");
    }
}

#[test]
fn unknown_keys_and_a_second_backend_are_refused() {
    for text in [
        "{profile: a, backend: {directory: {path: /a}}, extra: 1}",
        "{profile: a, backend: {directory: {path: /a, mode: 1}}}",
        "{profile: a, backend: {directory: {path: /a}, s3: {}}}",
        "{profile: a, backend: {gcs: {}}}",
    ] {
        assert!(serde_saphyr::from_str::<StoreConfig>(text).is_err(), "{text}");
    }
    assert!(serde_saphyr::from_str::<StoreConfig>("{profile: a, backend: {directory: {path: /a}}}").is_ok());
}
