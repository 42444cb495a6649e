//! What is asked for, parsed once from path and headers into types that cannot be wrong.

use http::{HeaderMap, header};
use trawl_config::names::{is_dns_label, is_dns_subdomain};

use crate::refusal::{Code, Refusal};

/// Which object of a job is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Capture,
    Manifest,
}

impl Part {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Capture => "download",
            Self::Manifest => "manifest",
        }
    }
}

/// A path that passed the path check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    namespace: String,
    name: String,
    part: Part,
}

impl Target {
    /// Checks both names and that `namespace` is the one namespace that is served.
    pub fn parse(served: &str, namespace: &str, name: &str, part: Part) -> Result<Self, Refusal> {
        let bad = |message| Err(Refusal::new(Code::BadRequest, message));
        if !is_dns_label(namespace) {
            return bad(
                "namespace: not a Kubernetes namespace name (lower-case letters, digits, '-', at most 63)",
            );
        }
        if !is_dns_subdomain(name) {
            return bad(
                "name: not a Kubernetes object name (lower-case letters, digits, '-', '.', at most 253)",
            );
        }
        if namespace != served {
            return bad(
                "namespace: this gateway does not serve it; use the namespace in which Trawl is installed",
            );
        }
        Ok(Self {
            namespace: namespace.into(),
            name: name.into(),
            part,
        })
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn part(&self) -> Part {
        self.part
    }
}

/// Longest bearer token that is passed on for review, in bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// A bearer token. It has no `Display`, and `Debug` does not show it.
pub struct BearerToken(String);

impl BearerToken {
    /// Reads the one `Authorization: Bearer` header.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, Refusal> {
        let no = || {
            Refusal::new(
                Code::Unauthenticated,
                "a bearer token for the audience trawl-artifact-gateway is required",
            )
        };
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(no());
        };
        let text = value.to_str().map_err(|_| no())?;
        let (scheme, token) = text.split_once(' ').ok_or_else(no)?;
        let token = token.trim();
        let printable = token.bytes().all(|b| b.is_ascii_graphic());
        if !scheme.eq_ignore_ascii_case("bearer")
            || token.is_empty()
            || token.len() > MAX_TOKEN_BYTES
            || !printable
        {
            return Err(no());
        }
        Ok(Self(token.into()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BearerToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_names_in_the_served_namespace_pass_the_path_check() {
        let check = |ns: &str, name: &str| Target::parse("trawl-system", ns, name, Part::Capture).is_ok();
        assert!(check("trawl-system", "manual-abc12"));
        assert!(check("trawl-system", "a.b-c.9"));
        let long = "a".repeat(254);
        for name in [
            "", "..", "a/b", "A", "a..b", "-a", "a-", "a_b", "a\u{e9}", "%2e", &long,
        ] {
            assert!(!check("trawl-system", name), "{name:?}");
        }
        for namespace in ["", "kube-system", "trawl.system", "Trawl-system"] {
            assert!(!check(namespace, "a"), "{namespace:?}");
        }
    }

    #[test]
    fn only_one_plain_bearer_header_is_a_token() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().expect("header"));
            }
            BearerToken::from_headers(&headers)
                .map(|t| t.expose().to_owned())
                .ok()
        };
        assert_eq!(read(&["Bearer abc.def"]).as_deref(), Some("abc.def"));
        assert_eq!(read(&["bearer abc"]).as_deref(), Some("abc"));
        let long = format!("Bearer {}", "a".repeat(MAX_TOKEN_BYTES + 1));
        for values in [
            &[][..],
            &["Basic abc"],
            &["Bearer"],
            &["Bearer "],
            &["Bearer a b"],
            &["Bearer a", "Bearer b"],
            &[&long],
        ] {
            assert_eq!(read(values), None, "{values:?}");
        }
    }

    #[test]
    fn a_token_does_not_show_in_debug_output() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Bearer hush".parse().expect("header"));
        let token = BearerToken::from_headers(&headers).expect("token");
        assert!(!format!("{token:?}").contains("hush"));
    }
}
