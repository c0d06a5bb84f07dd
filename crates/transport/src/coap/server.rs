//! The UDP sockets, and the path of a datagram to the resources and back.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use fieldline_codec::coap::{
    CoapBlock, CoapCode, CoapDecodeError, CoapEncoder, CoapMessage, CoapMessageType, CoapToken,
};
use fieldline_core::logging::LogGate;
use fieldline_devices::sessions::CloseReason;
use fieldline_model::DeviceId;
use parking_lot::Mutex;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tracing::warn;

use super::Options;
use super::blockwise::{BlockwiseKey, BlockwiseResponse, BlockwiseTransfers};
use super::dtls::{DatagramOutcome, DtlsCredentials, DtlsServer, Options as SecureOptions};
use super::exchanges::{CoapDelivery, CoapExchanges, CoapPeer, CoapSendError, DuplicateCheck};
use super::firmware::DownloadAllowances;
use super::observe::ObserverRegistry;
use super::reply::CoapReply;
use super::request::CoapRequest;
use super::request_limiter::{RequestLimiter, RequestPermit};
use super::resources;
use crate::TransportServices;
use crate::metrics::{ConnectionMetrics, TransportMetrics};

static RECEIVE_GATE: LogGate = LogGate::new(1);

/// Largest UDP datagram, bytes.
const MAX_DATAGRAM: usize = 65_536;
/// Size of the socket's receive buffer, bytes, as far as the system allows.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Requests of one peer in progress at a time.
const OF_PEER: usize = 64;
/// One in this many requests may be an RPC request of a device, which waits for the rule chains. Other requests are
/// short.
const CALLS_PART: usize = 4;
/// Pending RPC requests of one device at a time.
const CALLS_OF_DEVICE: usize = 16;
/// One in this many bytes of block memory is for provisioning requests.
const PROVISIONING_PART: usize = 8;
/// Longest provisioning request, bytes: it may contain a certificate.
const MAX_PROVISIONING: usize = 4 << 10;
/// Interval of the check for retransmissions.
const TICK: Duration = Duration::from_millis(250);
/// Interval of the check for silent sessions, in ticks.
const SILENT_EVERY: u32 = 240;
/// Pause after the operating system refused a receive.
const RECEIVE_PAUSE: Duration = Duration::from_millis(100);

/// State shared by all requests.
pub(super) struct CoapShared {
    pub(super) services: Arc<TransportServices>,
    pub(super) metrics: TransportMetrics,
    pub(super) connections: ConnectionMetrics,
    pub(super) options: Options,
    /// Largest append that the journal takes, bytes.
    pub(super) max_append: usize,
    pub(super) bodies: BlockwiseTransfers,
    /// Bodies of provisioning clients.
    pub(super) provisioning_bodies: BlockwiseTransfers,
    /// Permits of RPC requests by devices that wait for an answer.
    pub(super) rpc_limiter: Arc<RequestLimiter<DeviceId>>,
    /// The bytes that may be downloaded without being counted.
    pub(super) allowances: DownloadAllowances,
    pub(super) observers: ObserverRegistry,
    pub(super) stopping: watch::Receiver<bool>,
    exchanges: Mutex<CoapExchanges>,
    request_limiter: Arc<RequestLimiter<CoapPeer>>,
    plain: OnceLock<Arc<UdpSocket>>,
    dtls: OnceLock<Arc<DtlsServer>>,
}

/// The CoAP device server, shared by its listeners with and without DTLS.
pub struct CoapServer {
    shared: Arc<CoapShared>,
    stop: watch::Sender<bool>,
}

impl CoapServer {
    /// Creates a server without listeners. The journal accepts appends of at most `max_append` bytes.
    pub fn new(services: Arc<TransportServices>, options: &Options, max_append: usize) -> Self {
        let stop = watch::Sender::new(false);
        let (max_payload, memory) = (options.max_payload.as_usize(), options.block_memory.as_usize());
        let shared = CoapShared {
            services,
            metrics: TransportMetrics::of("coap"),
            connections: ConnectionMetrics::of("coap"),
            bodies: BlockwiseTransfers::new(max_payload, memory),
            provisioning_bodies: BlockwiseTransfers::new(
                max_payload.min(MAX_PROVISIONING),
                memory / PROVISIONING_PART,
            ),
            rpc_limiter: RequestLimiter::new(options.max_requests / CALLS_PART, CALLS_OF_DEVICE),
            allowances: DownloadAllowances::new(),
            options: options.clone(),
            max_append,
            observers: ObserverRegistry::new(),
            stopping: stop.subscribe(),
            exchanges: Mutex::default(),
            request_limiter: RequestLimiter::new(options.max_requests, OF_PEER),
            plain: OnceLock::new(),
            dtls: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
            stop,
        }
    }

    /// Binds an address and serves devices on it without DTLS until the server is stopped. Must be called only once.
    /// Returns the bound address.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn listen(&self, address: SocketAddr) -> std::io::Result<SocketAddr> {
        let socket = bind(address)?;
        let bound = socket.local_addr()?;
        if self.shared.plain.set(socket.clone()).is_ok() {
            tokio::spawn(self.shared.clone().receive_from(socket, None));
            tokio::spawn(self.shared.clone().tick());
        }
        Ok(bound)
    }

    /// Like [`Self::listen`], with DTLS.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn listen_secure(
        &self,
        address: SocketAddr,
        credentials: DtlsCredentials,
        options: &SecureOptions,
    ) -> std::io::Result<SocketAddr> {
        let socket = bind(address)?;
        let bound = socket.local_addr()?;
        let secure = Arc::new(DtlsServer::new(socket.clone(), credentials, options.clone())?);
        if self.shared.dtls.set(secure.clone()).is_ok() {
            tokio::spawn(self.shared.clone().receive_from(socket, Some(secure)));
            if self.shared.plain.get().is_none() {
                tokio::spawn(self.shared.clone().tick());
            }
        }
        Ok(bound)
    }

    /// Stops accepting requests, notifies observers, and waits for requests in progress for at most `patience`. Returns
    /// whether all have ended.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.stop.send_replace(true);
        let sessions = &self.shared.services.sessions;
        sessions.close_all(None, CloseReason::Shutdown);
        let ended = async {
            self.shared.request_limiter.wait_idle().await;
            self.shared.observers.wait_ended().await;
        };
        let has_ended = tokio::time::timeout(patience, ended).await.is_ok();
        if let Some(secure) = self.shared.dtls.get() {
            secure.close();
        }
        has_ended
    }
}

fn bind(address: SocketAddr) -> std::io::Result<Arc<UdpSocket>> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // It is no error if the system allows less.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(Arc::new(UdpSocket::from_std(socket.into())?))
}

impl CoapShared {
    /// Receives datagrams until the server stops, as DTLS if `secure` is given.
    async fn receive_from(self: Arc<Self>, socket: Arc<UdpSocket>, secure: Option<Arc<DtlsServer>>) {
        let mut buffer = vec![0; MAX_DATAGRAM];
        let mut stop = self.stopping.clone();
        loop {
            let received = tokio::select! {
                received = socket.recv_from(&mut buffer) => received,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let (datagram, address) = match received {
                Ok((length, address)) => (buffer.get(..length).unwrap_or_default(), address),
                Err(error) => {
                    if let Some(suppressed) = RECEIVE_GATE.open() {
                        warn!(%error, suppressed, "cannot receive datagrams");
                    }
                    tokio::time::sleep(RECEIVE_PAUSE).await;
                    continue;
                }
            };
            let Some(secure) = &secure else {
                self.receive(CoapPeer { address, session: 0 }, datagram);
                continue;
            };
            let DatagramOutcome { messages, ended } = secure.receive(address, datagram);
            for (peer, message) in messages {
                self.receive(peer, &message);
            }
            self.remove_peers(&ended);
        }
    }

    /// Runs the periodic work: retransmissions, and expiry of bodies and sessions.
    async fn tick(self: Arc<Self>) {
        let mut stop = self.stopping.clone();
        let mut interval = tokio::time::interval(TICK);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = 0_u32;
        loop {
            tokio::select! {
                _ = interval.tick() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let now = Instant::now();
            let due = self.exchanges.lock().take_due(now);
            for (peer, datagram) in due {
                self.send(peer, &datagram);
            }
            self.bodies.tick(now);
            self.provisioning_bodies.tick(now);
            ticks = ticks.wrapping_add(1);
            if let Some(secure) = self.dtls.get() {
                self.remove_peers(&secure.tick(now));
                if ticks.is_multiple_of(SILENT_EVERY) {
                    self.remove_peers(&secure.forget_silent(now));
                }
            }
        }
    }

    fn remove_peers(&self, peers: &[CoapPeer]) {
        if peers.is_empty() {
            return;
        }
        {
            let mut exchanges = self.exchanges.lock();
            peers.iter().for_each(|peer| exchanges.remove_peer(*peer));
        }
        peers
            .iter()
            .for_each(|peer| self.observers.remove_peer(self, *peer));
    }

    /// Sends a datagram. Returns whether the peer can be reached at all, not whether the datagram arrives.
    pub(super) fn send(&self, peer: CoapPeer, datagram: &[u8]) -> bool {
        if peer.session > 0 {
            return self.dtls.get().is_some_and(|secure| secure.send(peer, datagram));
        }
        if let Some(socket) = self.plain.get() {
            // A datagram that the system refuses is lost, as any datagram may be.
            let _ = socket.try_send_to(datagram, peer.address);
        }
        true
    }

    /// Sends a confirmable message, built with the message ID assigned to it.
    pub(super) fn send_confirmable(
        &self,
        peer: CoapPeer,
        message: impl FnOnce(u16) -> Bytes,
    ) -> Result<oneshot::Receiver<CoapDelivery>, CoapSendError> {
        let id = self.next_id(peer);
        let datagram = message(id);
        let settled = self
            .exchanges
            .lock()
            .await_acknowledgement(peer, id, datagram.clone(), Instant::now());
        let settled = settled.ok_or(CoapSendError::TooMany)?;
        self.send(peer, &datagram)
            .then_some(settled)
            .ok_or(CoapSendError::NoWay)
    }

    pub(super) fn next_id(&self, peer: CoapPeer) -> u16 {
        self.exchanges.lock().next_id(peer)
    }

    /// Returns the identity of the peer of a DTLS session.
    pub(super) fn identity(&self, peer: CoapPeer) -> Option<Arc<super::dtls::DtlsIdentity>> {
        self.dtls.get().filter(|_| peer.session > 0)?.identity(peer)
    }

    fn receive(self: &Arc<Self>, peer: CoapPeer, datagram: &[u8]) {
        let message = match CoapMessage::decode(datagram) {
            Ok(message) => message,
            Err(error) => {
                self.metrics.rejected.increment(1);
                if let CoapDecodeError::Malformed(header, _) = error
                    && header.kind == CoapMessageType::Confirmable
                {
                    self.send(peer, &CoapEncoder::empty(CoapMessageType::Reset, header.id));
                }
                return;
            }
        };
        match message.kind {
            CoapMessageType::Acknowledgement => {
                self.exchanges
                    .lock()
                    .complete(peer, message.id, CoapDelivery::Acknowledged);
            }
            CoapMessageType::Reset => {
                let is_known = self
                    .exchanges
                    .lock()
                    .complete(peer, message.id, CoapDelivery::Reset);
                if !is_known {
                    self.observers.reset(self, peer, message.id);
                }
            }
            CoapMessageType::Confirmable | CoapMessageType::NonConfirmable if message.code.is_request() => {
                self.request(peer, &message);
            }
            // A ping, or a response that nobody has asked for.
            CoapMessageType::Confirmable => {
                self.send(peer, &CoapEncoder::empty(CoapMessageType::Reset, message.id));
            }
            CoapMessageType::NonConfirmable => {}
        }
    }

    fn request(self: &Arc<Self>, peer: CoapPeer, message: &CoapMessage<'_>) {
        let id = message.id;
        let seen = self.exchanges.lock().begin(peer, id, Instant::now());
        match seen {
            DuplicateCheck::New => {}
            DuplicateCheck::Again(Some(answer)) if message.kind == CoapMessageType::Confirmable => {
                self.send(peer, &answer);
                return;
            }
            DuplicateCheck::Again(_) => return,
        }
        let request = match CoapRequest::read(message, peer) {
            Ok(request) => request,
            Err(code) => {
                self.metrics.rejected.increment(1);
                // A non-confirmable message gets no error (RFC 7252 §5.4.1).
                if message.kind == CoapMessageType::Confirmable {
                    let head = (CoapMessageType::Acknowledgement, id, message.token);
                    self.acknowledge(peer, id, CoapReply::empty(code).encode(head, &[], None));
                }
                return;
            }
        };
        let Some(place) = self.request_limiter.try_acquire(peer) else {
            self.exchanges.lock().forget_message(peer, id);
            return;
        };
        tokio::spawn(self.clone().serve(request, id, place));
    }

    /// Answers a confirmable message in its acknowledgement, and stores the answer for duplicates.
    fn acknowledge(&self, peer: CoapPeer, id: u16, datagram: Bytes) {
        self.exchanges.lock().store_answer(peer, id, datagram.clone());
        self.send(peer, &datagram);
    }

    async fn serve(self: Arc<Self>, request: CoapRequest, id: u16, place: RequestPermit<CoapPeer>) {
        let (peer, token, key, block) = (request.peer, request.token, request.key(), request.block2);
        let is_confirmable = request.is_confirmable;
        let mut working = Box::pin(resources::serve(&self, request));
        if !is_confirmable {
            let mut reply = working.await;
            let head = (CoapMessageType::NonConfirmable, self.next_id(peer), token);
            self.send(peer, &self.render(&reply, &key, block, head));
            finish(&mut reply);
            return;
        }
        let in_time = tokio::time::timeout(self.options.acknowledge_after.0, &mut working).await;
        if let Ok(mut reply) = in_time {
            let head = (CoapMessageType::Acknowledgement, id, token);
            self.acknowledge(peer, id, self.render(&reply, &key, block, head));
            finish(&mut reply);
            return;
        }
        self.acknowledge(
            peer,
            id,
            CoapEncoder::empty(CoapMessageType::Acknowledgement, id).into(),
        );
        let mut reply = working.await;
        let settled = self.send_confirmable(peer, |id| {
            self.render(&reply, &key, block, (CoapMessageType::Confirmable, id, token))
        });
        finish(&mut reply);
        drop(place);
        if let Ok(settled) = settled {
            // The ticks retransmit the response until it is settled; nothing else waits for that.
            let _ = settled.await;
        }
    }

    /// Encodes the datagram of a reply. If the body does not fit, the datagram has the requested block, and the body is
    /// stored for the others.
    pub(super) fn render(
        &self,
        reply: &CoapReply,
        key: &BlockwiseKey,
        wanted: Option<CoapBlock>,
        head: (CoapMessageType, u16, CoapToken),
    ) -> Bytes {
        if let Some(cut) = reply.resource_block {
            return reply.encode(head, &reply.body, Some((cut.block, cut.total)));
        }
        // A block option of the request does not apply to an error.
        let wanted = wanted.filter(|_| !reply.code.is_error());
        let Some((payload, block)) = reply.block(wanted) else {
            return CoapReply::empty(CoapCode::BAD_REQUEST).encode(head, &[], None);
        };
        let size = u32::try_from(reply.body.len()).unwrap_or(u32::MAX);
        if let Some(block) = block {
            if !block.more() {
                self.bodies.remove_response(key);
            } else if block.number() == 0 {
                let body = BlockwiseResponse {
                    bytes: reply.body.clone(),
                    format: reply.format,
                };
                self.bodies.store_response(key, body, Instant::now());
            }
        }
        reply.encode(head, &payload, block.map(|block| (block, size)))
    }
}

/// Runs the callback of a reply after it was sent.
fn finish(reply: &mut CoapReply) {
    if let Some(after) = reply.on_sent.take() {
        after();
    }
}
