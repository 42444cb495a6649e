//! Events on our objects, for people who run `kubectl describe`. Losing one is not an error.

use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};

/// Publishes Events as one component.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// `component` is shown as the source of each Event.
    pub fn new(client: Client, component: &str) -> Self {
        let instance = std::env::var("POD_NAME").ok();
        Self {
            recorder: Recorder::new(
                client,
                Reporter {
                    controller: component.into(),
                    instance,
                },
            ),
        }
    }

    /// Publishes one Event on `object`; a failure is logged.
    pub async fn publish<K>(&self, object: &K, warning: bool, reason: &str, action: &str, note: &str)
    where
        K: Resource<DynamicType = ()>,
    {
        let event = Event {
            type_: if warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: reason.into(),
            note: (!note.is_empty()).then(|| trawl_api::clean(note, 1000)),
            action: action.into(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &object.object_ref(&())).await {
            tracing::warn!(object = object.name_any(), reason, %error, "an Event could not be published");
        }
    }
}
