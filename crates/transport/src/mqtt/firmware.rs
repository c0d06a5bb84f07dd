//! OTA downloads: a device fetches the package assigned to it, chunk by chunk.
//!
//! The first chunk of a request sets the chunk size; without a size, the package comes as one chunk.

use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::{PublishPacket, QoS, ReasonCode};
use fieldline_core::logging::LogGate;
use fieldline_devices::ota::{OtaImage, OtaOffer};
use fieldline_model::entity::OtaKind;
use tracing::{debug, warn};

use super::connection::MqttShared;
use super::large_memory::{LargeMessageLease, MAX_WHOLE};
use super::packet_handler::{DeferredRequest, PacketFlow, PacketHandler, ReadOutcome};

static GATE: LogGate = LogGate::new(2);

/// Topic of errors, for firmware and software alike.
const ERROR: &str = "v2/fw/error";
/// Requests remembered per connection; beyond that the oldest is forgotten.
const REMEMBERED: usize = 4;
/// Largest chunk that needs no memory from the large-message pool, bytes: other output is written in pieces as large as
/// this.
const SMALL: u64 = 64 << 10;

/// A request for one chunk.
#[derive(Debug)]
pub(super) struct ChunkRequest {
    kind: OtaKind,
    /// The number of the request, as the device wrote it.
    id: String,
    number: u32,
    /// Chunk size in bytes, if the message names one.
    size: Option<u32>,
}

/// A download in progress.
struct ChunkDownload {
    kind: OtaKind,
    id: String,
    size: u32,
    image: Option<Arc<OtaImage>>,
}

/// The downloads of a connection.
#[derive(Default)]
pub(super) struct ConnectionDownloads {
    requests: Vec<ChunkDownload>,
    /// The lease of a large message until it is written.
    memory: Option<LargeMessageLease>,
}

impl ConnectionDownloads {
    /// The time limit for writing the current message, if it is a large one.
    pub(super) fn time_to_write(&self) -> Option<Duration> {
        self.memory.as_ref().map(LargeMessageLease::time_to_write)
    }

    /// Releases the memory of a large message that was written.
    pub(super) fn finish_write(&mut self) {
        self.memory = None;
    }

    /// Takes the download of a request out of the remembered ones, or a new one, with the current chunk size.
    fn begin(&mut self, request: &ChunkRequest) -> ChunkDownload {
        let known = |download: &ChunkDownload| download.kind == request.kind && download.id == request.id;
        let mut download = match self.requests.iter().position(known) {
            Some(at) => self.requests.remove(at),
            None => ChunkDownload {
                kind: request.kind,
                id: request.id.clone(),
                size: 0,
                image: None,
            },
        };
        if let Some(size) = request.size {
            download.size = size;
        }
        // Chunk 0 starts over with the package that is assigned now.
        if request.number == 0 {
            download.image = None;
        }
        download
    }

    fn keep(&mut self, download: ChunkDownload) {
        if self.requests.len() >= REMEMBERED {
            self.requests.remove(0);
        }
        self.requests.push(download);
    }
}

impl PacketHandler {
    /// Handles a request for a chunk.
    pub(super) fn ask_chunk(
        &mut self,
        shared: &MqttShared,
        publish: &PublishPacket<'_>,
        kind: OtaKind,
        (id, number): (String, Option<u32>),
    ) -> PacketFlow {
        let size = match publish.payload {
            b"" => Ok(None),
            text => std::str::from_utf8(text).map_or(Err(()), |text| match text.parse::<i32>() {
                Ok(size) => Ok(u32::try_from(size).ok().filter(|size| *size > 0)),
                Err(_) => Err(()),
            }),
        };
        let (Ok(size), Some(number)) = (size, number) else {
            debug!(device = %self.device().id, "a request for a chunk makes no sense");
            return self.reject_invalid(shared, publish);
        };
        let request = ChunkRequest {
            kind,
            id,
            number,
            size,
        };
        self.defer_request(shared, publish, Ok(DeferredRequest::Chunk(request)))
    }

    /// Sends a chunk, or the reason why there is none.
    pub(super) async fn send_chunk(&mut self, shared: &MqttShared, request: ChunkRequest) -> ReadOutcome {
        let device = self.device().clone();
        let services = &shared.services;
        let mut download = self.cold.downloads().begin(&request);
        let size = download.size;
        if size > shared.max_content {
            return self.end_download("PAYLOAD_TOO_LARGE");
        }
        let image = match download.image.take() {
            Some(image) => image,
            None => match services.downloads.offer(&device, request.kind).await {
                Ok(OtaOffer::Image(image)) => image,
                Ok(OtaOffer::None) => return self.end_download("NOT_FOUND"),
                Ok(OtaOffer::Elsewhere) => return self.end_download("FAILURE"),
                Err(error) => return failed(&error),
            },
        };
        download.image = Some(image.clone());
        self.cold.downloads().keep(download);
        let length = image.chunk_len(size, request.number);
        if length > MAX_WHOLE {
            return self.end_download("PAYLOAD_TOO_LARGE");
        }
        if length > SMALL {
            let Some(memory) = shared.large_memory.take(device.subject.tenant, length).await else {
                debug!(device = %device.id, "too many large downloads at a time");
                return ReadOutcome::End(Some(ReasonCode::QuotaExceeded));
            };
            self.cold.downloads().memory = Some(memory);
        }
        let chunk = match services.downloads.chunk(&image, size, request.number).await {
            Ok(chunk) => chunk,
            Err(error) => return failed(&error),
        };
        let (prefix, id, number) = (request.kind.prefix(), request.id, request.number);
        let topic = format!("v2/{prefix}/response/{id}/chunk/{number}");
        let qos = self.granted.qos_of(&topic).unwrap_or(QoS::AtLeastOnce);
        if let Err(error) = self.send(&topic, qos, &chunk, None) {
            self.cold.finish_write();
            debug!(device = %device.id, %error, "cannot send a chunk");
        }
        ReadOutcome::Continue
    }

    /// Sends the reason why there is nothing to download. Devices of this API expect the connection to end then.
    fn end_download(&mut self, why: &str) -> ReadOutcome {
        let qos = self.granted.qos_of(ERROR).unwrap_or(QoS::AtLeastOnce);
        if let Err(error) = self.send(ERROR, qos, why.as_bytes(), None) {
            debug!(device = %self.device().id, %error, "cannot send an error");
        }
        ReadOutcome::End(Some(ReasonCode::ImplementationSpecificError))
    }
}

fn failed(error: &fieldline_core::ports::StoreError) -> ReadOutcome {
    if let Some(suppressed) = GATE.open() {
        warn!(%error, suppressed, "cannot read a chunk of an OTA package");
    }
    ReadOutcome::End(Some(ReasonCode::ImplementationSpecificError))
}
