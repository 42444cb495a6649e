//! Many requests at once.

use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::support::hooks::{Hooks, named, say};

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_admissions_at_once_are_answered_in_time_and_each_is_recorded_once() {
    let hooks = Hooks::new().await;
    // Connections and caches are warm before the clock runs.
    hooks
        .admin()
        .create(&named("capturejob-manual", "warm"))
        .await
        .unwrap();
    let begin = Instant::now();
    let all = (0..500).map(|n| {
        let user = hooks.admin();
        tokio::spawn(async move {
            let mut job = named("capturejob-manual", &format!("load-{n}"));
            job["spec"]["filter"] = format!("host 10.0.{}.{} and tcp port 443", n / 250, n % 250).into();
            let start = Instant::now();
            user.create(&job).await.map(|_| start.elapsed())
        })
    });
    let mut times: Vec<Duration> = Vec::new();
    for outcome in join_all(all).await {
        times.push(outcome.unwrap().unwrap_or_else(|e| panic!("{}", e.message)));
    }
    let whole = begin.elapsed();
    times.sort();
    let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e3;
    say(&format!(
        "500 concurrent admissions (mutating, validating, recorded): p50 {:.0} ms, p95 {:.0} ms, p99 {:.0} ms, all in {:.0} ms",
        at(50),
        at(95),
        at(99),
        whole.as_secs_f64() * 1e3
    ));
    assert!(
        at(95) < 20_000.0,
        "p95 is as long as both webhooks may take together: {} ms",
        at(95)
    );
    let records = hooks.records();
    assert_eq!(
        records
            .iter()
            .filter(|r| r.entry.resource.name.starts_with("load-"))
            .count(),
        500
    );
    hooks.end().await;
}
