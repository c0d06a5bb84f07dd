//! Source of an entity's series: its own, or for an entity view those of the entity it shows.

use fieldline_core::any_entity::AnyEntity;
use fieldline_model::EntityKey;
use fieldline_model::entity::EntityView;

/// A time range that reads are limited to, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeWindow {
    /// Start, inclusive.
    pub(crate) start: i64,
    /// End, exclusive.
    pub(crate) end: i64,
}

impl TimeWindow {
    /// The whole time range.
    pub(crate) const ALL: Self = Self {
        start: i64::MIN,
        end: i64::MAX,
    };

    /// From `start` up to `end`.
    pub(crate) const fn new(start: i64, end: i64) -> Self {
        Self { start, end }
    }

    /// The given number of milliseconds from `start` on.
    pub(crate) const fn of_length(start: i64, millis: i64) -> Self {
        Self::new(start, start.saturating_add(millis))
    }

    /// Returns the intersection of both ranges.
    pub(crate) fn within(self, other: Self) -> Self {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// Whether a timestamp is in the range.
    pub(crate) const fn contains(self, ts: i64) -> bool {
        self.start <= ts && ts < self.end
    }
}

/// The source of an entity's series; see the module.
pub(crate) struct SeriesSource {
    /// The entity whose series are read.
    pub(crate) subject: EntityKey,
    /// The time range that reads are limited to.
    pub(crate) window: TimeWindow,
    view: Option<Vec<String>>,
}

impl SeriesSource {
    /// The series of an entity that is not a view.
    pub(crate) fn own(subject: EntityKey) -> Self {
        Self {
            subject,
            window: TimeWindow::ALL,
            view: None,
        }
    }

    /// Returns the source for an entity that the caller may read.
    pub(crate) fn of(entity: &AnyEntity) -> Self {
        match entity {
            AnyEntity::EntityView(view) => Self::through(view, entity.subject()),
            _ => Self::own(entity.subject()),
        }
    }

    fn through(view: &EntityView, own: EntityKey) -> Self {
        let bound = |time: i64| (time != 0).then_some(time);
        Self {
            subject: EntityKey {
                entity: view.entity_id.unwrap_or(own.entity),
                ..own
            },
            window: TimeWindow {
                start: bound(view.start_time_ms).unwrap_or(i64::MIN),
                end: bound(view.end_time_ms).unwrap_or(i64::MAX),
            },
            view: Some(view.keys.clone().unwrap_or_default().timeseries),
        }
    }

    /// Returns the series that a read without names returns; `None` for all existing ones. A view without names shows
    /// none.
    pub(crate) fn all(&self) -> Option<&[String]> {
        self.view.as_deref()
    }

    /// Returns the named series that may be read. A view without names allows every name.
    pub(crate) fn shown(&self, keys: &[String]) -> Vec<String> {
        let shown = self.view.as_deref().filter(|shown| !shown.is_empty());
        let may = |key: &&String| shown.is_none_or(|shown| shown.contains(key));
        keys.iter().filter(may).cloned().collect()
    }
}
