//! What people set for themselves, and the dashboards they have looked at.

use std::sync::Arc;

use fieldline_model::entity::{LastVisitedDashboard, StarredDashboard, UserDashboards, UserSettingsType};
use fieldline_model::{DashboardId, TenantId, UserId};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{ServiceContext, ServiceError, ServiceResult};

/// Largest settings of one type, in bytes.
const MAX_SETTINGS: usize = 262_144;
/// Parts of a path to a setting.
const MAX_PATH: usize = 32;
/// Dashboards that are remembered as visited.
const LAST_VISITED: usize = 10;
/// Dashboards that may be starred.
const MAX_STARRED: usize = 100;

/// Rules about settings of people.
#[derive(Clone)]
pub struct UserSettingsService(Arc<ServiceContext>);

/// What somebody did with a dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum DashboardAction {
    Visit,
    Star,
    Unstar,
}

impl UserSettingsService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// The settings of a user; empty where there are none.
    ///
    /// # Errors
    /// The store failed.
    pub async fn get(&self, user: UserId, kind: UserSettingsType) -> ServiceResult<Value> {
        let found = self.0.stores.settings.of_user(user, kind).await?;
        Ok(found.unwrap_or_else(|| Map::new().into()))
    }

    /// Replaces the settings of a user.
    ///
    /// # Errors
    /// They are no JSON object, have names that could not be addressed, or are too large.
    pub async fn save(&self, user: UserId, kind: UserSettingsType, settings: Value) -> ServiceResult<Value> {
        let Value::Object(fields) = &settings else {
            return Err(ServiceError::invalid("User settings must be a JSON object!"));
        };
        if fields.keys().any(|name| name.contains(['.', ','])) {
            return Err(ServiceError::invalid(
                "Json field name should not contain \".\" or \",\" symbols",
            ));
        }
        let text = settings.to_string();
        if text.len() > MAX_SETTINGS {
            return Err(ServiceError::invalid(format!(
                "User settings take more than {MAX_SETTINGS} bytes!"
            )));
        }
        // What could not be read again is not stored.
        if serde_json::from_str::<Value>(&text).is_err() {
            return Err(ServiceError::invalid("User settings are nested too deeply!"));
        }
        self.0.stores.settings.save_of_user(user, kind, &settings).await?;
        Ok(settings)
    }

    /// Changes settings of a user: each name is a path with dots, whose value is replaced.
    ///
    /// # Errors
    /// See [`UserSettingsService::save`].
    pub async fn update(&self, user: UserId, kind: UserSettingsType, changes: Value) -> ServiceResult<()> {
        let Value::Object(changes) = changes else {
            return Err(ServiceError::invalid("User settings must be a JSON object!"));
        };
        let mut settings = self.get(user, kind).await?;
        for (path, value) in changes {
            if path.split('.').count() > MAX_PATH {
                return Err(ServiceError::invalid(format!(
                    "A path of user settings must not have more than {MAX_PATH} parts!"
                )));
            }
            *place(&mut settings, path.trim()) = value;
        }
        self.save(user, kind, settings).await.map(drop)
    }

    /// Deletes settings of a user: paths with dots.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(&self, user: UserId, kind: UserSettingsType, paths: &[&str]) -> ServiceResult<()> {
        let mut settings = self.get(user, kind).await?;
        for path in paths {
            remove(&mut settings, path.trim());
        }
        self.save(user, kind, settings).await.map(drop)
    }

    /// The dashboards that a user has visited or starred, as far as they exist.
    ///
    /// # Errors
    /// The store failed.
    pub async fn dashboards(&self, tenant: TenantId, user: UserId) -> ServiceResult<UserDashboards> {
        let stored = self.get(user, UserSettingsType::VisitedDashboards).await?;
        let mut dashboards: UserDashboards = serde_json::from_value(stored).unwrap_or_default();
        let ids: Vec<DashboardId> = dashboards
            .last
            .iter()
            .map(|one| one.id)
            .chain(dashboards.starred.iter().map(|one| one.id))
            .map(DashboardId)
            .collect();
        let infos = self.0.stores.dashboards.infos(tenant, &ids).await?;
        let title = |id: Uuid| {
            let info = infos.iter().find(|info| info.id == DashboardId(id))?;
            Some(info.title.clone())
        };
        dashboards.starred.retain_mut(|one| match title(one.id) {
            Some(title) => {
                one.title = title;
                true
            }
            None => false,
        });
        let starred: Vec<Uuid> = dashboards.starred.iter().map(|one| one.id).collect();
        dashboards.last.retain_mut(|one| match title(one.id) {
            Some(title) => {
                one.title = title;
                one.starred = starred.contains(&one.id);
                true
            }
            None => false,
        });
        Ok(dashboards)
    }

    /// Notes what a user did with a dashboard, which exists and may be seen.
    ///
    /// # Errors
    /// The store failed.
    pub async fn note(
        &self,
        tenant: TenantId,
        user: UserId,
        dashboard: DashboardId,
        action: DashboardAction,
    ) -> ServiceResult<UserDashboards> {
        let (id, now) = (dashboard.0, self.0.now());
        let mut dashboards = self.dashboards(tenant, user).await?;
        match action {
            DashboardAction::Visit => {
                dashboards.last.retain(|one| one.id != id);
                let visited = LastVisitedDashboard {
                    id,
                    title: String::new(),
                    starred: false,
                    last_visited: now,
                };
                dashboards.last.insert(0, visited);
                dashboards.last.truncate(LAST_VISITED);
            }
            DashboardAction::Star if dashboards.starred.iter().all(|one| one.id != id) => {
                let starred = StarredDashboard {
                    id,
                    title: String::new(),
                    starred_at: now,
                };
                dashboards.starred.insert(0, starred);
                dashboards.starred.truncate(MAX_STARRED);
            }
            DashboardAction::Star => {}
            DashboardAction::Unstar => dashboards.starred.retain(|one| one.id != id),
        }
        let stored = serde_json::to_value(&dashboards)
            .map_err(|_| ServiceError::invalid("The dashboards cannot be stored"))?;
        let kind = UserSettingsType::VisitedDashboards;
        self.0.stores.settings.save_of_user(user, kind, &stored).await?;
        self.dashboards(tenant, user).await
    }
}

/// What is at a path; objects are made on the way.
fn place<'v>(mut value: &'v mut Value, path: &str) -> &'v mut Value {
    for name in path.split('.') {
        if !value.is_object() {
            *value = Map::new().into();
        }
        value = &mut value[name];
    }
    value
}

fn remove(value: &mut Value, path: &str) {
    match path.split_once('.') {
        Some((name, rest)) => {
            if let Some(inner) = value.get_mut(name) {
                remove(inner, rest);
            }
        }
        None => {
            if let Some(fields) = value.as_object_mut() {
                fields.shift_remove(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_reach_into_objects() {
        let mut value = json!({ "a": 5, "b": { "c": 10, "d": 20 } });
        *place(&mut value, "b.d") = json!(30);
        *place(&mut value, "x.y") = json!(1);
        *place(&mut value, "a.z") = json!(2);
        assert_eq!(
            value,
            json!({ "a": { "z": 2 }, "b": { "c": 10, "d": 30 }, "x": { "y": 1 } })
        );
        remove(&mut value, "b.c");
        remove(&mut value, "a");
        remove(&mut value, "no.such.path");
        assert_eq!(value, json!({ "b": { "d": 30 }, "x": { "y": 1 } }));
    }
}
