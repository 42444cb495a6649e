//! Attempts until the bytes are there, and the check of what came.

use std::{path::Path, time::Duration};

use reqwest::{Client, Response, StatusCode, header};

use super::{
    answer::{self, Answer, Trouble},
    content_range,
    endpoint::Endpoint,
    https::{self, trouble},
    part::Part,
    token::Source,
};
use crate::{Failure, progress::Progress};

/// Attempts in a row that bring no byte.
const MAX_FRUITLESS: u32 = 5;
/// Attempts altogether.
const MAX_ATTEMPTS: u32 = 30;
/// Largest artifact: the ceiling of `maxSize`.
const MAX_BYTES: u64 = 1 << 30;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// What is in the file now.
#[derive(Debug)]
pub struct Saved {
    pub size: u64,
    pub sha256: String,
}

/// Fetches the capture into `output`: whole and with the announced hash, or not at all.
pub async fn capture(endpoint: &Endpoint, source: &Source, output: &Path) -> Result<Saved, Failure> {
    let client = https::client(endpoint)?;
    let mut part = Part::open(output)?;
    let progress = Progress::bytes("downloading");
    let mut announced = match fetch(&client, endpoint, source, &mut part, &progress).await {
        Ok(announced) => announced,
        Err(failure) => {
            part.discard_if_empty();
            return Err(failure);
        }
    };
    if part.sha256() != announced && part.has_inherited() {
        // The rest of an earlier download was of something else.
        progress.note("the unfinished file held other bytes; starting over");
        part.restart().map_err(|error| write_failure(&error))?;
        announced = fetch(&client, endpoint, source, &mut part, &progress).await?;
    }
    progress.finish();
    let (size, sha256) = (part.len(), part.sha256());
    if sha256 != announced {
        part.discard();
        return Err(Failure::new(format!(
            "what the store sent is not the capture: its sha256 is {sha256}, the cluster recorded {announced}"
        ))
        .hint("no file was kept; the stored object is damaged or was replaced: tell the administrator"));
    }
    part.publish()?;
    Ok(Saved { size, sha256 })
}

/// Attempts until the file is as long as the server says it is. Returns the announced hash.
async fn fetch(
    client: &Client,
    endpoint: &Endpoint,
    source: &Source,
    part: &mut Part,
    progress: &Progress,
) -> Result<String, Failure> {
    let mut announced = None;
    let (mut fruitless, mut pause) = (0, FIRST_PAUSE);
    for attempt in 1.. {
        let before = part.len();
        let (failure, wait) =
            match attempt_once(client, endpoint, source, part, &mut announced, progress).await {
                Ok(hash) => return Ok(hash),
                Err(Trouble::Final(failure)) => return Err(failure),
                Err(Trouble::Passing { failure, wait }) => (failure, wait),
            };
        if part.len() > before {
            (fruitless, pause) = (0, FIRST_PAUSE);
        } else {
            fruitless += 1;
        }
        if fruitless >= MAX_FRUITLESS || attempt >= MAX_ATTEMPTS {
            return Err(failure);
        }
        let wait = wait.unwrap_or(pause);
        progress.note(&format!("{failure}; trying again in {:.1} s", wait.as_secs_f64()));
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(Duration::from_secs(8));
    }
    unreachable!("the loop ends by return")
}

async fn attempt_once(
    client: &Client,
    endpoint: &Endpoint,
    source: &Source,
    part: &mut Part,
    announced: &mut Option<String>,
    progress: &Progress,
) -> Result<String, Trouble> {
    let (response, hash) = ask(client, endpoint, source, part.len()).await?;
    if announced.as_ref().is_some_and(|known| *known != hash) {
        return Err(Failure::new("the capture's recorded hash changed during the download").into());
    }
    *announced = Some(hash.clone());
    receive(response, part, progress).await?;
    Ok(hash)
}

/// Asks the gateway, and then the store where it points there. The token goes to the gateway alone.
async fn ask(
    client: &Client,
    endpoint: &Endpoint,
    source: &Source,
    from: u64,
) -> Result<(Response, String), Trouble> {
    let token = source.token().await?;
    let request = client.get(endpoint.capture.clone()).bearer_auth(token.expose());
    let response = with_range(request, from)
        .send()
        .await
        .map_err(unreachable_gateway)?;
    let (response, hash) = match answer::read(response, &endpoint.capture).await? {
        Answer::Bytes { response, sha256 } => (response, sha256),
        Answer::Elsewhere { url, sha256 } => {
            let response = with_range(client.get(url), from).send().await;
            (
                response.map_err(|error| {
                    Trouble::passing(format!("the store cannot be reached: {}", trouble(error)))
                })?,
                sha256,
            )
        }
    };
    let hash =
        hash.ok_or_else(|| Failure::new("the gateway announced no hash, so nothing could be checked"))?;
    Ok((response, hash))
}

fn with_range(request: reqwest::RequestBuilder, from: u64) -> reqwest::RequestBuilder {
    if from == 0 {
        request
    } else {
        request.header(header::RANGE, format!("bytes={from}-"))
    }
}

fn unreachable_gateway(error: reqwest::Error) -> Trouble {
    let connect = error.is_connect();
    let failure = Failure::new(format!("the gateway cannot be reached: {}", trouble(error)));
    let hint = if connect {
        "check --gateway and --ca, and that this machine may connect to it"
    } else {
        "try again later"
    };
    Trouble::Passing {
        failure: failure.hint(hint),
        wait: None,
    }
}

/// Takes the body into the file, from where the server says that it begins.
async fn receive(mut response: Response, part: &mut Part, progress: &Progress) -> Result<(), Trouble> {
    let total = match response.status() {
        StatusCode::OK => {
            if part.len() > 0 {
                part.restart().map_err(|error| write_failure(&error))?;
            }
            response.content_length()
        }
        StatusCode::PARTIAL_CONTENT => {
            let range = range_header(&response).and_then(content_range::part);
            let (first, total) =
                range.ok_or_else(|| Failure::new("the server sent a part without saying which"))?;
            if first != part.len() {
                return Err(Failure::new("the server sent another part than the one asked for").into());
            }
            Some(total)
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let total = range_header(&response).and_then(content_range::unsatisfied);
            if total == Some(part.len()) {
                return Ok(());
            }
            part.restart().map_err(|error| write_failure(&error))?;
            return Err(Trouble::passing(
                "the unfinished file is longer than the capture; starting over",
            ));
        }
        status if status.is_server_error() => {
            return Err(Trouble::passing(format!("the store answered {status}")));
        }
        status => {
            return Err(Failure::new(format!("the store answered {status}"))
                .hint("try again; if it stays, tell the administrator")
                .into());
        }
    };
    if total.is_some_and(|total| total > MAX_BYTES) {
        return Err(too_large().into());
    }
    progress.begin(part.len(), total);
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                if part.len() + chunk.len() as u64 > total.unwrap_or(MAX_BYTES).min(MAX_BYTES) {
                    return Err(too_large().into());
                }
                part.append(&chunk).map_err(|error| write_failure(&error))?;
                progress.at(part.len());
            }
            Ok(None) => break,
            Err(error) => {
                return Err(Trouble::passing(format!(
                    "the download broke off: {}",
                    trouble(error)
                )));
            }
        }
    }
    if total.is_some_and(|total| part.len() < total) {
        return Err(Trouble::passing("the download broke off"));
    }
    Ok(())
}

fn too_large() -> Failure {
    Failure::new("the server sends more than a capture can be (1 GiB), or more than it announced")
}

fn write_failure(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write the file: {error}"))
        .hint("is there space on the disk? the same command goes on where it stopped")
}

fn range_header(response: &Response) -> Option<&str> {
    response.headers().get(header::CONTENT_RANGE)?.to_str().ok()
}

/// Fetches the manifest into `output`. It is small: one attempt, whole in memory.
pub async fn manifest(endpoint: &Endpoint, source: &Source, output: &Path) -> Result<(), Failure> {
    let client = https::client(endpoint)?;
    match manifest_once(&client, endpoint, source, output).await {
        Ok(()) => Ok(()),
        Err(Trouble::Final(failure) | Trouble::Passing { failure, .. }) => Err(failure),
    }
}

async fn manifest_once(
    client: &Client,
    endpoint: &Endpoint,
    source: &Source,
    output: &Path,
) -> Result<(), Trouble> {
    let token = source.token().await?;
    let request = client.get(endpoint.manifest.clone()).bearer_auth(token.expose());
    let response = request.send().await.map_err(unreachable_gateway)?;
    let mut response = match answer::read(response, &endpoint.manifest).await? {
        Answer::Bytes { response, .. } => response,
        Answer::Elsewhere { url, .. } => client
            .get(url)
            .send()
            .await
            .map_err(|error| Trouble::passing(trouble(error)))?,
    };
    if response.status() != StatusCode::OK {
        return Err(Failure::new(format!(
            "the store answered {} for the manifest",
            response.status()
        ))
        .into());
    }
    let mut part = Part::open(output)?;
    part.restart().map_err(|error| write_failure(&error))?;
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| Trouble::passing(trouble(error)))?
    {
        if part.len() + chunk.len() as u64 > trawl_artifact::manifest::MAX_MANIFEST_BYTES {
            part.discard();
            return Err(Failure::new("the manifest is larger than a manifest can be").into());
        }
        part.append(&chunk).map_err(|error| write_failure(&error))?;
    }
    Ok(part.publish()?)
}
