//! One socket: its session, its commands and its updates.

mod output;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use fieldline_core::memory_pool::{ExhaustedLimit, MemoryRefusal, MemoryShare};
use fieldline_core::reader;
use fieldline_entities::access::{self, AccessOperation};
use fieldline_model::EntityId;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tracing::debug;

use self::output::close_socket;
use super::active_command::{ActiveCommand, CommandContext, CommandError, CommandResult};
use super::alarms::AlarmWatch;
use super::commands::{CommandWrapper, NotificationWrapper, TelemetryWrapper, WsCommand};
use super::entities::EntityWatch;
use super::limits::{SessionQuota, SessionRefusal};
use super::login::{self, AuthenticatedPeer, WsCredentials};
use super::updates;
use super::values::ValueWatch;
use crate::state::SharedApi;

/// The token in the query is invalid, or an internal error occurred.
const SERVER_ERROR: u16 = 1011;
/// The first message cannot be parsed, or its token is invalid.
pub(super) const BAD_DATA: u16 = 1007;
/// Authentication timed out, or there are too many sessions or commands.
pub(super) const POLICY: u16 = 1008;
/// The session has ended as such; clients take [`POLICY`] for too many of them.
const ENDED: u16 = 1000;
/// The client does not answer pings.
const NOT_RELIABLE: u16 = 4_500;

/// Interval of pings. A client that has answered none of three is considered gone.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const MAX_UNANSWERED: u32 = 3;
/// Shortest pause between refreshes of changed alarms.
const ALARM_PAUSE: Duration = Duration::from_millis(200);
/// The pause between refreshes is at least this many times the duration of the last one, including its wait for a
/// permit.
const REFRESH_PAUSE_FACTOR: u32 = 10;
/// Most commands per session, whatever the profile allows.
const MAX_COMMANDS: usize = 1_000;
/// Most bytes of the pages that a session subscribes to.
const MAX_HELD: usize = 64 << 20;

/// The endpoint of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WsEndpoint {
    General,
    Telemetry,
    Notifications,
}

/// Why the server closes a session: code and reason of the close frame.
pub(super) struct WsCloseReason(pub(super) u16, pub(super) String);

/// How a session ends.
pub(super) enum SessionEnd {
    /// The client is gone: no close frame is sent.
    PeerGone,
    /// The server closes the session.
    Closed(WsCloseReason),
}

impl From<WsCloseReason> for SessionEnd {
    fn from(reason: WsCloseReason) -> Self {
        Self::Closed(reason)
    }
}

/// Why a command failed.
enum CommandFailure {
    /// The client gets an error, and the session goes on.
    Refused(CommandError),
    /// The session ends.
    Ended(SessionEnd),
}

impl From<CommandError> for CommandFailure {
    fn from(error: CommandError) -> Self {
        Self::Refused(error)
    }
}

impl From<WsCloseReason> for CommandFailure {
    fn from(reason: WsCloseReason) -> Self {
        Self::Ended(reason.into())
    }
}

/// A session of an authenticated client.
pub(super) struct WsSession {
    context: CommandContext,
    socket: WebSocket,
    endpoint: WsEndpoint,
    number: u64,
    credentials: WsCredentials,
    quota: SessionQuota,
    commands: FxHashMap<i64, ActiveCommand>,
    /// Memory of the subscriptions and of messages to send.
    memory: MemoryShare,
    /// Bytes of the subscriptions.
    followed_bytes: usize,
    unanswered: u32,
    /// Whether the client was told that updates exceed the rate limit.
    is_limit_reported: bool,
}

impl WsSession {
    /// Serves a socket until it ends.
    pub(super) async fn run(
        api: SharedApi,
        mut socket: WebSocket,
        endpoint: WsEndpoint,
        token: Option<String>,
    ) {
        let Some(unknown) = api.socket_limits.try_admit_socket() else {
            return close_socket(&mut socket, WsCloseReason(POLICY, "Too many sockets".to_owned())).await;
        };
        let known = match &token {
            Some(token) => login::by_token(&api, token)
                .await
                .map_err(|error| WsCloseReason(SERVER_ERROR, error.message().to_owned()).into()),
            None => login::log_in(&api, &mut socket).await,
        };
        let AuthenticatedPeer { who, proof, commands } = match known {
            Ok(known) => known,
            Err(SessionEnd::Closed(close)) => return close_socket(&mut socket, close).await,
            Err(SessionEnd::PeerGone) => return,
        };
        drop(unknown);
        let opened = api.socket_limits.open(&api.entities, &api.clock, who).await;
        let allowance = match opened {
            Ok(allowance) => allowance,
            Err(SessionRefusal::TooMany(reason)) => {
                return close_socket(&mut socket, WsCloseReason(POLICY, reason)).await;
            }
            Err(SessionRefusal::Store(error)) => {
                debug!(%error, "a socket was refused");
                return close_socket(
                    &mut socket,
                    WsCloseReason(SERVER_ERROR, "Internal Server error!".to_owned()),
                )
                .await;
            }
        };
        let (number, mailbox) = api.hub.open(who);
        let memory = api.memory.sockets.share(who.tenant);
        let mut session = Self {
            context: CommandContext {
                api,
                who,
                mailbox,
                out: Vec::new(),
            },
            socket,
            endpoint,
            number,
            credentials: proof,
            quota: allowance,
            commands: FxHashMap::default(),
            memory,
            followed_bytes: 0,
            unanswered: 0,
            is_limit_reported: false,
        };
        let ended = reader::with_reader(who.tenant, session.serve(commands)).await;
        session.end_all();
        session.context.api.hub.close(number);
        if let Err(SessionEnd::Closed(close)) = ended {
            close_socket(&mut session.socket, close).await;
        }
    }

    /// Serves commands and changes until the session ends.
    async fn serve(&mut self, first: Vec<WsCommand>) -> Result<(), SessionEnd> {
        self.handle(first).await?;
        // The principal may have changed before the mailbox was registered.
        self.check_principal().await?;
        let mut pings = ticks(PING_INTERVAL);
        let refresh_pause = self.context.api.options.live_refresh.0;
        let mut refresh_due = Instant::now() + refresh_pause;
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
                    Some(Err(_)) | None => return Err(SessionEnd::PeerGone),
                },
                () = self.context.mailbox.wait() => {
                    let delivery = self.context.mailbox.take();
                    if let Some(reason) = delivery.close_reason {
                        return Err(WsCloseReason(POLICY, reason.to_owned()).into());
                    }
                    if delivery.principal_changed {
                        self.check_principal().await?;
                    }
                    if !delivery.changed_entities.is_empty() {
                        self.refresh_permissions(delivery.changed_entities).await;
                    }
                    if delivery.alarms_changed {
                        alarms_due.get_or_insert_with(|| Instant::now() + alarm_pause);
                    }
                    self.handle_changes(delivery.values);
                }
                () = alarms => {
                    alarms_due = None;
                    let took = self.refresh(false).await;
                    alarm_pause = ALARM_PAUSE.max(took * REFRESH_PAUSE_FACTOR);
                }
                () = tokio::time::sleep_until(refresh_due) => {
                    let took = self.refresh(true).await;
                    refresh_due = Instant::now() + refresh_pause.max(took * REFRESH_PAUSE_FACTOR);
                }
                _ = pings.tick() => self.ping().await?,
            }
            self.flush(true).await?;
        }
    }

    async fn on_message(&mut self, message: Message) -> Result<(), SessionEnd> {
        match message {
            Message::Text(text) => match parse(self.endpoint, &text) {
                Ok(commands) => self.handle(commands).await,
                Err(_) => {
                    let error = updates::error(1, updates::BAD_REQUEST, "Failed to parse the payload");
                    self.context.out.push(error);
                    self.flush(false).await
                }
            },
            Message::Pong(_) => {
                self.unanswered = 0;
                Ok(())
            }
            Message::Close(_) => Err(SessionEnd::PeerGone),
            Message::Binary(_) | Message::Ping(_) => Ok(()),
        }
    }

    async fn handle(&mut self, commands: Vec<WsCommand>) -> Result<(), SessionEnd> {
        for command in commands {
            let id = command.id();
            match self.start(command).await {
                Ok(()) => {}
                Err(CommandFailure::Refused(failed)) => {
                    let error = updates::error(id, failed.code, &failed.message);
                    self.context.out.push(error);
                }
                Err(CommandFailure::Ended(end)) => return Err(end),
            }
            self.flush(false).await?;
        }
        Ok(())
    }

    /// Starts, changes or ends a command.
    async fn start(&mut self, command: WsCommand) -> Result<(), CommandFailure> {
        let id = command.id();
        match &command {
            WsCommand::EntityDataUnsubscribe(_)
            | WsCommand::EntityCountUnsubscribe(_)
            | WsCommand::AlarmDataUnsubscribe(_)
            | WsCommand::AlarmCountUnsubscribe(_)
            | WsCommand::AlarmStatusUnsubscribe(_)
            | WsCommand::NotificationsUnsubscribe(_) => {
                self.stop(id);
                return Ok(());
            }
            // There are no notifications that could be unread.
            WsCommand::MarkNotificationsAsRead(_) | WsCommand::MarkAllNotificationsAsRead(_) => {
                return Ok(());
            }
            WsCommand::Attributes(watch) | WsCommand::Timeseries(watch) if watch.unsubscribe => {
                if watch.entity_id.is_empty() {
                    self.end_all();
                } else {
                    self.stop(id);
                }
                return Ok(());
            }
            _ => {}
        }
        if id < 0 {
            return Err(CommandError::bad("Cmd id is negative value!").into());
        }
        if let WsCommand::TimeseriesHistory(watch) = command {
            return Ok(super::values::history(&mut self.context, watch).await?);
        }
        if let WsCommand::EntityData(command) = &command
            && let Some(ActiveCommand::Entities(_)) = self.commands.get(&id)
        {
            if command.query.is_none() && !command.asks_for_values() {
                return Err(CommandError::bad("Query is empty!").into());
            }
        } else {
            self.stop(id);
        }
        let is_new = !self.commands.contains_key(&id);
        if is_new {
            if self.commands.len() >= MAX_COMMANDS {
                return Err(
                    WsCloseReason(POLICY, "Max session subscriptions limit reached!".to_owned()).into(),
                );
            }
            self.quota
                .add_command()
                .map_err(|reason| WsCloseReason(POLICY, reason))?;
        }
        let outcome = self.begin(id, command).await;
        if is_new && !self.commands.contains_key(&id) {
            self.quota.end_command();
        }
        self.followed_bytes = self.commands.values().map(ActiveCommand::held).sum();
        if outcome.is_ok() && self.followed_bytes > MAX_HELD {
            self.stop(id);
            let most = MAX_HELD >> 20;
            return Err(CommandError::bad(format!(
                "A session must not follow more than {most} MiB of entities and values!"
            ))
            .into());
        }
        if outcome.is_ok()
            && let Err(refusal) = self.memory.resize(self.followed_bytes.max(self.memory.held()))
        {
            self.stop(id);
            self.close_largest_session(&refusal);
            return Err(CommandError::from(refusal).into());
        }
        self.context.mailbox.note_followed(self.followed_bytes);
        Ok(outcome?)
    }

    /// Closes the largest session of the tenant, if the tenant has used up its part of the memory.
    fn close_largest_session(&self, refusal: &MemoryRefusal) {
        if refusal.exhausted == ExhaustedLimit::Part {
            self.context.api.hub.close_largest(self.context.who.tenant);
        }
    }

    async fn begin(&mut self, id: i64, command: WsCommand) -> CommandResult {
        let scope = &mut self.context;
        let running = match command {
            WsCommand::Attributes(watch) => {
                ActiveCommand::Values(ValueWatch::attributes(scope, watch).await?)
            }
            WsCommand::Timeseries(watch) => ActiveCommand::Values(ValueWatch::series(scope, watch).await?),
            WsCommand::EntityData(command) => match self.commands.get_mut(&id) {
                Some(ActiveCommand::Entities(entities)) => return entities.change(scope, *command).await,
                _ => ActiveCommand::Entities(Box::new(EntityWatch::start(scope, *command).await?)),
            },
            WsCommand::EntityCount(command) => {
                ActiveCommand::Alarms(Box::new(AlarmWatch::entities(scope, command).await?))
            }
            WsCommand::AlarmData(command) => {
                ActiveCommand::Alarms(Box::new(AlarmWatch::page(scope, *command).await?))
            }
            WsCommand::AlarmCount(command) => {
                ActiveCommand::Alarms(Box::new(AlarmWatch::count(scope, command).await?))
            }
            WsCommand::AlarmStatus(command) => {
                ActiveCommand::Alarms(Box::new(AlarmWatch::status(scope, command).await?))
            }
            WsCommand::Notifications(_) => {
                scope.out.push(updates::no_notifications(id));
                ActiveCommand::Inbox
            }
            WsCommand::NotificationsCount(_) => {
                scope.out.push(updates::no_notifications_count(id));
                ActiveCommand::Inbox
            }
            _ => return Ok(()),
        };
        if running.shows_alarms() {
            let api = &self.context.api;
            api.hub
                .watch_alarms(self.context.who.tenant, self.number, &self.context.mailbox);
        }
        self.commands.insert(id, running);
        Ok(())
    }

    fn stop(&mut self, id: i64) {
        if self.remove(id) {
            self.followed_bytes = self.commands.values().map(ActiveCommand::held).sum();
            self.context.mailbox.note_followed(self.followed_bytes);
            self.memory.shrink_to(self.followed_bytes);
        }
    }

    /// Ends a command; returns whether it existed.
    fn remove(&mut self, id: i64) -> bool {
        let Some(running) = self.commands.remove(&id) else {
            return false;
        };
        running.end(&self.context, id);
        self.context.mailbox.discard_command(id);
        self.quota.end_command();
        if running.shows_alarms() && !self.commands.values().any(ActiveCommand::shows_alarms) {
            self.context
                .api
                .hub
                .unwatch_alarms(self.context.who.tenant, self.number);
        }
        true
    }

    fn end_all(&mut self) {
        let ids: Vec<i64> = self.commands.keys().copied().collect();
        for id in ids {
            self.remove(id);
        }
        self.followed_bytes = 0;
        self.context.mailbox.note_followed(0);
        self.memory.shrink_to(0);
    }

    /// Converts changes into updates.
    fn handle_changes(&mut self, news: Vec<(super::mailbox::UpdateKey, super::mailbox::PendingValues)>) {
        let mut changes: FxHashMap<i64, Vec<updates::EntityUpdate>> = FxHashMap::default();
        for ((command, subject, source), news) in news {
            match self.commands.get_mut(&command) {
                Some(ActiveCommand::Values(watch)) => {
                    self.context.out.extend(watch.update(command, source, &news));
                }
                Some(ActiveCommand::Entities(entities)) => {
                    let changed = entities.update(subject, source, &news);
                    changes.entry(command).or_default().extend(changed);
                }
                Some(ActiveCommand::Alarms(alarms)) => {
                    self.context
                        .out
                        .extend(alarms.update(command, subject, source, &news));
                }
                Some(ActiveCommand::Inbox) | None => {}
            }
        }
        for (command, changes) in changes {
            if !changes.is_empty() {
                let allowed = super::entities::MAX_ENTITIES;
                self.context
                    .out
                    .push(updates::entity_changes(command, &changes, allowed));
            }
        }
    }

    /// Evaluates queries again: all of them if `all`, otherwise only those that show alarms. Returns how long that
    /// took.
    async fn refresh(&mut self, all: bool) -> Duration {
        let begun = Instant::now();
        let scope = &mut self.context;
        let mut denied = Vec::new();
        for (id, running) in &mut self.commands {
            let again = match running {
                ActiveCommand::Alarms(alarms) => all || alarms.shows_alarms(),
                ActiveCommand::Entities(entities) => all && entities.is_dynamic(),
                ActiveCommand::Values(_) | ActiveCommand::Inbox => false,
            };
            if !again {
                continue;
            }
            let hub = Arc::clone(&scope.api.hub);
            let _look = hub.refresh_permits.acquire().await;
            let outcome = match running {
                ActiveCommand::Alarms(alarms) => alarms.refresh(scope, *id).await,
                ActiveCommand::Entities(entities) => entities.refresh(scope).await,
                ActiveCommand::Values(_) | ActiveCommand::Inbox => Ok(()),
            };
            if let Err(failed) = outcome {
                scope.out.push(updates::error(*id, failed.code, &failed.message));
                if failed.code == updates::UNAUTHORIZED {
                    denied.push(*id);
                }
            }
        }
        for id in denied {
            self.stop(id);
        }
        self.followed_bytes = self.commands.values().map(ActiveCommand::held).sum();
        self.context.mailbox.note_followed(self.followed_bytes);
        if let Err(refusal) = self.memory.resize(self.followed_bytes) {
            self.close_largest_session(&refusal);
        }
        begun.elapsed()
    }

    /// Ends the session if its user was deleted, disabled or logged out, or has other rights now.
    async fn check_principal(&mut self) -> Result<(), SessionEnd> {
        let is_same = match self.credentials.authenticate(&self.context.api).await {
            Ok(who) => who == self.context.who,
            Err(error) => error.status().is_server_error(),
        };
        if is_same {
            return Ok(());
        }
        Err(WsCloseReason(ENDED, "Session is no longer valid".to_owned()).into())
    }

    /// Stops updates of entities that the client may no longer see.
    async fn refresh_permissions(&mut self, saved: FxHashSet<EntityId>) {
        let api = &self.context.api;
        let asked = saved.iter().copied();
        let permitted = access::filter_permitted(
            &api.entities,
            &self.context.who,
            AccessOperation::ReadTelemetry,
            asked,
        )
        .await;
        let lost: FxHashSet<EntityId> = match permitted {
            Ok(permitted) => saved.into_iter().filter(|id| !permitted.contains(id)).collect(),
            Err(error) => {
                debug!(%error, "rights cannot be looked up");
                // If the check fails, the client gets no updates that it may not see.
                saved
            }
        };
        if lost.is_empty() {
            return;
        }
        let mut ended = Vec::new();
        for (id, running) in &mut self.commands {
            match running {
                ActiveCommand::Values(watch) if lost.contains(&watch.entity) => ended.push(*id),
                ActiveCommand::Entities(entities) => entities.drop_entities(&self.context, &lost),
                ActiveCommand::Alarms(alarms) => alarms.drop_entities(&self.context, *id, &lost),
                ActiveCommand::Values(_) | ActiveCommand::Inbox => {}
            }
        }
        for id in ended {
            self.stop(id);
            let failed = CommandError::unauthorized();
            self.context
                .out
                .push(updates::error(id, failed.code, &failed.message));
        }
        self.refresh(false).await;
    }

    async fn ping(&mut self) -> Result<(), SessionEnd> {
        if self.unanswered >= MAX_UNANSWERED {
            return Err(WsCloseReason(NOT_RELIABLE, "Session not reliable".to_owned()).into());
        }
        // No event reports a logout or an expired key, so both are checked here.
        self.check_principal().await?;
        self.unanswered += 1;
        self.send(Message::Ping(axum::body::Bytes::new())).await
    }
}

fn parse(endpoint: WsEndpoint, text: &str) -> serde_json::Result<Vec<WsCommand>> {
    Ok(match endpoint {
        WsEndpoint::General => serde_json::from_str::<CommandWrapper>(text)?.cmds,
        WsEndpoint::Telemetry => serde_json::from_str::<TelemetryWrapper>(text)?.into_commands(),
        WsEndpoint::Notifications => serde_json::from_str::<NotificationWrapper>(text)?.into_commands(),
    })
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
