//! What devices ask for: telemetry, attributes, calls, claiming and provisioning.
//!
//! Payloads are JSON, or Protobuf by the schemas of the device's profile: see [`Format`].

use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::coap::Code;
use fieldline_core::devices::{DeviceHandle, DeviceSettings};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreError;
use fieldline_model::entity::OtaKind;
use fieldline_model::record::RecordBatch;
use fieldline_model::timeseries::AttributeScope;
use tokio::time::Instant;
use tracing::warn;

use super::admission::{identify, limited};
use super::bodies::{Bodies, Uploaded};
use super::observe::{self, Subject};
use super::packages;
use super::provisioning::provision;
use super::reply::Reply;
use super::request::{Observe, Request};
use super::server::Shared;
use crate::intake::{Intake, NotTaken};
use crate::payload::{AttributeRequest, Format, PayloadError};

static STORE_GATE: LogGate = LogGate::new(2);

/// How long a message that has arrived may wait for the journal.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a device is told for which there is no room.
const TOO_MANY: &str = "Too many wait already!";

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feature {
    Telemetry,
    Attributes,
    /// Calls, with the number of the one that is answered.
    Calls(Option<i32>),
    Claim,
    Provision,
    /// The data of the package that the device shall have.
    Package(OtaKind),
}

/// A path: the access token, where there is one, and what it names.
#[derive(Debug, PartialEq, Eq)]
struct Target<'a> {
    token: Option<&'a str>,
    feature: Feature,
}

impl<'a> Target<'a> {
    /// Reads `/api/v1/{token}/{feature}[/{number}]`, and without the token for a device that has shown a certificate.
    fn of(path: &'a [String]) -> Result<Self, Code> {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let package = |kind, rest: &[&'a str]| match rest {
            [token] => Ok(Self {
                token: Some(*token),
                feature: Feature::Package(kind),
            }),
            _ => Err(Code::UNAUTHORIZED),
        };
        let rest = match path.as_slice() {
            ["api", "v1", rest @ ..] => rest,
            ["fw", rest @ ..] => return package(OtaKind::Firmware, rest),
            ["sw", rest @ ..] => return package(OtaKind::Software, rest),
            ["api", ..] => return Err(Code::BAD_REQUEST),
            _ => return Err(Code::NOT_FOUND),
        };
        let number = |text: &str| text.parse::<i32>().ok();
        let (token, name, last) = match rest {
            [name] => (None, *name, None),
            [name, last] if number(last).is_some() => (None, *name, Some(*last)),
            [token, name] => (Some(*token), *name, None),
            [token, name, last] => (Some(*token), *name, Some(*last)),
            _ => return Err(Code::BAD_REQUEST),
        };
        let feature = match name.to_ascii_lowercase().as_str() {
            "telemetry" => Feature::Telemetry,
            "attributes" => Feature::Attributes,
            "rpc" => Feature::Calls(last.and_then(number)),
            "claim" => Feature::Claim,
            "provision" => Feature::Provision,
            _ => return Err(Code::BAD_REQUEST),
        };
        Ok(Self { token, feature })
    }
}

/// Serves a request.
pub(super) async fn serve(shared: &Arc<Shared>, mut request: Request) -> Reply {
    let block1 = request.block1;
    let mut reply = match take(shared, &mut request).await {
        Ok(Some(whole)) => act(shared, whole, &request)
            .await
            .unwrap_or_else(|refusal| refusal),
        Ok(None) => Reply::empty(Code::CONTINUE),
        Err(refusal) => refusal,
    };
    reply.block1 = block1;
    if reply.code == Code::REQUEST_ENTITY_TOO_LARGE && reply.size1.is_none() {
        reply.size1 = too_large(&shared.bodies).size1;
    }
    reply
}

fn too_large(bodies: &Bodies) -> Reply {
    Reply {
        size1: Some(u32::try_from(bodies.max_body()).unwrap_or(u32::MAX)),
        ..Reply::empty(Code::REQUEST_ENTITY_TOO_LARGE)
    }
}

/// Who asks, and for what.
struct Asked {
    device: Option<Arc<DeviceHandle>>,
    feature: Feature,
}

/// Finds out who asks, and puts the body of the request together. `None` while blocks of it are missing.
async fn take(shared: &Shared, request: &mut Request) -> Result<Option<Asked>, Reply> {
    if !matches!(request.method, Code::GET | Code::POST) {
        return Err(Reply::empty(Code::METHOD_NOT_ALLOWED));
    }
    let target = Target::of(&request.path).map_err(Reply::empty)?;
    let feature = target.feature;
    // Nobody keeps blocks here who is no device; save those who want to become one, which have room of their own.
    let (device, bodies) = match feature {
        Feature::Provision => (None, &shared.provisioning_bodies),
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
            Code::REQUEST_ENTITY_TOO_LARGE => too_large(bodies),
            code => Reply::empty(code),
        };
        match taken.map_err(refusal)? {
            Uploaded::Continues => return Ok(None),
            Uploaded::Whole(body) => request.payload = body,
        }
    }
    Ok(Some(Asked { device, feature }))
}

pub(super) fn store_failed(error: &StoreError) -> Reply {
    if let Some(suppressed) = STORE_GATE.open() {
        warn!(%error, suppressed, "request of a device failed");
    }
    Reply::empty(Code::SERVICE_UNAVAILABLE)
}

impl From<NotTaken> for Reply {
    fn from(why: NotTaken) -> Self {
        Self::empty(match why {
            NotTaken::Revoked => Code::UNAUTHORIZED,
            NotTaken::TooLarge => Code::REQUEST_ENTITY_TOO_LARGE,
            NotTaken::Refused => Code::SERVICE_UNAVAILABLE,
        })
    }
}

/// A device that was let in, and its request.
struct Session<'a> {
    shared: &'a Arc<Shared>,
    device: &'a Arc<DeviceHandle>,
    settings: Arc<DeviceSettings>,
    request: &'a Request,
}

async fn act(shared: &Arc<Shared>, asked: Asked, request: &Request) -> Result<Reply, Reply> {
    let is_post = request.method == Code::POST;
    if let Some(rest) = further_block(shared, request, asked.feature) {
        return rest;
    }
    let Some(device) = &asked.device else {
        return if is_post {
            provision(shared, request).await
        } else {
            Err(Reply::empty(Code::BAD_REQUEST))
        };
    };
    let session = Session {
        shared,
        device,
        settings: device.settings(),
        request,
    };
    match (asked.feature, is_post) {
        (Feature::Telemetry, true) => session.telemetry().await,
        (Feature::Attributes, true) => session.client_attributes().await,
        (Feature::Attributes, false) => session.read_attributes().await,
        (Feature::Calls(Some(number)), true) => session.answer_call(number),
        (Feature::Calls(None), true) => session.call().await,
        (Feature::Calls(_), false) => session.calls(),
        (Feature::Claim, true) => session.claim().await,
        (Feature::Package(kind), false) => session.package(kind).await,
        (Feature::Package(_), true) => Err(Reply::empty(Code::METHOD_NOT_ALLOWED)),
        _ => Err(Reply::empty(Code::BAD_REQUEST)),
    }
}

/// A further block of a response, where one is asked for. What was answered to a post is there once; what is read can be read
/// again.
fn further_block(shared: &Shared, request: &Request, feature: Feature) -> Option<Result<Reply, Reply>> {
    request.block2.filter(|block| block.number() > 0)?;
    if matches!(feature, Feature::Package(_)) {
        return None;
    }
    match shared.bodies.kept(&request.key(), Instant::now()) {
        Some(body) => Some(Ok(Reply {
            body: body.bytes,
            format: body.format,
            ..Reply::empty(Code::CONTENT)
        })),
        None if request.method == Code::GET && feature == Feature::Attributes => None,
        None => Some(Err(Reply::empty(Code::REQUEST_ENTITY_INCOMPLETE))),
    }
}

impl Session<'_> {
    /// How the device writes, and is written to.
    fn format(&self) -> Format<'_> {
        Format::over_coap(&self.settings)
    }

    fn malformed(&self, error: &PayloadError) -> Reply {
        self.shared.metrics.rejected.increment(1);
        Reply::refusal(Code::BAD_REQUEST, error.to_string())
    }

    /// Counts a message without values, unless that goes beyond a rate limit.
    fn admit(&self, points: u32) -> Result<(), Reply> {
        let passed = self.device.pass(points);
        passed.map_err(|why| limited(self.shared, self.device, &why))
    }

    /// The same for what is no telemetry: the device was heard.
    fn admit_message(&self) -> Result<(), Reply> {
        self.admit(0)?;
        self.shared.services.activity.heard(self.device.subject);
        Ok(())
    }

    async fn telemetry(&self) -> Result<Reply, Reply> {
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

    async fn client_attributes(&self) -> Result<Reply, Reply> {
        let mut records = RecordBatch::new();
        let read = self.format().attributes(
            &self.shared.services,
            self.device,
            &self.request.payload,
            &mut records,
        );
        self.post(read, &records).await
    }

    /// Takes what was read of telemetry or attributes; answers when it is durable.
    async fn post(&self, read: Result<(), PayloadError>, records: &RecordBatch) -> Result<Reply, Reply> {
        read.map_err(|error| self.malformed(&error))?;
        self.admit(records.points())?;
        self.append(records).await?;
        Ok(Reply::empty(Code::CREATED))
    }

    async fn append(&self, records: &RecordBatch) -> Result<(), Reply> {
        let intake = Intake {
            services: &self.shared.services,
            metrics: &self.shared.metrics,
            max_append: self.shared.max_append,
        };
        let taken = tokio::time::timeout(PATIENCE, intake.append(self.device, records)).await;
        let taken = taken.unwrap_or_else(|_| Err(intake.not_taken(&"the journal did not take it in time")));
        taken.map_err(Reply::from)
    }

    /// Reads attributes, and begins or ends an observation of those that are shared.
    async fn read_attributes(&self) -> Result<Reply, Reply> {
        self.admit_message()?;
        let services = &self.shared.services;
        let is_first = self.request.block2.is_none_or(|block| block.number() == 0);
        if let Some(wish) = self.request.observe.filter(|_| is_first)
            && let Some(reply) = self.observe(wish, Subject::Attributes)?
        {
            if wish == Observe::Deregister {
                return Ok(reply);
            }
            // From here on changes are told: none is missed between the values that are read now and the first of them.
            let shared = services
                .attributes
                .get(self.device.subject, AttributeScope::Shared, None)
                .await
                .map_err(|error| {
                    // Who is told that it went wrong does not observe (RFC 7641 §4.1).
                    observe::deregister(self.shared, self.device, self.request, Subject::Attributes);
                    store_failed(&error)
                })?;
            let format = self.format();
            return Ok(Reply {
                observe: reply.observe,
                after: reply.after,
                ..Reply::content(Code::CONTENT, format.shared(&shared), format)
            });
        }
        let names = |name| {
            let list = self.request.argument(name).filter(|list| !list.is_empty());
            list.map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>())
        };
        let wanted = AttributeRequest {
            client_keys: names("clientKeys"),
            shared_keys: names("sharedKeys"),
        };
        let found = wanted.find(services, self.device).await;
        let found = found.map_err(|error| store_failed(&error))?;
        if found.is_empty() {
            return Ok(Reply::empty(Code::NOT_FOUND));
        }
        let format = self.format();
        // Over CoAP a request has no number.
        let body = format.found(0, &wanted, &found);
        Ok(Reply::content(Code::CONTENT, body, format))
    }

    /// Begins or ends an observation of calls.
    fn calls(&self) -> Result<Reply, Reply> {
        let Some(wish) = self.request.observe else {
            return Err(Reply::empty(Code::BAD_REQUEST));
        };
        self.admit_message()?;
        let reply = self.observe(wish, Subject::Calls)?;
        Ok(reply.unwrap_or_else(|| Reply::empty(Code::DELETED)))
    }

    /// Begins or ends an observation; `None` where there is none to end.
    fn observe(&self, wish: Observe, subject: Subject) -> Result<Option<Reply>, Reply> {
        if wish == Observe::Deregister {
            let ended = observe::deregister(self.shared, self.device, self.request, subject);
            return Ok(ended.then(|| Reply::empty(Code::DELETED)));
        }
        let begun = observe::register(self.shared, self.device, self.request, subject);
        let (number, after) = begun.ok_or_else(|| Reply::refusal(Code::SERVICE_UNAVAILABLE, TOO_MANY))?;
        Ok(Some(Reply {
            observe: Some(number),
            after: Some(after),
            ..Reply::empty(Code::VALID)
        }))
    }

    /// Takes the answer to a call to the device.
    fn answer_call(&self, number: i32) -> Result<Reply, Reply> {
        self.admit_message()?;
        let body = self.format().answer(&self.request.payload);
        let body = body.map_err(|error| self.malformed(&error))?;
        if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&body).is_err() {
            self.shared.metrics.rejected.increment(1);
            return Err(Reply::refusal(Code::BAD_REQUEST, "expected an object"));
        }
        let calls = &self.shared.services.calls;
        match calls.answered(self.device.subject, number, body) {
            true => Ok(Reply::empty(Code::CREATED)),
            false => Err(Reply::empty(Code::SERVICE_UNAVAILABLE)),
        }
    }

    /// Calls a procedure of the platform, and waits for the answer.
    async fn call(&self) -> Result<Reply, Reply> {
        self.admit_message()?;
        let call = self.format().call(&self.request.payload);
        let call = call.map_err(|error| self.malformed(&error))?;
        let (services, subject) = (&self.shared.services, self.device.subject);
        let too_many = || Reply::refusal(Code::SERVICE_UNAVAILABLE, TOO_MANY);
        // Until the answer is there this holds one of the places of requests.
        let _place = self.shared.calls.take(self.device.id).ok_or_else(too_many)?;
        let now = services.clock.now_ms();
        let (message, answer) = services
            .calls
            .client
            .begin_request(subject, &call, now)
            .ok_or_else(too_many)?;
        let mut records = RecordBatch::new();
        records.message(subject.tenant, &message);
        self.append(&records).await?;
        let mut stop = self.shared.stopping.clone();
        let answer = tokio::select! {
            answer = answer => answer.ok(),
            _ = stop.wait_for(|stop| *stop) => None,
        };
        // Whoever waits too long is told so by an answer, too.
        let answer = answer.ok_or_else(|| Reply::empty(Code::SERVICE_UNAVAILABLE))?;
        let format = self.format();
        let body = format.platform_answer(0, &answer);
        Ok(Reply::content(Code::CONTENT, body, format))
    }

    /// Hands out a block of the package that the device shall have.
    async fn package(&self, kind: OtaKind) -> Result<Reply, Reply> {
        if self.request.block2.is_none_or(|block| block.number() == 0) {
            self.admit_message()?;
        }
        let admit = || self.admit_message();
        packages::download(self.shared, self.device, self.request, kind, admit).await
    }

    /// Lets a customer who tells the same secret claim the device.
    async fn claim(&self) -> Result<Reply, Reply> {
        self.admit_message()?;
        let claim = self.format().claim(&self.request.payload);
        let claim = claim.map_err(|error| self.malformed(&error))?;
        let claims = &self.shared.services.onboarding.claims;
        claims
            .open(self.device.subject, claim.secret_key, claim.duration_ms)
            .await
            .map_err(|error| store_failed(&error))?;
        Ok(Reply::empty(Code::CREATED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_token_and_a_feature() {
        let read = |path: &str| {
            let path: Vec<_> = path.split('/').map(str::to_owned).collect();
            Target::of(&path).map(|target| (target.token.map(str::to_owned), target.feature))
        };
        let token = |feature| Ok((Some("T".to_owned()), feature));
        assert_eq!(read("api/v1/T/telemetry"), token(Feature::Telemetry));
        assert_eq!(read("api/v1/T/RPC"), token(Feature::Calls(None)));
        assert_eq!(read("api/v1/T/rpc/12"), token(Feature::Calls(Some(12))));
        assert_eq!(read("api/v1/rpc/12"), Ok((None, Feature::Calls(Some(12)))));
        assert_eq!(read("api/v1/attributes"), Ok((None, Feature::Attributes)));
        assert_eq!(read("api/v1/provision"), Ok((None, Feature::Provision)));
        assert_eq!(read("fw/T"), token(Feature::Package(OtaKind::Firmware)));
        assert_eq!(read("sw"), Err(Code::UNAUTHORIZED));
        for path in [
            "api/v1",
            "api/v2/T/telemetry",
            "api/v1/T/weather",
            "api/v1/T/rpc/1/2",
        ] {
            assert_eq!(read(path), Err(Code::BAD_REQUEST), "{path}");
        }
        assert_eq!(read("weather"), Err(Code::NOT_FOUND));
    }
}
