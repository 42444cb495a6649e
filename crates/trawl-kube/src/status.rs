//! Whether a status needs to be written at all.

use serde::Serialize;
use serde_json::Value;

/// Whether the stored status already says everything in `wanted`: the fields of `wanted` are equal, and none of the
/// `owned` top-level fields is stored that `wanted` leaves out. `conditions` are compared by type, so that those of other
/// writers do not matter.
pub fn is_unchanged(stored: &impl Serialize, wanted: &impl Serialize, owned: &[&str]) -> bool {
    let (Ok(Value::Object(stored)), Ok(Value::Object(wanted))) =
        (serde_json::to_value(stored), serde_json::to_value(wanted))
    else {
        return false;
    };
    owned.iter().all(|field| match (*field, stored.get(*field), wanted.get(*field)) {
        ("conditions", stored, Some(Value::Array(wanted))) => {
            let stored = stored.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            wanted.iter().all(|w| stored.contains(w))
        }
        (_, stored, wanted) => stored == wanted,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_unchanged;

    #[test]
    fn fields_and_conditions_of_other_writers_do_not_make_a_status_changed() {
        let stored = json!({"phase": "Pending", "startedAt": "x", "conditions": [{"type": "A"}, {"type": "B"}]});
        let owned = ["phase", "failure", "conditions"];
        assert!(is_unchanged(&stored, &json!({"phase": "Pending", "conditions": [{"type": "B"}]}), &owned));
        assert!(!is_unchanged(&stored, &json!({"phase": "Failed", "conditions": [{"type": "B"}]}), &owned));
        assert!(!is_unchanged(&stored, &json!({"phase": "Pending", "conditions": [{"type": "C"}]}), &owned));
    }

    #[test]
    fn an_owned_field_that_disappears_is_a_change() {
        let stored = json!({"phase": "Pending", "failure": {}});
        assert!(!is_unchanged(&stored, &json!({"phase": "Pending"}), &["phase", "failure"]));
    }
}
