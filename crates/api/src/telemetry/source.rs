//! Where the series of an entity are read from: its own, or through an entity view those of what the view shows.

use fieldline_core::any_entity::AnyEntity;
use fieldline_model::EntityKey;
use fieldline_model::entity::EntityView;

/// A stretch of time that reads stay within, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeWindow {
    /// Nothing before this time.
    pub(crate) start: i64,
    /// Nothing at this time or after it.
    pub(crate) end: i64,
}

impl TimeWindow {
    /// All of time.
    pub(crate) const ALL: Self = Self {
        start: i64::MIN,
        end: i64::MAX,
    };

    /// From one time until another.
    pub(crate) const fn new(start: i64, end: i64) -> Self {
        Self { start, end }
    }

    /// So many milliseconds from a time on.
    pub(crate) const fn of_length(start: i64, millis: i64) -> Self {
        Self::new(start, start.saturating_add(millis))
    }

    /// What is in both.
    pub(crate) fn within(self, other: Self) -> Self {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// Whether a time is in it.
    pub(crate) const fn contains(self, ts: i64) -> bool {
        self.start <= ts && ts < self.end
    }
}

/// See the module.
pub(crate) struct SeriesSource {
    /// Whose series are read.
    pub(crate) subject: EntityKey,
    /// Within which time.
    pub(crate) window: TimeWindow,
    view: Option<Vec<String>>,
}

impl SeriesSource {
    /// The series of something that is no view.
    pub(crate) fn own(subject: EntityKey) -> Self {
        Self {
            subject,
            window: TimeWindow::ALL,
            view: None,
        }
    }

    /// The source for an entity that somebody may read.
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

    /// The series that reading all of them means; `None` for all that there are. A view that names none shows none.
    pub(crate) fn all(&self) -> Option<&[String]> {
        self.view.as_deref()
    }

    /// Those of the named series that may be read. A view that names none lets every name through.
    pub(crate) fn shown(&self, keys: &[String]) -> Vec<String> {
        let shown = self.view.as_deref().filter(|shown| !shown.is_empty());
        let may = |key: &&String| shown.is_none_or(|shown| shown.contains(key));
        keys.iter().filter(may).cloned().collect()
    }
}
