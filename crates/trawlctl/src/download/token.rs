//! Where the bearer token comes from. Never from an argument and never from the environment: others could read those.

use std::{
    fmt,
    io::{IsTerminal, Read},
    process::{Command, Stdio},
};

use kube::config::ExecConfig;
use serde::Deserialize;
use serde_json::json;

use crate::{Failure, cli::DownloadArgs, connect::Cluster};

/// Longest token that is accepted, in bytes; also the most that is read of a command's output.
const MAX_TOKEN_BYTES: usize = 64 * 1024;

const ADVICE: &str =
    "for example --token-exec 'kubectl create token SERVICEACCOUNT --audience trawl-artifact-gateway'";

/// A bearer token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    fn parse(source: &str, text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        let token = match serde_json::from_str::<ExecCredential>(text) {
            Ok(credential) => credential.status.and_then(|status| status.token).ok_or_else(|| {
                Failure::new(format!("{source} gave an ExecCredential without a token")).hint(ADVICE)
            })?,
            Err(_) => text.to_owned(),
        };
        if token.is_empty() {
            return Err(Failure::new(format!("{source} gave no token")).hint(ADVICE));
        }
        if token.len() > MAX_TOKEN_BYTES || !token.bytes().all(|b| b.is_ascii_graphic()) {
            // What was read is not shown: it may be a token with something beside it.
            return Err(Failure::new(format!("{source} gave something that is not one token")).hint(ADVICE));
        }
        Ok(Self(token))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
struct ExecStatus {
    token: Option<String>,
}

/// How to get a token when one is needed.
pub enum Source {
    /// Read once.
    Given(Token),
    Shell(String),
    Plugin(Box<ExecConfig>),
}

impl Source {
    /// The flags' choice, otherwise the exec plugin of the kubeconfig. Standard input is read here.
    pub fn choose(args: &DownloadArgs, cluster: Option<&Cluster>) -> Result<Self, Failure> {
        if args.token_stdin {
            return Ok(Self::Given(read_stdin()?));
        }
        if let Some(command) = &args.token_exec {
            return Ok(Self::Shell(command.clone()));
        }
        let plugin = cluster.and_then(Cluster::exec_plugin).ok_or_else(|| {
            Failure::usage("no source for a token: the kubeconfig has no exec plugin")
                .hint(format!("give --token-stdin or --token-exec COMMAND; {ADVICE}"))
        })?;
        Ok(Self::Plugin(Box::new(plugin)))
    }

    /// A token now. Commands are run again each time, because a token may have expired between two attempts.
    pub async fn token(&self) -> Result<Token, Failure> {
        let (name, command) = match self {
            Self::Given(token) => return Ok(token.clone()),
            Self::Shell(text) => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(text);
                ("the command of --token-exec", command)
            }
            Self::Plugin(config) => ("the exec plugin of the kubeconfig", plugin_command(config)?),
        };
        let run = tokio::task::spawn_blocking(move || output_of(name, command));
        run.await
            .map_err(|error| Failure::new(format!("{name} could not be run: {error}")))?
    }
}

fn read_stdin() -> Result<Token, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::usage("--token-stdin: standard input is a terminal").hint(
            "pipe the token: kubectl create token SERVICEACCOUNT --audience trawl-artifact-gateway | trawlctl ...",
        ));
    }
    let mut text = String::new();
    let read = stdin
        .lock()
        .take(MAX_TOKEN_BYTES as u64 + 1024)
        .read_to_string(&mut text);
    read.map_err(|error| Failure::new(format!("--token-stdin: {error}")))?;
    Token::parse("standard input", &text)
}

fn plugin_command(config: &ExecConfig) -> Result<Command, Failure> {
    let name = config.command.as_deref().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::usage("the exec plugin of the kubeconfig names no command"))?;
    let mut command = Command::new(name);
    command.args(config.args.iter().flatten());
    for variable in config.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let version = config
        .api_version
        .as_deref()
        .unwrap_or("client.authentication.k8s.io/v1");
    let interactive = std::io::stdin().is_terminal();
    let mut spec = json!({"interactive": interactive});
    if let Some(cluster) = &config.cluster {
        spec["cluster"] = json!(cluster);
    }
    let info = json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec});
    command.env("KUBERNETES_EXEC_INFO", info.to_string());
    Ok(command)
}

fn output_of(name: &str, mut command: Command) -> Result<Token, Failure> {
    command
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    let mut child = command
        .spawn()
        .map_err(|error| Failure::new(format!("{name} could not be started: {error}")))?;
    let mut text = String::new();
    let read = match child.stdout.take() {
        Some(out) => out.take(MAX_TOKEN_BYTES as u64 + 1024).read_to_string(&mut text),
        None => Ok(0),
    };
    let status = child
        .wait()
        .map_err(|error| Failure::new(format!("{name}: {error}")))?;
    if !status.success() {
        return Err(Failure::new(format!("{name} failed: {status}")).hint("run it by itself to see why"));
    }
    read.map_err(|error| Failure::new(format!("{name}: {error}")))?;
    Token::parse(name, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_bare_or_as_an_exec_credential() {
        assert_eq!(
            Token::parse("x", " abc.def \n").expect("token").expose(),
            "abc.def"
        );
        let credential = r#"{"kind":"ExecCredential","status":{"token":"abc"}}"#;
        assert_eq!(Token::parse("x", credential).expect("token").expose(), "abc");
    }

    #[test]
    fn what_is_no_token_is_refused_and_not_repeated() {
        for text in [
            "",
            " \n",
            "two words",
            "a\nb",
            r#"{"status":{}}"#,
            r#"{"status":null}"#,
            "s\u{e9}cret",
        ] {
            let failure = Token::parse("x", text).expect_err("refused");
            assert!(
                text.trim().is_empty() || !failure.to_string().contains(text.trim()),
                "{text:?}"
            );
        }
        assert!(Token::parse("x", &"a".repeat(MAX_TOKEN_BYTES + 1)).is_err());
    }

    #[tokio::test]
    async fn a_command_that_fails_is_a_failure_even_when_it_printed_something() {
        let failure = Source::Shell("echo hush; exit 3".into())
            .token()
            .await
            .expect_err("failed");
        assert!(failure.to_string().contains("exit status: 3"), "{failure}");
        assert!(!failure.to_string().contains("hush"));
        let token = Source::Shell("printf abc".into()).token().await.expect("token");
        assert_eq!(token.expose(), "abc");
    }

    #[test]
    fn debug_output_does_not_show_the_token() {
        assert!(!format!("{:?}", Token("hush".into())).contains("hush"));
    }
}
