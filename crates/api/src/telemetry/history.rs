//! The response to a range query, produced piece by piece: however many points it holds, only one piece is in memory.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use fieldline_core::memory_pool::{MemoryRefusal, MemoryShare};
use fieldline_core::ports::{StoreError, TimeSeriesStore};
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{DataPoint, RangeQuery};
use futures::stream;

use super::params::RangeRead;
use super::render::{SeriesObject, ValueTyping};

/// Most raw points per read from the store.
const PAGE_POINTS: usize = 4096;

/// Initial size of a page, bytes. That many numeric points need no more.
const PAGE_BYTES: usize = 128 << 10;

/// Largest page of a long response, bytes.
const MOST_PAGE_BYTES: usize = 512 << 10;

/// Memory of a response as a multiple of its page: the values, the text made from them, and the text being sent.
const MEMORY_FACTOR: usize = 4;

/// A piece is sent once it has this many bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// Why a response fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum HistoryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is not enough memory for it.
    #[error(transparent)]
    Memory(#[from] MemoryRefusal),
}

/// A range query in progress.
pub(super) struct HistoryResponse {
    store: Arc<dyn TimeSeriesStore>,
    subject: EntityKey,
    keys: std::vec::IntoIter<String>,
    read: RangeRead,
    object: SeriesObject,
    /// The series whose raw points are being read, with the rest of its range.
    current: Option<(String, RangeQuery)>,
    is_closed: bool,
    memory: MemoryShare,
    page_bytes: usize,
}

impl HistoryResponse {
    /// Creates the response for the named series of a subject.
    pub(super) fn new(
        store: Arc<dyn TimeSeriesStore>,
        subject: EntityKey,
        keys: Vec<String>,
        read: RangeRead,
        typing: ValueTyping,
        memory: MemoryShare,
    ) -> Self {
        Self {
            store,
            subject,
            keys: keys.into_iter(),
            read,
            object: SeriesObject::new(typing),
            current: None,
            is_closed: false,
            memory,
            page_bytes: PAGE_BYTES,
        }
    }

    /// Starts the response. An error during the first piece is reported as such; after that the connection is broken
    /// off, so that a truncated response is never taken for a complete one.
    pub(super) async fn into_response(mut self) -> Result<Response, HistoryError> {
        self.memory.resize(MEMORY_FACTOR * self.page_bytes)?;
        let first = self.next_piece().await?.unwrap_or_default();
        let body = if self.is_closed {
            Body::from(first)
        } else {
            let rest = stream::try_unfold((Some(first), self), |(first, mut history)| async move {
                let piece = match first {
                    Some(first) => Some(first),
                    None => history.next_piece().await?,
                };
                Result::<_, HistoryError>::Ok(piece.map(|piece| (piece, (None, history))))
            });
            Body::from_stream(rest)
        };
        Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
    }

    /// Returns the next piece of the JSON text; `None` after the last one.
    async fn next_piece(&mut self) -> Result<Option<String>, HistoryError> {
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
                    let bytes: usize = points.iter().map(DataPoint::bytes).sum();
                    self.hold(bytes)?;
                    self.object.add(&key, &points);
                    self.object.end_series();
                }
            }
        }
        Ok(Some(self.object.take()))
    }

    /// Reserves memory for values of this many bytes.
    fn hold(&mut self, bytes: usize) -> Result<(), MemoryRefusal> {
        self.memory
            .resize(MEMORY_FACTOR * self.page_bytes.max(bytes) + self.object.len())
    }

    /// Reads the next page of a series, and remembers where to continue.
    async fn raw_page(&mut self, key: String, query: RangeQuery) -> Result<(), HistoryError> {
        let asked = RangeQuery {
            limit: query.limit.min(PAGE_POINTS),
            ..query
        };
        let page = self
            .store
            .page(self.subject, &key, asked, self.page_bytes)
            .await?;
        self.object.add(&key, &page.points);
        let left = query.limit - page.points.len().min(query.limit);
        let Some((start, end)) = page.rest.filter(|_| left > 0) else {
            self.object.end_series();
            return Ok(());
        };
        let is_full = page.points.len() < asked.limit;
        drop(page.points);
        if page.needs > self.page_bytes {
            self.page_bytes = page.needs;
            self.hold(page.needs)?;
        } else if is_full && 2 * self.page_bytes <= MOST_PAGE_BYTES && self.hold(2 * self.page_bytes).is_ok()
        {
            // Fewer and larger pages cost less, if there is memory for them.
            self.page_bytes *= 2;
        } else if self.hold(0).is_err() {
            // Other requests have taken the rest meanwhile: this one continues with the memory it has, in smaller
            // pages.
            self.page_bytes = PAGE_BYTES.max(page.needs);
            self.hold(0)?;
        }
        let rest = RangeQuery {
            start,
            end,
            limit: left,
            ..query
        };
        self.current = Some((key, rest));
        Ok(())
    }
}
