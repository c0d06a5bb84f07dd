//! The answer to a range query, made piece by piece: however many points it holds, only one piece is in memory.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use fieldline_core::ports::{StoreResult, TimeSeriesStore};
use fieldline_model::Subject;
use fieldline_model::timeseries::{Order, RangeQuery};
use futures::stream;

use super::params::RangeRead;
use super::render::{SeriesObject, Typing};

/// Raw points read from the store at once.
const PAGE_POINTS: usize = 4096;

/// A piece is sent once it is this long, bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// A range query being answered.
pub(super) struct History {
    store: Arc<dyn TimeSeriesStore>,
    subject: Subject,
    keys: std::vec::IntoIter<String>,
    read: RangeRead,
    object: SeriesObject,
    /// The series whose raw points have not all been read yet.
    current: Option<(String, RangeQuery)>,
    is_closed: bool,
}

impl History {
    /// The answer for the named series of a subject.
    pub(super) fn new(
        store: Arc<dyn TimeSeriesStore>,
        subject: Subject,
        keys: Vec<String>,
        read: RangeRead,
        typing: Typing,
    ) -> Self {
        Self {
            store,
            subject,
            keys: keys.into_iter(),
            read,
            object: SeriesObject::new(typing),
            current: None,
            is_closed: false,
        }
    }

    /// The answer as a response. What fails while the first piece is made is reported; later the connection breaks off,
    /// so that a cut answer is never taken for a whole one.
    pub(super) async fn into_response(mut self) -> StoreResult<Response> {
        let first = self.next_piece().await?.unwrap_or_default();
        let body = if self.is_closed {
            Body::from(first)
        } else {
            let rest = stream::try_unfold((Some(first), self), |(first, mut history)| async move {
                let piece = match first {
                    Some(first) => Some(first),
                    None => history.next_piece().await?,
                };
                StoreResult::Ok(piece.map(|piece| (piece, (None, history))))
            });
            Body::from_stream(rest)
        };
        Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
    }

    /// The next piece of the JSON text; `None` after the last one.
    async fn next_piece(&mut self) -> StoreResult<Option<String>> {
        if self.is_closed {
            return Ok(None);
        }
        while self.object.len() < PIECE_BYTES {
            if let Some((key, query)) = self.current.take() {
                self.raw_page(key, query).await?;
                continue;
            }
            let Some(key) = self.keys.next() else {
                self.object.close();
                self.is_closed = true;
                break;
            };
            match &self.read {
                RangeRead::Raw {
                    start,
                    end,
                    limit,
                    order,
                } => {
                    let query = RangeQuery {
                        start: *start,
                        end: *end,
                        limit: *limit,
                        order: *order,
                    };
                    self.current = Some((key, query));
                }
                RangeRead::Aggregated { aggregation, buckets } => {
                    let points = self
                        .store
                        .aggregate(self.subject, &key, *aggregation, buckets)
                        .await?;
                    self.object.add(&key, &points);
                    self.object.end_series();
                }
            }
        }
        Ok(Some(self.object.take()))
    }

    /// Reads the next page of a series, and remembers where to go on.
    async fn raw_page(&mut self, key: String, query: RangeQuery) -> StoreResult<()> {
        let page = RangeQuery {
            limit: query.limit.min(PAGE_POINTS),
            ..query
        };
        let points = if page.start < page.end {
            self.store.range(self.subject, &key, page).await?
        } else {
            Vec::new()
        };
        self.object.add(&key, &points);
        let left = query.limit - points.len().min(query.limit);
        let next = points
            .last()
            .filter(|_| left > 0 && points.len() >= page.limit)
            .map(|last| match query.order {
                Order::Ascending => (last.ts.saturating_add(1), query.end),
                Order::Descending => (query.start, last.ts),
            })
            .filter(|(start, end)| start < end);
        match next {
            Some((start, end)) => {
                let rest = RangeQuery {
                    start,
                    end,
                    limit: left,
                    ..query
                };
                self.current = Some((key, rest));
            }
            None => self.object.end_series(),
        }
        Ok(())
    }
}
