//! `trawlctl capture download`: an artifact, whole and right, or no file at all.

mod answer;
mod content_range;
mod endpoint;
mod https;
mod part;
mod token;
mod transfer;

use std::path::Path;

use crate::{
    Failure,
    cli::{DownloadArgs, Place},
    connect::Cluster,
    output,
    table::bytes,
};

use endpoint::Endpoint;
use token::Source;

/// Fetches a capture, and its manifest when asked.
pub async fn run(place: &Place, args: DownloadArgs) -> Result<(), Failure> {
    // First of all: nothing is asked of anybody, and no token is spent, for a file that cannot be written.
    refuse_existing("--output", &args.output)?;
    if let Some(manifest) = &args.manifest {
        refuse_existing("--manifest", manifest)?;
    }
    let flags_suffice = args.gateway.is_some() && (args.token_stdin || args.token_exec.is_some());
    let cluster = match Cluster::load(place) {
        Ok(cluster) => Some(cluster),
        Err(_) if flags_suffice && place.namespace.is_some() => None,
        Err(failure) => return Err(failure),
    };
    let namespace = match (&cluster, &place.namespace) {
        (Some(cluster), _) => cluster.namespace.clone(),
        (None, Some(namespace)) => namespace.clone(),
        (None, None) => unreachable!("the kubeconfig is only optional when the namespace is given"),
    };
    let endpoint = endpoint::find(&args, cluster.as_ref(), &namespace, &args.name).await?;
    let source = Source::choose(&args, cluster.as_ref())?;
    let saved = transfer::capture(&endpoint, &source, &args.output).await?;
    output::line(&format!(
        "{}: {} bytes ({}), sha256 {} verified",
        args.output.display(),
        saved.size,
        bytes(saved.size),
        saved.sha256
    ))?;
    match &args.manifest {
        Some(path) => manifest(&endpoint, &source, path).await,
        None => Ok(()),
    }
}

async fn manifest(endpoint: &Endpoint, source: &Source, path: &Path) -> Result<(), Failure> {
    transfer::manifest(endpoint, source, path).await?;
    output::line(&format!("{}: manifest", path.display()))
}

fn refuse_existing(flag: &str, path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Err(Failure::usage(format!(
            "{flag}: `-` is no file, and only a file can be checked before it is used"
        ))
        .hint("name a file; one that is really called so is ./-"));
    }
    match path.symlink_metadata() {
        Ok(_) => Err(Failure::usage(format!(
            "{flag}: {} exists already and is not overwritten",
            path.display()
        ))
        .hint("choose another name, or move the file away")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::usage(format!("{flag}: {}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_output_is_refused_and_a_file_of_that_name_is_not() {
        assert!(refuse_existing("--output", Path::new("-")).is_err());
        assert!(refuse_existing("--output", Path::new("./-")).is_ok());
    }
}
