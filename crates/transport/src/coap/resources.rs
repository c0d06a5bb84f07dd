//! The resources of the device API: telemetry, attributes, RPC, claiming and provisioning.
//!
//! Payloads are JSON, or Protobuf by the schemas of the device's profile: see [`PayloadFormat`].

use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::coap::CoapCode;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreError;
use fieldline_devices::directory::{DeviceHandle, DeviceSettings};
use fieldline_model::entity::OtaKind;
use fieldline_model::record::RecordBatch;
use fieldline_model::timeseries::AttributeScope;
use tokio::time::Instant;
use tracing::warn;

use super::admission::{identify, limited};
use super::blockwise::{BlockwiseTransfers, UploadProgress};
use super::firmware;
use super::observe::{self, ObservedResource};
use super::provisioning::provision;
use super::reply::CoapReply;
use super::request::{CoapRequest, ObserveOption};
use super::server::CoapShared;
use crate::intake::{AppendRefusal, RecordIntake};
use crate::payload::{DeviceAttributeRequest, PayloadError, PayloadFormat};

static STORE_GATE: LogGate = LogGate::new(2);

/// Longest time that a received message may wait for the journal.
const APPEND_TIMEOUT: Duration = Duration::from_secs(60);
/// The refusal of a request for which there is no room.
const TOO_MANY: &str = "Too many wait already!";

/// The resource that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CoapFeature {
    Telemetry,
    Attributes,
    /// RPC, with the number of the request that is answered.
    Calls(Option<i32>),
    Claim,
    Provision,
    /// The data of the package assigned to the device.
    Package(OtaKind),
}

/// A parsed path: the access token, if there is one, and the resource.
#[derive(Debug, PartialEq, Eq)]
struct CoapPath<'a> {
    token: Option<&'a str>,
    feature: CoapFeature,
}

impl<'a> CoapPath<'a> {
    /// Parses `/api/v1/{token}/{feature}[/{number}]`; a device with a certificate leaves the token out.
    fn of(path: &'a [String]) -> Result<Self, CoapCode> {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let package = |kind, rest: &[&'a str]| match rest {
            [token] => Ok(Self {
                token: Some(*token),
                feature: CoapFeature::Package(kind),
            }),
            _ => Err(CoapCode::UNAUTHORIZED),
        };
        let rest = match path.as_slice() {
            ["api", "v1", rest @ ..] => rest,
            ["fw", rest @ ..] => return package(OtaKind::Firmware, rest),
            ["sw", rest @ ..] => return package(OtaKind::Software, rest),
            ["api", ..] => return Err(CoapCode::BAD_REQUEST),
            _ => return Err(CoapCode::NOT_FOUND),
        };
        let number = |text: &str| text.parse::<i32>().ok();
        let (token, name, last) = match rest {
            [name] => (None, *name, None),
            [name, last] if number(last).is_some() => (None, *name, Some(*last)),
            [token, name] => (Some(*token), *name, None),
            [token, name, last] => (Some(*token), *name, Some(*last)),
            _ => return Err(CoapCode::BAD_REQUEST),
        };
        let feature = match name.to_ascii_lowercase().as_str() {
            "telemetry" => CoapFeature::Telemetry,
            "attributes" => CoapFeature::Attributes,
            "rpc" => CoapFeature::Calls(last.and_then(number)),
            "claim" => CoapFeature::Claim,
            "provision" => CoapFeature::Provision,
            _ => return Err(CoapCode::BAD_REQUEST),
        };
        Ok(Self { token, feature })
    }
}

/// Serves a request.
pub(super) async fn serve(shared: &Arc<CoapShared>, mut request: CoapRequest) -> CoapReply {
    let block1 = request.block1;
    let mut reply = match take(shared, &mut request).await {
        Ok(Some(whole)) => act(shared, whole, &request)
            .await
            .unwrap_or_else(|refusal| refusal),
        Ok(None) => CoapReply::empty(CoapCode::CONTINUE),
        Err(refusal) => refusal,
    };
    reply.block1 = block1;
    if reply.code == CoapCode::REQUEST_ENTITY_TOO_LARGE && reply.size1.is_none() {
        reply.size1 = too_large(&shared.bodies).size1;
    }
    reply
}

fn too_large(bodies: &BlockwiseTransfers) -> CoapReply {
    CoapReply {
        size1: Some(u32::try_from(bodies.max_body()).unwrap_or(u32::MAX)),
        ..CoapReply::empty(CoapCode::REQUEST_ENTITY_TOO_LARGE)
    }
}

/// The device of a request, and the resource it asks for.
struct IdentifiedRequest {
    device: Option<Arc<DeviceHandle>>,
    feature: CoapFeature,
}

/// Authenticates the device and reassembles the body of the request. Returns `None` while blocks are missing.
async fn take(
    shared: &CoapShared,
    request: &mut CoapRequest,
) -> Result<Option<IdentifiedRequest>, CoapReply> {
    if !matches!(request.method, CoapCode::GET | CoapCode::POST) {
        return Err(CoapReply::empty(CoapCode::METHOD_NOT_ALLOWED));
    }
    let target = CoapPath::of(&request.path).map_err(CoapReply::empty)?;
    let feature = target.feature;
    // Only devices may store blocks here; provisioning clients have a store of their own.
    let (device, bodies) = match feature {
        CoapFeature::Provision => (None, &shared.provisioning_bodies),
        _ => (
            Some(identify(shared, request, target.token).await?),
            &shared.bodies,
        ),
    };
    if request.payload.len() > bodies.max_body() {
        return Err(too_large(bodies));
    }
    if let Some(block) = request.block1 {
        let taken = bodies.upload(
            &request.key(),
            block,
            &request.payload,
            request.size1,
            Instant::now(),
        );
        let refusal = |code| match code {
            CoapCode::REQUEST_ENTITY_TOO_LARGE => too_large(bodies),
            code => CoapReply::empty(code),
        };
        match taken.map_err(refusal)? {
            UploadProgress::Continues => return Ok(None),
            UploadProgress::Whole(body) => request.payload = body,
        }
    }
    Ok(Some(IdentifiedRequest { device, feature }))
}

pub(super) fn store_failed(error: &StoreError) -> CoapReply {
    if let Some(suppressed) = STORE_GATE.open() {
        warn!(%error, suppressed, "request of a device failed");
    }
    CoapReply::empty(CoapCode::SERVICE_UNAVAILABLE)
}

impl From<AppendRefusal> for CoapReply {
    fn from(why: AppendRefusal) -> Self {
        Self::empty(match why {
            AppendRefusal::Revoked => CoapCode::UNAUTHORIZED,
            AppendRefusal::TooLarge => CoapCode::REQUEST_ENTITY_TOO_LARGE,
            AppendRefusal::Refused => CoapCode::SERVICE_UNAVAILABLE,
        })
    }
}

/// A request of an authenticated device.
struct CoapRequestContext<'a> {
    shared: &'a Arc<CoapShared>,
    device: &'a Arc<DeviceHandle>,
    settings: Arc<DeviceSettings>,
    request: &'a CoapRequest,
}

async fn act(
    shared: &Arc<CoapShared>,
    asked: IdentifiedRequest,
    request: &CoapRequest,
) -> Result<CoapReply, CoapReply> {
    let is_post = request.method == CoapCode::POST;
    if let Some(rest) = further_block(shared, request, asked.feature) {
        return rest;
    }
    let Some(device) = &asked.device else {
        return if is_post {
            provision(shared, request).await
        } else {
            Err(CoapReply::empty(CoapCode::BAD_REQUEST))
        };
    };
    let session = CoapRequestContext {
        shared,
        device,
        settings: device.settings(),
        request,
    };
    match (asked.feature, is_post) {
        (CoapFeature::Telemetry, true) => session.telemetry().await,
        (CoapFeature::Attributes, true) => session.client_attributes().await,
        (CoapFeature::Attributes, false) => session.read_attributes().await,
        (CoapFeature::Calls(Some(number)), true) => session.answer_call(number),
        (CoapFeature::Calls(None), true) => session.call().await,
        (CoapFeature::Calls(_), false) => session.calls(),
        (CoapFeature::Claim, true) => session.claim().await,
        (CoapFeature::Package(kind), false) => session.package(kind).await,
        (CoapFeature::Package(_), true) => Err(CoapReply::empty(CoapCode::METHOD_NOT_ALLOWED)),
        _ => Err(CoapReply::empty(CoapCode::BAD_REQUEST)),
    }
}

/// Returns a further block of a response, if one is requested. The response to a post is stored once; one to a read can
/// be read again.
fn further_block(
    shared: &CoapShared,
    request: &CoapRequest,
    feature: CoapFeature,
) -> Option<Result<CoapReply, CoapReply>> {
    request.block2.filter(|block| block.number() > 0)?;
    if matches!(feature, CoapFeature::Package(_)) {
        return None;
    }
    match shared.bodies.response(&request.key(), Instant::now()) {
        Some(body) => Some(Ok(CoapReply {
            body: body.bytes,
            format: body.format,
            ..CoapReply::empty(CoapCode::CONTENT)
        })),
        None if request.method == CoapCode::GET && feature == CoapFeature::Attributes => None,
        None => Some(Err(CoapReply::empty(CoapCode::REQUEST_ENTITY_INCOMPLETE))),
    }
}

impl CoapRequestContext<'_> {
    /// The payload format of the device, in both directions.
    fn format(&self) -> PayloadFormat<'_> {
        PayloadFormat::over_coap(&self.settings)
    }

    fn malformed(&self, error: &PayloadError) -> CoapReply {
        self.shared.metrics.rejected.increment(1);
        CoapReply::refusal(CoapCode::BAD_REQUEST, error.to_string())
    }

    /// Counts a message with this many values, unless it exceeds a rate limit.
    fn admit(&self, points: u32) -> Result<(), CoapReply> {
        let passed = self.device.acquire(points);
        passed.map_err(|why| limited(self.shared, self.device, &why))
    }

    /// Like [`Self::admit`], for a message other than telemetry; also records activity.
    fn admit_message(&self) -> Result<(), CoapReply> {
        self.admit(0)?;
        self.shared.services.activity.record_activity(self.device.subject);
        Ok(())
    }

    async fn telemetry(&self) -> Result<CoapReply, CoapReply> {
        let (services, ttl_seconds) = (&self.shared.services, self.settings.ttl_seconds);
        let mut records = RecordBatch::new();
        let read = self.format().telemetry(
            services,
            self.device,
            ttl_seconds,
            &self.request.payload,
            &mut records,
        );
        self.post(read, &records).await
    }

    async fn client_attributes(&self) -> Result<CoapReply, CoapReply> {
        let mut records = RecordBatch::new();
        let read = self.format().attributes(
            &self.shared.services,
            self.device,
            &self.request.payload,
            &mut records,
        );
        self.post(read, &records).await
    }

    /// Appends the parsed telemetry or attributes; answers when they are durable.
    async fn post(
        &self,
        read: Result<(), PayloadError>,
        records: &RecordBatch,
    ) -> Result<CoapReply, CoapReply> {
        read.map_err(|error| self.malformed(&error))?;
        self.admit(records.points())?;
        self.append(records).await?;
        Ok(CoapReply::empty(CoapCode::CREATED))
    }

    async fn append(&self, records: &RecordBatch) -> Result<(), CoapReply> {
        let intake = RecordIntake {
            services: &self.shared.services,
            metrics: &self.shared.metrics,
            max_append: self.shared.max_append,
        };
        let taken = tokio::time::timeout(APPEND_TIMEOUT, intake.append(self.device, records)).await;
        let taken =
            taken.unwrap_or_else(|_| Err(intake.count_refusal(&"the journal did not take it in time")));
        taken.map_err(CoapReply::from)
    }

    /// Reads attributes, and begins or ends an observation of shared ones.
    async fn read_attributes(&self) -> Result<CoapReply, CoapReply> {
        self.admit_message()?;
        let services = &self.shared.services;
        let is_first = self.request.block2.is_none_or(|block| block.number() == 0);
        if let Some(wish) = self.request.observe.filter(|_| is_first)
            && let Some(reply) = self.observe(wish, ObservedResource::Attributes)?
        {
            if wish == ObserveOption::Deregister {
                return Ok(reply);
            }
            // The observation begins before the read, so that no update between the read and the first notification is
            // missed.
            let shared = services
                .attributes
                .get(self.device.subject, AttributeScope::Shared, None)
                .await
                .map_err(|error| {
                    // An error response ends the observation (RFC 7641 §4.1).
                    observe::deregister(
                        self.shared,
                        self.device,
                        self.request,
                        ObservedResource::Attributes,
                    );
                    store_failed(&error)
                })?;
            let format = self.format();
            return Ok(CoapReply {
                observe: reply.observe,
                on_sent: reply.on_sent,
                ..CoapReply::content(CoapCode::CONTENT, format.shared(&shared), format)
            });
        }
        let names = |name| {
            let list = self.request.argument(name).filter(|list| !list.is_empty());
            list.map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>())
        };
        let wanted = DeviceAttributeRequest {
            client_keys: names("clientKeys"),
            shared_keys: names("sharedKeys"),
        };
        let found = wanted.find(services, self.device).await;
        let found = found.map_err(|error| store_failed(&error))?;
        if found.is_empty() {
            return Ok(CoapReply::empty(CoapCode::NOT_FOUND));
        }
        let format = self.format();
        // Attribute requests have no number over CoAP.
        let body = format.found(0, &wanted, &found);
        Ok(CoapReply::content(CoapCode::CONTENT, body, format))
    }

    /// Begins or ends an observation of RPC requests.
    fn calls(&self) -> Result<CoapReply, CoapReply> {
        let Some(wish) = self.request.observe else {
            return Err(CoapReply::empty(CoapCode::BAD_REQUEST));
        };
        self.admit_message()?;
        let reply = self.observe(wish, ObservedResource::Calls)?;
        Ok(reply.unwrap_or_else(|| CoapReply::empty(CoapCode::DELETED)))
    }

    /// Begins or ends an observation; `None` if there is none to end.
    fn observe(
        &self,
        wish: ObserveOption,
        subject: ObservedResource,
    ) -> Result<Option<CoapReply>, CoapReply> {
        if wish == ObserveOption::Deregister {
            let ended = observe::deregister(self.shared, self.device, self.request, subject);
            return Ok(ended.then(|| CoapReply::empty(CoapCode::DELETED)));
        }
        let begun = observe::register(self.shared, self.device, self.request, subject);
        let (number, after) =
            begun.ok_or_else(|| CoapReply::refusal(CoapCode::SERVICE_UNAVAILABLE, TOO_MANY))?;
        Ok(Some(CoapReply {
            observe: Some(number),
            on_sent: Some(after),
            ..CoapReply::empty(CoapCode::VALID)
        }))
    }

    /// Takes the device's response to an RPC.
    fn answer_call(&self, number: i32) -> Result<CoapReply, CoapReply> {
        self.admit_message()?;
        let body = self.format().answer(&self.request.payload);
        let body = body.map_err(|error| self.malformed(&error))?;
        if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&body).is_err() {
            self.shared.metrics.rejected.increment(1);
            return Err(CoapReply::refusal(CoapCode::BAD_REQUEST, "expected an object"));
        }
        let calls = &self.shared.services.rpc;
        match calls.handle_answer(self.device.subject, number, body) {
            true => Ok(CoapReply::empty(CoapCode::CREATED)),
            false => Err(CoapReply::empty(CoapCode::SERVICE_UNAVAILABLE)),
        }
    }

    /// Sends an RPC request of the device to the platform, and waits for the response.
    async fn call(&self) -> Result<CoapReply, CoapReply> {
        self.admit_message()?;
        let call = self.format().call(&self.request.payload);
        let call = call.map_err(|error| self.malformed(&error))?;
        let (services, subject) = (&self.shared.services, self.device.subject);
        let too_many = || CoapReply::refusal(CoapCode::SERVICE_UNAVAILABLE, TOO_MANY);
        // A pending RPC request also holds a request permit, hence a limit of its own.
        let _place = self
            .shared
            .rpc_limiter
            .try_acquire(self.device.id)
            .ok_or_else(too_many)?;
        let now = services.clock.now_ms();
        let (message, answer) = services
            .rpc
            .client
            .begin_request(subject, &call, now)
            .ok_or_else(too_many)?;
        let mut records = RecordBatch::new();
        records.push_message(subject.tenant, &message);
        self.append(&records).await?;
        let mut stop = self.shared.stopping.clone();
        let answer = tokio::select! {
            answer = answer => answer.ok(),
            _ = stop.wait_for(|stop| *stop) => None,
        };
        // After the RPC timeout, the answer is `{"error":"timeout"}`; without an answer, the server is stopping.
        let answer = answer.ok_or_else(|| CoapReply::empty(CoapCode::SERVICE_UNAVAILABLE))?;
        let format = self.format();
        let body = format.platform_answer(0, &answer);
        Ok(CoapReply::content(CoapCode::CONTENT, body, format))
    }

    /// Sends a block of the package assigned to the device.
    async fn package(&self, kind: OtaKind) -> Result<CoapReply, CoapReply> {
        if self.request.block2.is_none_or(|block| block.number() == 0) {
            self.admit_message()?;
        }
        let admit = || self.admit_message();
        firmware::download(self.shared, self.device, self.request, kind, admit).await
    }

    /// Opens the device for claiming by a customer who knows the same secret.
    async fn claim(&self) -> Result<CoapReply, CoapReply> {
        self.admit_message()?;
        let claim = self.format().claim(&self.request.payload);
        let claim = claim.map_err(|error| self.malformed(&error))?;
        let claims = &self.shared.services.onboarding.claims;
        claims
            .open(self.device.subject, claim.secret_key, claim.duration_ms)
            .await
            .map_err(|error| store_failed(&error))?;
        Ok(CoapReply::empty(CoapCode::CREATED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_token_and_a_feature() {
        let read = |path: &str| {
            let path: Vec<_> = path.split('/').map(str::to_owned).collect();
            CoapPath::of(&path).map(|target| (target.token.map(str::to_owned), target.feature))
        };
        let token = |feature| Ok((Some("T".to_owned()), feature));
        assert_eq!(read("api/v1/T/telemetry"), token(CoapFeature::Telemetry));
        assert_eq!(read("api/v1/T/RPC"), token(CoapFeature::Calls(None)));
        assert_eq!(read("api/v1/T/rpc/12"), token(CoapFeature::Calls(Some(12))));
        assert_eq!(read("api/v1/rpc/12"), Ok((None, CoapFeature::Calls(Some(12)))));
        assert_eq!(read("api/v1/attributes"), Ok((None, CoapFeature::Attributes)));
        assert_eq!(read("api/v1/provision"), Ok((None, CoapFeature::Provision)));
        assert_eq!(read("fw/T"), token(CoapFeature::Package(OtaKind::Firmware)));
        assert_eq!(read("sw"), Err(CoapCode::UNAUTHORIZED));
        for path in [
            "api/v1",
            "api/v2/T/telemetry",
            "api/v1/T/weather",
            "api/v1/T/rpc/1/2",
        ] {
            assert_eq!(read(path), Err(CoapCode::BAD_REQUEST), "{path}");
        }
        assert_eq!(read("weather"), Err(CoapCode::NOT_FOUND));
    }
}
