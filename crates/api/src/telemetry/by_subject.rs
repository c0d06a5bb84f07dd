//! What requests ask of the series of a subject, once it is known: for this controller, and for others whose series belong
//! to no entity.

use std::sync::Arc;

use axum::response::Response;
use fieldline_core::ports::{SeriesDeletion, StoreResult};
use fieldline_entities::access::Principal;
use fieldline_model::EntityKey;

use crate::error::ApiResult;
use crate::state::ApiState;

use super::history::HistoryResponse;
use super::params::{RangeRead, TelemetryParams, deletion};
use super::render::ValueTyping;
use super::source::TimeWindow;

/// Points that are read of some series.
pub(crate) struct SeriesRead {
    pub(super) keys: Vec<String>,
    pub(super) read: RangeRead,
    pub(super) typing: ValueTyping,
}

impl SeriesRead {
    /// Parses the parameters as TBMQ takes them: there must be keys, and values keep their types unless strings are asked
    /// for.
    pub(crate) fn strict_by_default(params: &TelemetryParams) -> ApiResult<Self> {
        Ok(Self {
            keys: params.some_keys()?,
            read: RangeRead::from_params(params, TimeWindow::ALL)?,
            typing: params.typing_or(ValueTyping::Strict)?,
        })
    }

    /// Answers with the points of a subject that the caller may read.
    pub(crate) async fn answer(
        self,
        api: &ApiState,
        caller: &Principal,
        subject: EntityKey,
    ) -> ApiResult<Response> {
        let memory = api.memory.answers.share(caller.tenant);
        let store = Arc::clone(&api.series);
        let history = HistoryResponse::new(store, subject, self.keys, self.read, self.typing, memory);
        Ok(history.into_response().await?)
    }
}

/// Points that are deleted of some series.
pub(crate) struct SeriesRemoval {
    pub(super) keys: Vec<String>,
    pub(super) what: SeriesDeletion,
}

impl SeriesRemoval {
    /// Parses the parameters.
    pub(crate) fn from_params(params: &TelemetryParams) -> ApiResult<Self> {
        Ok(Self {
            keys: params.some_keys()?,
            what: deletion(params)?,
        })
    }

    /// Deletes the points of a subject that the caller may change; returns whether the range can have any.
    pub(crate) async fn carry_out(&self, api: &ApiState, subject: EntityKey) -> StoreResult<bool> {
        let has_room = self.what.range.is_none_or(|(start, end)| start < end);
        if has_room {
            api.series.delete(subject, &self.keys, self.what).await?;
        }
        Ok(has_room)
    }
}
