//! One socket: who is there, what it has asked for, and what it is told.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use fieldline_core::access::Principal;
use fieldline_model::TenantId;
use rustc_hash::FxHashMap;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, timeout, timeout_at};
use tracing::debug;

use super::alarms::AlarmWatch;
use super::commands::{Command, TelemetryWrapper, Wrapper};
use super::entities::EntityWatch;
use super::limits::Allowance;
use super::mailbox::Mailbox;
use super::updates;
use super::values::ValueWatch;
use crate::auth::Ticket;
use crate::error::ApiError;
use crate::state::Api;

/// The token of the query does not count, or something failed.
const SERVER_ERROR: u16 = 1011;
/// The first message cannot be understood, or its token does not count.
const BAD_DATA: u16 = 1007;
/// Not logged in in time, too many sessions or commands.
const POLICY: u16 = 1008;
/// The peer does not answer pings.
const NOT_RELIABLE: u16 = 4_500;

/// How long a socket may stay without proof of who is there.
const AUTH_TIMEOUT: Duration = Duration::from_secs(10);
/// Between pings. A peer that has answered none of three is gone.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const MOST_UNANSWERED: u32 = 3;
/// How long a message may take to be sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Between looks at alarms that have changed, at least; and at least so many times what the last look took.
const ALARM_PAUSE: Duration = Duration::from_millis(200);
const ALARM_REST: u32 = 10;
/// Commands of a session at most, whatever the profile says.
const MAX_COMMANDS: usize = 1_000;

/// Which endpoint was connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    General,
    Telemetry,
}

/// Why a session ends.
pub(super) struct Close(u16, String);

/// What became of a command.
pub(super) type Outcome = Result<(), Failed>;

/// Why a command failed.
pub(super) struct Failed {
    pub(super) code: u16,
    pub(super) message: String,
}

impl Failed {
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self {
            code: updates::BAD_REQUEST,
            message: message.into(),
        }
    }

    pub(super) fn unauthorized() -> Self {
        Self {
            code: updates::UNAUTHORIZED,
            message: "Unauthorized".to_owned(),
        }
    }

    pub(super) fn internal(error: &dyn std::fmt::Display, message: &str) -> Self {
        debug!(%error, "a command of a socket has failed");
        Self {
            code: updates::INTERNAL,
            message: message.to_owned(),
        }
    }
}

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        let status = error.status();
        if status.is_server_error() {
            return Self::internal(&error.message(), "Internal Server error!");
        }
        match status.as_u16() {
            401 | 403 | 404 => Self::unauthorized(),
            _ => Self::bad(error.message()),
        }
    }
}

/// A command that goes on.
pub(super) enum Running {
    Values(ValueWatch),
    Entities(Box<EntityWatch>),
    Alarms(Box<AlarmWatch>),
}

/// What commands work with.
pub(super) struct Scope {
    pub(super) api: Api,
    pub(super) who: Principal,
    pub(super) mailbox: Arc<Mailbox>,
    /// What is to be sent.
    pub(super) out: Vec<String>,
}

/// A session of somebody known.
pub(super) struct Session {
    scope: Scope,
    socket: WebSocket,
    endpoint: Endpoint,
    number: u64,
    ticket: Ticket,
    allowance: Allowance,
    running: FxHashMap<i64, Running>,
    unanswered: u32,
    /// Whether the client was told that it gets fewer updates.
    told_too_many: bool,
}

impl Session {
    /// Serves a socket until it ends.
    pub(super) async fn run(api: Api, mut socket: WebSocket, endpoint: Endpoint, token: Option<String>) {
        let Some(unknown) = api.socket_limits.enter() else {
            return end(&mut socket, Close(POLICY, "Too many sockets".to_owned())).await;
        };
        let known = match &token {
            Some(token) => authenticate(&api, token)
                .await
                .map_err(|error| Close(SERVER_ERROR, error.message().to_owned())),
            None => Err(Close(POLICY, String::new())),
        };
        let (known, first) = match (known, token) {
            (Ok(known), _) => (known, Vec::new()),
            (Err(close), Some(_)) => return end(&mut socket, close).await,
            (Err(_), None) => match log_in(&api, &mut socket).await {
                Ok(known) => known,
                Err(Some(close)) => return end(&mut socket, close).await,
                Err(None) => return,
            },
        };
        let (who, ticket) = known;
        drop(unknown);
        let opened = api.socket_limits.open(&api.entities, &api.clock, who).await;
        let allowance = match opened {
            Ok(Ok(allowance)) => allowance,
            Ok(Err(reason)) => return end(&mut socket, Close(POLICY, reason)).await,
            Err(error) => {
                debug!(%error, "a socket was refused");
                return end(
                    &mut socket,
                    Close(SERVER_ERROR, "Internal Server error!".to_owned()),
                )
                .await;
            }
        };
        let number = api.hub.session();
        let mut session = Self {
            scope: Scope {
                api,
                who,
                mailbox: Arc::default(),
                out: Vec::new(),
            },
            socket,
            endpoint,
            number,
            ticket,
            allowance,
            running: FxHashMap::default(),
            unanswered: 0,
            told_too_many: false,
        };
        let ended = session.serve(first).await;
        session.end_all();
        if let Err(Some(close)) = ended {
            end(&mut session.socket, close).await;
        }
    }

    /// Ends with why the session is closed, or nothing where the peer has gone.
    async fn serve(&mut self, first: Vec<Command>) -> Result<(), Option<Close>> {
        self.handle(first).await?;
        let mut pings = ticks(PING_INTERVAL);
        let mut refreshes = ticks(self.scope.api.options.live_refresh.0);
        let mut alarms_due: Option<Instant> = None;
        let mut alarm_pause = ALARM_PAUSE;
        loop {
            let alarms = async {
                match alarms_due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = self.socket.recv() => match message {
                    Some(Ok(message)) => self.on_message(message).await?,
                    Some(Err(_)) | None => return Err(None),
                },
                () = self.scope.mailbox.wait() => {
                    let delivery = self.scope.mailbox.take();
                    if delivery.is_lost {
                        return Err(Some(Close(POLICY, "Max pending updates limit reached!".to_owned())));
                    }
                    if delivery.alarms {
                        alarms_due.get_or_insert_with(|| Instant::now() + alarm_pause);
                    }
                    self.on_news(delivery.news);
                }
                () = alarms => {
                    alarms_due = None;
                    let begun = Instant::now();
                    self.refresh(false).await;
                    alarm_pause = ALARM_PAUSE.max(begun.elapsed() * ALARM_REST);
                }
                _ = refreshes.tick() => self.refresh(true).await,
                _ = pings.tick() => self.ping().await?,
            }
            self.flush(true).await?;
        }
    }

    async fn on_message(&mut self, message: Message) -> Result<(), Option<Close>> {
        match message {
            Message::Text(text) => match parse(self.endpoint, &text) {
                Ok(wrapper) => self.handle(wrapper.cmds).await,
                Err(_) => {
                    let error = updates::error(1, updates::BAD_REQUEST, "Failed to parse the payload");
                    self.scope.out.push(error);
                    self.flush(false).await
                }
            },
            Message::Pong(_) => {
                self.unanswered = 0;
                Ok(())
            }
            Message::Close(_) => Err(None),
            Message::Binary(_) | Message::Ping(_) => Ok(()),
        }
    }

    async fn handle(&mut self, commands: Vec<Command>) -> Result<(), Option<Close>> {
        for command in commands {
            let id = command.id();
            if let Err(failed) = self.start(command).await? {
                self.scope
                    .out
                    .push(updates::error(id, failed.code, &failed.message));
            }
            self.flush(false).await?;
        }
        Ok(())
    }

    /// Starts, changes or ends a command.
    async fn start(&mut self, command: Command) -> Result<Outcome, Option<Close>> {
        let id = command.id();
        match &command {
            Command::EntityDataUnsubscribe(_)
            | Command::EntityCountUnsubscribe(_)
            | Command::AlarmDataUnsubscribe(_)
            | Command::AlarmCountUnsubscribe(_)
            | Command::AlarmStatusUnsubscribe(_) => {
                self.stop(id);
                return Ok(Ok(()));
            }
            Command::Attributes(watch) | Command::Timeseries(watch) if watch.unsubscribe => {
                if watch.entity_id.is_empty() {
                    self.end_all();
                } else {
                    self.stop(id);
                }
                return Ok(Ok(()));
            }
            _ => {}
        }
        if id < 0 {
            return Ok(Err(Failed::bad("Cmd id is negative value!")));
        }
        if let Command::EntityData(command) = &command
            && let Some(Running::Entities(_)) = self.running.get(&id)
        {
            if command.query.is_none() && !command.asks_for_values() {
                return Ok(Err(Failed::bad("Query is empty!")));
            }
        } else {
            self.stop(id);
        }
        if let Command::TimeseriesHistory(watch) = command {
            return Ok(super::values::history(&mut self.scope, watch).await);
        }
        let is_new = !self.running.contains_key(&id);
        if is_new {
            if self.running.len() >= MAX_COMMANDS {
                return Err(Some(Close(
                    POLICY,
                    "Max session subscriptions limit reached!".to_owned(),
                )));
            }
            self.allowance
                .add_command()
                .map_err(|reason| Some(Close(POLICY, reason)))?;
        }
        let outcome = self.begin(id, command).await;
        if is_new && !self.running.contains_key(&id) {
            self.allowance.end_command();
        }
        Ok(outcome)
    }

    async fn begin(&mut self, id: i64, command: Command) -> Outcome {
        let scope = &mut self.scope;
        let running = match command {
            Command::Attributes(watch) => Running::Values(ValueWatch::attributes(scope, watch).await?),
            Command::Timeseries(watch) => Running::Values(ValueWatch::series(scope, watch).await?),
            Command::EntityData(command) => match self.running.get_mut(&id) {
                Some(Running::Entities(entities)) => return entities.change(scope, *command).await,
                _ => Running::Entities(Box::new(EntityWatch::start(scope, *command).await?)),
            },
            Command::EntityCount(command) => {
                Running::Alarms(Box::new(AlarmWatch::entities(scope, command).await?))
            }
            Command::AlarmData(command) => {
                Running::Alarms(Box::new(AlarmWatch::page(scope, *command).await?))
            }
            Command::AlarmCount(command) => {
                Running::Alarms(Box::new(AlarmWatch::count(scope, command).await?))
            }
            Command::AlarmStatus(command) => {
                Running::Alarms(Box::new(AlarmWatch::status(scope, command).await?))
            }
            _ => return Ok(()),
        };
        if matches!(running, Running::Alarms(_)) {
            let api = &self.scope.api;
            api.hub
                .watch_alarms(self.scope.who.tenant, self.number, &self.scope.mailbox);
        }
        self.running.insert(id, running);
        Ok(())
    }

    fn stop(&mut self, id: i64) {
        let Some(running) = self.running.remove(&id) else {
            return;
        };
        running.end(&self.scope, id);
        self.allowance.end_command();
        if !self
            .running
            .values()
            .any(|running| matches!(running, Running::Alarms(_)))
        {
            self.scope
                .api
                .hub
                .unwatch_alarms(self.scope.who.tenant, self.number);
        }
    }

    fn end_all(&mut self) {
        let ids: Vec<i64> = self.running.keys().copied().collect();
        for id in ids {
            self.stop(id);
        }
    }

    /// Turns changes into updates.
    fn on_news(&mut self, news: Vec<(super::mailbox::Place, super::mailbox::News)>) {
        let mut changes: FxHashMap<i64, Vec<updates::EntityUpdate>> = FxHashMap::default();
        for ((command, subject, source), news) in news {
            match self.running.get_mut(&command) {
                Some(Running::Values(watch)) => {
                    self.scope.out.extend(watch.update(command, source, &news));
                }
                Some(Running::Entities(entities)) => {
                    let changed = entities.update(subject, source, &news);
                    changes.entry(command).or_default().extend(changed);
                }
                Some(Running::Alarms(_)) | None => {}
            }
        }
        for (command, changes) in changes {
            if !changes.is_empty() {
                let allowed = super::entities::MAX_ENTITIES;
                self.scope
                    .out
                    .push(updates::entity_changes(command, &changes, allowed));
            }
        }
    }

    /// Evaluates again what may have changed: at intervals everything, else what shows alarms.
    async fn refresh(&mut self, all: bool) {
        let scope = &mut self.scope;
        for (id, running) in &mut self.running {
            let outcome = match running {
                Running::Alarms(alarms) if all || alarms.shows_alarms() => alarms.refresh(scope, *id).await,
                Running::Entities(entities) if all => entities.refresh(scope, *id).await,
                _ => Ok(()),
            };
            if let Err(failed) = outcome {
                scope.out.push(updates::error(*id, failed.code, &failed.message));
            }
        }
    }

    async fn ping(&mut self) -> Result<(), Option<Close>> {
        if self.unanswered >= MOST_UNANSWERED {
            return Err(Some(Close(NOT_RELIABLE, "Session not reliable".to_owned())));
        }
        // Who was deleted, disabled or logged out is told nothing any more; a token that expires meanwhile is no reason.
        let known = self.scope.api.sessions.redeem(self.ticket).await;
        if known.is_err_and(|error| !error.status().is_server_error()) {
            return Err(Some(Close(POLICY, "Session is no longer valid".to_owned())));
        }
        self.unanswered += 1;
        self.send(Message::Ping(axum::body::Bytes::new())).await
    }

    /// Sends what is to be sent; updates within the rate that the profile allows.
    async fn flush(&mut self, limited: bool) -> Result<(), Option<Close>> {
        for text in std::mem::take(&mut self.scope.out) {
            if limited && !self.allowance.may_send() {
                if !std::mem::replace(&mut self.told_too_many, true) {
                    let error = updates::error(0, updates::TOO_MANY, "Too many updates!");
                    self.send(Message::Text(error.into())).await?;
                }
                continue;
            }
            if limited {
                self.told_too_many = false;
            }
            self.send(Message::Text(text.into())).await?;
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), Option<Close>> {
        match timeout(SEND_TIMEOUT, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(None),
        }
    }
}

impl Running {
    fn end(&self, scope: &Scope, id: i64) {
        match self {
            Self::Values(watch) => watch.end(scope, id),
            Self::Entities(entities) => entities.end(scope, id),
            Self::Alarms(_) => {}
        }
    }
}

impl Scope {
    /// The tenant whose entities these are.
    pub(super) fn tenant(&self) -> TenantId {
        self.who.tenant
    }
}

type Known = (Principal, Ticket);

async fn authenticate(api: &Api, token: &str) -> Result<Known, ApiError> {
    let claims = api.tokens.read_access(token, api.clock.now_ms())?;
    let ticket = claims.ticket();
    let known = api.sessions.redeem(ticket).await?;
    Ok((Principal::of(&known.user), ticket))
}

/// Waits for the message that says who is there; gives the commands that came with it, too.
async fn log_in(api: &Api, socket: &mut WebSocket) -> Result<(Known, Vec<Command>), Option<Close>> {
    let deadline = Instant::now() + AUTH_TIMEOUT;
    loop {
        let message = timeout_at(deadline, socket.recv()).await;
        let text = match message {
            Err(_) => return Err(Some(Close(POLICY, "Authentication timeout".to_owned()))),
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return Err(None),
            Ok(Some(Ok(_))) => continue,
        };
        let wrapper: Wrapper = serde_json::from_str(&text)
            .map_err(|_| Some(Close(BAD_DATA, "Failed to parse the payload".to_owned())))?;
        let Some(proof) = wrapper.auth_cmd else {
            return Err(Some(Close(POLICY, "Auth cmd is missing".to_owned())));
        };
        return match authenticate(api, &proof.token).await {
            Ok(known) => Ok((known, wrapper.cmds)),
            Err(error) => Err(Some(Close(BAD_DATA, error.message().to_owned()))),
        };
    }
}

fn parse(endpoint: Endpoint, text: &str) -> serde_json::Result<Wrapper> {
    match endpoint {
        Endpoint::General => serde_json::from_str(text),
        Endpoint::Telemetry => Ok(Wrapper {
            auth_cmd: None,
            cmds: serde_json::from_str::<TelemetryWrapper>(text)?.into_commands(),
        }),
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Says why, and waits a moment for the peer to hear it.
async fn end(socket: &mut WebSocket, Close(code, reason): Close) {
    const PATIENCE: Duration = Duration::from_secs(1);
    // A reason must fit into a control frame.
    let reason: String = reason.chars().take(40).collect();
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    let told = async {
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    tokio::select! {
        () = told => {}
        () = sleep(PATIENCE) => {}
    }
}
