//! An authority that signed one certificate and forgot its key, and that certificate.

use std::sync::Arc;
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

/// Clocks of API servers may be this much behind ours.
const SKEW: Duration = Duration::from_secs(3600);

/// A serving certificate with its key, and the authority that vouches for it. The authority's own key is never kept:
/// each certificate has an authority of its own, and nobody can sign anything else with it.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// PEM.
    pub authority: String,
    /// PEM.
    pub certificate: String,
    /// PEM, secret.
    pub key: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

/// Keys do not get into logs.
impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pair({} to {})", self.not_before, self.not_after)
    }
}

/// Why there is no usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("not a certificate: {0}")]
    Parse(String),
    #[error("the certificate and its key do not belong together: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Pair {
    /// A new pair for `names` that is good for `life` from now on.
    pub fn make(names: &[String], now: Timestamp, life: Duration) -> Result<Self, PairError> {
        let (from, until) = (now - SKEW, now + life);
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.distinguished_name = called(&format!("trawl-webhook authority {now}"));
        let mut serving = CertificateParams::new(names)?;
        serving.distinguished_name = called("trawl-webhook");
        serving.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        serving.use_authority_key_identifier_extension = true;
        for params in [&mut authority, &mut serving] {
            let second = |t: Timestamp| {
                rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(t.as_second().max(0) as u64)
            };
            (params.not_before, params.not_after) = (second(from), second(until));
        }
        let (authority_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
        let root = authority.self_signed(&authority_key)?.pem();
        let certificate = serving.signed_by(&key, &Issuer::new(authority, authority_key))?;
        Self::parse(&root, &certificate.pem(), &key.serialize_pem())
    }

    /// A pair from PEM texts that belong together.
    pub fn parse(authority: &str, certificate: &str, key: &str) -> Result<Self, PairError> {
        let (root, own) = (validity(authority)?, validity(certificate)?);
        let pair = Self {
            authority: authority.into(),
            certificate: certificate.into(),
            key: key.into(),
            not_before: root.0.max(own.0),
            not_after: root.1.min(own.1),
        };
        pair.serving().map(|_| pair)
    }

    /// What the server presents.
    pub fn serving(&self) -> Result<Arc<rustls::ServerConfig>, PairError> {
        let pem = |e: rustls::pki_types::pem::Error| PairError::Parse(e.to_string());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(pem)?;
        let mut config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain.map_err(pem)?, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// The same for the server that we use.
    pub fn rustls(&self) -> Result<RustlsConfig, PairError> {
        Ok(RustlsConfig::from_config(self.serving()?))
    }

    /// Whether API servers that call the server by any of `names` accept the certificate.
    pub fn is_for(&self, names: &[String]) -> bool {
        let Ok(der) = CertificateDer::from_pem_slice(self.certificate.as_bytes()) else {
            return false;
        };
        let Ok(certificate) = rustls::server::ParsedCertificate::try_from(&der) else {
            return false;
        };
        names.iter().all(|name| {
            ServerName::try_from(name.as_str())
                .is_ok_and(|name| rustls::client::verify_server_name(&certificate, &name).is_ok())
        })
    }

    /// When two thirds of its life are over.
    pub fn rotate_at(&self) -> Timestamp {
        let life = self.not_after.duration_since(self.not_before);
        self.not_before + life * 2 / 3
    }
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// From when until when the first certificate of a PEM text is good.
pub fn validity(pem: &str) -> Result<(Timestamp, Timestamp), PairError> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| PairError::Parse(e.to_string()))?;
    let (_, certificate) =
        x509_parser::parse_x509_certificate(&der).map_err(|e| PairError::Parse(e.to_string()))?;
    let validity = certificate.validity();
    let time = |seconds| Timestamp::from_second(seconds).map_err(|e| PairError::Parse(e.to_string()));
    Ok((
        time(validity.not_before.timestamp())?,
        time(validity.not_after.timestamp())?,
    ))
}
