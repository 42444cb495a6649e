//! The classifications that Suricata ships with.
//!
//! EVE prints only the description of a classification, while rules and people use its short name, so policies may
//! name either. Source: `etc/classification.config` of Suricata 7.0 and 8.0, which are equal.

/// One classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// Name in rules (`classtype`).
    pub short_name: &'static str,
    /// What `alert.category` says.
    pub description: &'static str,
    /// Severity of its alerts unless a rule sets its own.
    pub severity: u8,
}

const fn category(short_name: &'static str, description: &'static str, severity: u8) -> Category {
    Category {
        short_name,
        description,
        severity,
    }
}

/// The classification of that short name or description, exactly as it is written.
#[must_use]
pub fn known_category(name: &str) -> Option<&'static Category> {
    CATEGORIES
        .iter()
        .find(|c| c.short_name == name || c.description == name)
}

/// The classification whose short name or description differs from `name` in upper and lower case only.
#[must_use]
pub fn nearly_known_category(name: &str) -> Option<&'static Category> {
    CATEGORIES
        .iter()
        .find(|c| c.short_name.eq_ignore_ascii_case(name) || c.description.eq_ignore_ascii_case(name))
}

/// All of them.
pub const CATEGORIES: &[Category] = &[
    category("not-suspicious", "Not Suspicious Traffic", 3),
    category("unknown", "Unknown Traffic", 3),
    category("bad-unknown", "Potentially Bad Traffic", 2),
    category("attempted-recon", "Attempted Information Leak", 2),
    category("successful-recon-limited", "Information Leak", 2),
    category("successful-recon-largescale", "Large Scale Information Leak", 2),
    category("attempted-dos", "Attempted Denial of Service", 2),
    category("successful-dos", "Denial of Service", 2),
    category("attempted-user", "Attempted User Privilege Gain", 1),
    category("unsuccessful-user", "Unsuccessful User Privilege Gain", 1),
    category("successful-user", "Successful User Privilege Gain", 1),
    category("attempted-admin", "Attempted Administrator Privilege Gain", 1),
    category("successful-admin", "Successful Administrator Privilege Gain", 1),
    category("rpc-portmap-decode", "Decode of an RPC Query", 2),
    category("shellcode-detect", "Executable code was detected", 1),
    category("string-detect", "A suspicious string was detected", 3),
    category(
        "suspicious-filename-detect",
        "A suspicious filename was detected",
        2,
    ),
    category(
        "suspicious-login",
        "An attempted login using a suspicious username was detected",
        2,
    ),
    category("system-call-detect", "A system call was detected", 2),
    category("tcp-connection", "A TCP connection was detected", 4),
    category("trojan-activity", "A Network Trojan was detected", 1),
    category(
        "unusual-client-port-connection",
        "A client was using an unusual port",
        2,
    ),
    category("network-scan", "Detection of a Network Scan", 3),
    category("denial-of-service", "Detection of a Denial of Service Attack", 2),
    category(
        "non-standard-protocol",
        "Detection of a non-standard protocol or event",
        2,
    ),
    category("protocol-command-decode", "Generic Protocol Command Decode", 3),
    category(
        "web-application-activity",
        "access to a potentially vulnerable web application",
        2,
    ),
    category("web-application-attack", "Web Application Attack", 1),
    category("misc-activity", "Misc activity", 3),
    category("misc-attack", "Misc Attack", 2),
    category("icmp-event", "Generic ICMP event", 3),
    category("inappropriate-content", "Inappropriate Content was Detected", 1),
    category("policy-violation", "Potential Corporate Privacy Violation", 1),
    category(
        "default-login-attempt",
        "Attempt to login by a default username and password",
        2,
    ),
    category("targeted-activity", "Targeted Malicious Activity was Detected", 1),
    category("exploit-kit", "Exploit Kit Activity Detected", 1),
    category(
        "external-ip-check",
        "Device Retrieving External IP Address Detected",
        2,
    ),
    category("domain-c2", "Domain Observed Used for C2 Detected", 1),
    category("pup-activity", "Possibly Unwanted Program Detected", 2),
    category("credential-theft", "Successful Credential Theft Detected", 1),
    category("social-engineering", "Possible Social Engineering Attempted", 2),
    category("coin-mining", "Crypto Currency Mining Activity Detected", 2),
    category(
        "command-and-control",
        "Malware Command and Control Activity Detected",
        1,
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_category_is_known_by_its_short_name_and_by_what_eve_prints() {
        for name in ["trojan-activity", "A Network Trojan was detected"] {
            assert_eq!(known_category(name).expect(name).severity, 1);
        }
        assert_eq!(
            known_category("web-application-activity")
                .expect("known")
                .description,
            "access to a potentially vulnerable web application"
        );
        for name in [
            "",
            "Misc activity ",
            "misc attack",
            "Trojan-Activity",
            "local-class",
        ] {
            assert_eq!(known_category(name), None, "{name:?}");
        }
        assert_eq!(
            nearly_known_category("misc attack").expect("near").description,
            "Misc Attack"
        );
        assert_eq!(nearly_known_category("local-class"), None);
    }

    #[test]
    fn no_two_of_the_43_share_a_name() {
        let names: HashSet<&str> = CATEGORIES
            .iter()
            .flat_map(|c| [c.short_name, c.description])
            .collect();
        assert_eq!((CATEGORIES.len(), names.len()), (43, 86));
        assert!(CATEGORIES.iter().all(|c| (1..=4).contains(&c.severity)));
    }
}
