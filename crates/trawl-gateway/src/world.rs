//! The real world: the API server and the store.

use std::{ops::Range, time::Duration};

use axum::body::Bytes;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use k8s_openapi::api::{authentication::v1::TokenReviewStatus, authorization::v1::SubjectAccessReviewStatus};
use k8s_openapi::jiff::Timestamp;
use trawl_api::CaptureJob;
use trawl_store::{Store, StoreError};

use crate::{
    cluster::{Cluster, patiently},
    http::Delivery,
    judge::Identity,
    request::{BearerToken, Target},
    sequence::World,
};

/// Asks the API server and the store; reads the clock of this machine.
#[derive(Clone)]
pub struct Real {
    pub cluster: Cluster,
    pub store: Store,
}

impl World for Real {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn review_token(&self, token: &BearerToken) -> Result<TokenReviewStatus, String> {
        self.cluster.review_token(token).await
    }

    async fn review_access(
        &self,
        who: &Identity,
        target: &Target,
    ) -> Result<SubjectAccessReviewStatus, String> {
        self.cluster.review_access(who, target).await
    }

    async fn read_job(&self, target: &Target) -> Result<Option<CaptureJob>, String> {
        self.cluster.read_job(target).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, String> {
        let question = async {
            match self.store.head(key).await {
                Ok(info) => Ok(Some(info.size)),
                Err(StoreError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        patiently("head", question).await
    }
}

impl Delivery for Real {
    async fn presign(&self, key: &str, ttl: Duration) -> Result<Option<String>, String> {
        let url = self
            .store
            .presign_get(key, ttl)
            .await
            .map_err(|error| error.to_string())?;
        Ok(url.map(|url| url.expose().to_owned()))
    }

    async fn read(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, std::io::Error>>, String> {
        let object = patiently("read", self.store.get_range(key, range)).await?;
        Ok(object.stream.map_err(std::io::Error::other).boxed())
    }
}
