//! What the gateway asks the API server: two reviews and one read.

use std::{fmt::Display, future::Future, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus},
    authorization::v1::{
        ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
    },
};
use kube::{Api, Client, api::PostParams};
use trawl_api::{
    CaptureJob,
    names::{GATEWAY_AUDIENCE, GROUP},
};

use crate::{
    judge::Identity,
    request::{BearerToken, Target},
};

/// A question that is not answered by then is an outage.
const PATIENCE: Duration = Duration::from_secs(10);

/// The API server, asked with the gateway's own identity.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
}

impl Cluster {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    pub async fn review_token(&self, token: &BearerToken) -> Result<TokenReviewStatus, String> {
        let spec = TokenReviewSpec {
            token: Some(token.expose().to_owned()),
            audiences: Some(vec![GATEWAY_AUDIENCE.to_owned()]),
        };
        let review = TokenReview {
            spec,
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = patiently("TokenReview", reviews.create(&PostParams::default(), &review)).await?;
        answer
            .status
            .ok_or_else(|| "TokenReview: no status in the answer".to_owned())
    }

    pub async fn review_access(
        &self,
        who: &Identity,
        target: &Target,
    ) -> Result<SubjectAccessReviewStatus, String> {
        let attributes = ResourceAttributes {
            group: Some(GROUP.into()),
            resource: Some("capturejobs".into()),
            subresource: Some("download".into()),
            verb: Some("get".into()),
            namespace: Some(target.namespace().into()),
            name: Some(target.name().into()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            user: Some(who.username.clone()),
            uid: who.uid.clone(),
            groups: Some(who.groups.clone()),
            extra: Some(who.extra.clone()),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview {
            spec,
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = patiently(
            "SubjectAccessReview",
            reviews.create(&PostParams::default(), &review),
        )
        .await?;
        answer
            .status
            .ok_or_else(|| "SubjectAccessReview: no status in the answer".to_owned())
    }

    pub async fn read_job(&self, target: &Target) -> Result<Option<CaptureJob>, String> {
        let jobs: Api<CaptureJob> = Api::namespaced(self.client.clone(), target.namespace());
        patiently("get capturejob", jobs.get_opt(target.name())).await
    }

    /// Whether the API server answers at all.
    pub async fn ready(&self) -> Result<(), String> {
        patiently("version", self.client.apiserver_version())
            .await
            .map(|_| ())
    }
}

/// Waits for an answer, but not for ever.
pub(crate) async fn patiently<T, E: Display>(
    what: &str,
    question: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, question).await {
        Ok(answer) => answer.map_err(|error| format!("{what}: {error}")),
        Err(_) => Err(format!("{what}: no answer within {} s", PATIENCE.as_secs())),
    }
}
