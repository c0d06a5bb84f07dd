//! CoAP while a store fails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{AttributeRow, AttributeStore, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{Attribute, AttributeScope};
use fieldline_transport::TransportServices;
use fieldline_transport::coap::{CoapServer, Options};
use tokio::net::UdpSocket;

use super::world::{LIMITS, World};

const PATIENCE: Duration = Duration::from_secs(10);

/// An attribute store that always fails.
struct Failing;

fn failed<T>() -> StoreResult<T> {
    Err(StoreError::new(StoreErrorKind::Unavailable, "not now"))
}

#[async_trait]
impl AttributeStore for Failing {
    async fn save(&self, _: &[AttributeRow<'_>]) -> StoreResult<()> {
        failed()
    }
    async fn save_relaxed(&self, _: &[AttributeRow<'_>]) -> StoreResult<()> {
        failed()
    }
    async fn get(
        &self,
        _: EntityKey,
        _: AttributeScope,
        _: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>> {
        failed()
    }
    async fn delete(&self, _: EntityKey, _: AttributeScope, _: &[String]) -> StoreResult<Vec<String>> {
        failed()
    }
}

#[tokio::test]
async fn who_is_told_that_the_attributes_cannot_be_had_does_not_observe_them() {
    let world = World::new(LIMITS).await;
    let all = &world.services;
    let services = Arc::new(TransportServices {
        directory: all.directory.clone(),
        guard: all.guard.clone(),
        sessions: all.sessions.clone(),
        rpc: all.rpc.clone(),
        onboarding: all.onboarding.clone(),
        downloads: all.downloads.clone(),
        overload: all.overload.clone(),
        producer: all.producer.clone(),
        attributes: Arc::new(Failing),
        activity: all.activity.clone(),
        clock: all.clock.clone(),
        json: all.json.clone(),
    });
    let options = Options {
        acknowledge_after: HumanDuration::secs(30),
        ..Options::default()
    };
    let server = CoapServer::new(services, &options, LIMITS.max_append);
    let address = server.listen(([127, 0, 0, 1], 0).into()).unwrap();
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    peer.connect(address).await.unwrap();
    // GET /api/v1/first/attributes with Observe 0.
    let mut request = vec![0x41, 0x01, 0, 7, 9, 0x60, 0x53];
    request.extend_from_slice(b"api\x02v1\x05first\x0aattributes");
    peer.send(&request).await.unwrap();
    let mut answer = [0; 64];
    let length = peer.recv(&mut answer).await.unwrap();
    assert!(
        length >= 5 && answer[1] == 0xa3,
        "5.03, not {:?}",
        &answer[..length]
    );
    let device = fieldline_model::DeviceId(world.subject.entity.id);
    let ended = async {
        while all.sessions.is_connected(device) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("it ends");
    assert!(server.stop(PATIENCE).await);
}
