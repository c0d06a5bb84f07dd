//! Active commands, their context, and their errors.

use std::sync::Arc;

use fieldline_core::memory_pool::MemoryRefusal;
use fieldline_entities::access::Principal;
use fieldline_model::TenantId;
use tracing::debug;

use super::alarms::AlarmWatch;
use super::entities::EntityWatch;
use super::mailbox::SessionMailbox;
use super::updates;
use super::values::ValueWatch;
use crate::error::ApiError;
use crate::state::SharedApi;
use crate::telemetry::{PointReader, PointsError};

/// Result of a command.
pub(super) type CommandResult = Result<(), CommandError>;

/// Why a command failed.
pub(super) struct CommandError {
    pub(super) code: u16,
    pub(super) message: String,
}

impl CommandError {
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

impl From<ApiError> for CommandError {
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

impl From<MemoryRefusal> for CommandError {
    fn from(refusal: MemoryRefusal) -> Self {
        Self {
            code: updates::TOO_MANY,
            message: refusal.to_string(),
        }
    }
}

impl From<PointsError> for CommandError {
    fn from(error: PointsError) -> Self {
        match error {
            PointsError::Invalid(message) => Self::bad(message),
            PointsError::Store(error) => Self::internal(&error, "Failed to fetch data!"),
            PointsError::Memory(refusal) => refusal.into(),
        }
    }
}

/// A command that stays active.
pub(super) enum ActiveCommand {
    Values(ValueWatch),
    Entities(Box<EntityWatch>),
    Alarms(Box<AlarmWatch>),
    /// A subscription to notifications; there are none.
    Inbox,
}

/// Context of commands.
pub(super) struct CommandContext {
    pub(super) api: SharedApi,
    pub(super) who: Principal,
    pub(super) mailbox: Arc<SessionMailbox>,
    /// Messages to send.
    pub(super) out: Vec<String>,
}

impl ActiveCommand {
    pub(super) fn end(&self, scope: &CommandContext, id: i64) {
        match self {
            Self::Values(watch) => watch.end(scope, id),
            Self::Entities(entities) => entities.end(scope, id),
            Self::Alarms(alarms) => alarms.end(scope, id),
            Self::Inbox => {}
        }
    }

    /// Returns the approximate number of bytes that it keeps.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Entities(entities) => entities.held(),
            Self::Alarms(alarms) => alarms.held(),
            Self::Values(values) => values.held(),
            Self::Inbox => 0,
        }
    }

    /// Whether changed alarms require a refresh.
    pub(super) fn shows_alarms(&self) -> bool {
        matches!(self, Self::Alarms(alarms) if alarms.shows_alarms())
    }
}

impl CommandContext {
    /// Creates the reader for the points of a command.
    pub(super) fn reading(&self) -> PointReader {
        PointReader::new(self.api.memory.sockets.share(self.who.tenant))
    }

    /// Returns the tenant of the entities.
    pub(super) fn tenant(&self) -> TenantId {
        self.who.tenant
    }
}
