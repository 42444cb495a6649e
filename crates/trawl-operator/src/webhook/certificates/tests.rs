use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::client::Body;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::kept::Kept;
use super::pair::Pair;
use super::plan::{Limits, Step, carried_out, next, servable};

const HOUR: Duration = Duration::from_secs(3600);

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn limits() -> Limits {
    Limits {
        life: 90 * 24 * HOUR,
        grace: Duration::from_secs(60),
    }
}

fn pair(now: Timestamp) -> Result<Pair, super::pair::PairError> {
    Pair::make(&["trawl-webhook.trawl-system.svc".into()], now, limits().life)
}

/// A cluster in which nothing but the certificate happens.
struct World {
    kept: Kept,
    trusted: Vec<String>,
    now: Timestamp,
    /// Since when each authority has been in every bundle without a break.
    known: BTreeMap<String, Timestamp>,
    served: Vec<Pair>,
    steps: Vec<Step>,
}

impl World {
    fn new() -> Self {
        Self {
            kept: Kept::default(),
            trusted: vec![String::new(); 7],
            now: start(),
            known: BTreeMap::new(),
            served: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Takes steps until there is nothing to do. Every text goes through the Secret, as it does in life.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.kept = Kept::from_data(&self.kept.to_data());
            self.serve();
            let step = next(&self.kept, &self.trusted, self.now, limits());
            if step == Step::Wait {
                return;
            }
            self.steps.push(step);
            match step {
                Step::Trust => self.trusted.fill(self.kept.bundle(self.now)),
                _ => self.kept = carried_out(&self.kept, step, self.now, || pair(self.now)).unwrap(),
            }
        }
        panic!("it does not come to rest: {:?}", self.steps);
    }

    fn serve(&mut self) {
        let bundle = self
            .trusted
            .iter()
            .min_by_key(|t| t.len())
            .cloned()
            .unwrap_or_default();
        self.known
            .retain(|authority, _| bundle.contains(authority.as_str()));
        let pairs = [self.kept.serving.clone(), self.kept.next.clone().map(|n| n.pair)];
        for pair in pairs.into_iter().flatten() {
            if bundle.contains(&pair.authority) {
                self.known.entry(pair.authority).or_insert(self.now);
            }
        }
        let Some(pair) = servable(&self.kept, &self.trusted).cloned() else {
            return;
        };
        if self.served.last() != Some(&pair) {
            let known = self.known[&pair.authority];
            assert!(
                self.served.is_empty() || self.now.duration_since(known).unsigned_abs() >= limits().grace,
                "served at {} although API servers know it since {known} only",
                self.now
            );
            self.served.push(pair);
        }
    }

    fn later(&mut self, by: Duration) {
        self.now += by;
    }
}

#[test]
fn the_first_certificate_is_served_once_every_webhook_trusts_it() {
    let mut world = World::new();
    world.settle();
    assert_eq!(world.steps, [Step::Make, Step::Trust]);
    assert_eq!(world.served.len(), 1);
    world.trusted[3].clear();
    assert_eq!(servable(&world.kept, &world.trusted), None);
    world.settle();
    assert!(servable(&world.kept, &world.trusted).is_some());
}

#[test]
fn a_rotation_begins_at_two_thirds_of_the_life_and_the_old_authority_stays_until_its_end() {
    let mut world = World::new();
    world.settle();
    let old = world.served[0].clone();
    world.now = old.rotate_at() - Duration::from_secs(1);
    world.settle();
    assert_eq!(world.served.len(), 1);
    world.now = old.rotate_at();
    world.steps.clear();
    world.settle();
    assert_eq!(
        world.steps,
        [Step::Prepare, Step::Trust, Step::Note(Some(world.now))]
    );
    assert_eq!(world.served.len(), 1, "not before the grace period is over");
    world.later(limits().grace);
    world.settle();
    assert_eq!(world.served.len(), 2);
    world.now = old.not_after - Duration::from_secs(1);
    world.settle();
    assert!(world.trusted[0].contains(&old.authority));
    world.now = old.not_after;
    world.settle();
    assert!(!world.trusted[0].contains(&old.authority));
    assert!(world.kept.retired.is_empty());
}

#[test]
fn over_years_of_restarts_and_lost_bundles_nothing_is_served_too_early_or_after_its_end() {
    let mut world = World::new();
    // A small generator with a fixed seed; any sequence must do.
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for _ in 0..4000 {
        match random(100) {
            0 => world.trusted.fill(String::new()),
            1 => {
                let n = random(7) as usize;
                world.trusted[n] = "somebody else's\n".into();
            }
            2 => world.later(20 * 24 * HOUR),
            _ => world.later(Duration::from_secs(random(12 * 3600))),
        }
        world.settle();
        let serving = world.served.last().unwrap();
        assert!(serving.not_after > world.now);
        assert!(world.trusted.iter().all(|t| t.contains(&serving.authority)));
    }
    assert!(world.served.len() > 20, "{}", world.served.len());
}

#[test]
fn what_somebody_else_wrote_into_the_secret_is_replaced_unless_it_is_a_usable_pair() {
    let good = pair(start()).unwrap();
    let other = pair(start()).unwrap();
    let mut data = Kept {
        serving: Some(good),
        ..Kept::default()
    }
    .to_data();
    assert!(Kept::from_data(&data).serving.is_some());
    data.insert("tls.key".into(), ByteString(other.key.into_bytes()));
    assert_eq!(Kept::from_data(&data), Kept::default());
    data.insert("ca.crt".into(), ByteString(b"rubbish".to_vec()));
    data.insert("retired-ca.crt".into(), ByteString(vec![0xff, 0]));
    assert_eq!(next(&Kept::from_data(&data), &[], start(), limits()), Step::Make);
}

#[test]
fn a_certificate_that_ended_while_nobody_looked_is_made_anew_at_once() {
    let mut world = World::new();
    world.settle();
    world.later(200 * 24 * HOUR);
    world.steps.clear();
    world.kept = Kept::from_data(&world.kept.to_data());
    assert_eq!(next(&world.kept, &world.trusted, world.now, limits()), Step::Make);
    assert!(!format!("{:?}", world.kept).contains("PRIVATE KEY"));
}

#[tokio::test]
async fn a_bundle_goes_into_the_configuration_as_it_was_read_or_not_at_all() {
    let patches = Arc::new(Mutex::new(Vec::<Value>::new()));
    let seen = patches.clone();
    let server = tower::service_fn(move |request: http::Request<Body>| {
        let seen = seen.clone();
        async move {
            if request.method() == http::Method::PATCH {
                let body = request.into_body().collect_bytes().await.unwrap();
                seen.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            }
            let answer = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "trawl-cloud", "resourceVersion": "41"},
                "webhooks": [{"name": "one", "clientConfig": {}}],
            });
            Ok::<_, Infallible>(http::Response::new(Body::from(answer.to_string().into_bytes())))
        }
    });
    let client = kube::Client::new(server, "trawl-system");
    let cluster = Cluster::new(&client, "trawl-system", "trawl-webhook-tls", "trawl-cloud");
    let configured = cluster.configured().await.unwrap();
    cluster.trust(&configured, "an authority").await.unwrap();
    let patches = patches.lock().unwrap();
    assert_eq!(patches.len(), 2, "one for each configuration");
    for patch in patches.iter() {
        let version = json!({"op": "add", "path": "/metadata/resourceVersion", "value": "41"});
        assert!(patch.as_array().unwrap().contains(&version), "{patch}");
    }
}

#[test]
fn a_certificate_from_a_clock_that_was_ahead_is_made_anew_when_the_clock_is_right() {
    let mut world = World::new();
    world.later(300 * 24 * HOUR);
    world.settle();
    world.now = start();
    assert_eq!(next(&world.kept, &world.trusted, world.now, limits()), Step::Make);
    let kept = carried_out(&world.kept, Step::Make, world.now, || pair(world.now)).unwrap();
    assert!(kept.serving.unwrap().not_before <= world.now);
}

#[test]
fn a_pair_for_other_names_counts_as_not_there() {
    let kept = Kept {
        serving: Some(pair(start()).unwrap()),
        ..Kept::default()
    };
    let own = "trawl-webhook.trawl-system.svc".to_owned();
    assert!(kept.serving.as_ref().unwrap().is_for(std::slice::from_ref(&own)));
    assert_eq!(kept.clone().only_for(std::slice::from_ref(&own)), kept);
    let other = "trawl-webhook.elsewhere.svc".to_owned();
    assert_eq!(kept.clone().only_for(&[own, other]), Kept::default());
    let address = Pair::make(&["127.0.0.1".into()], start(), HOUR).unwrap();
    assert!(address.is_for(&["127.0.0.1".into()]));
}
