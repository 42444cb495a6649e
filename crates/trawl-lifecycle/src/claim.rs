//! Contention: two objects want the same thing, and the younger one yields.

use k8s_openapi::jiff::Timestamp;

/// Who wants it and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: String,
    pub uid: String,
    pub created_at: Timestamp,
}

impl Claim {
    /// Whether `self` must yield to `other`. The older holds; at equal age the smaller UID holds. Whatever phase
    /// the other is in does not matter.
    pub fn yields_to(&self, other: &Self) -> bool {
        (other.created_at, other.uid.as_str()) < (self.created_at, self.uid.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(uid: &str, second: i64) -> Claim {
        Claim { name: uid.into(), uid: uid.into(), created_at: Timestamp::from_second(second).unwrap() }
    }

    #[test]
    fn the_younger_claim_yields_and_a_tie_goes_to_the_smaller_uid() {
        assert!(claim("a", 2).yields_to(&claim("b", 1)));
        assert!(!claim("b", 1).yields_to(&claim("a", 2)));
        assert!(claim("b", 1).yields_to(&claim("a", 1)));
        assert!(!claim("a", 1).yields_to(&claim("b", 1)));
        assert!(!claim("a", 1).yields_to(&claim("a", 1)), "nobody yields to itself");
    }
}
