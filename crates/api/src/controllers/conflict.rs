//! Query parameters for name conflicts.

use fieldline_entities::services::{NameConflict, NameSuffix};
use serde::Deserialize;

use crate::error::{ApiError, ApiResult};

/// Longest separator, bytes; longer ones only fill up names.
const MAX_SEPARATOR: usize = 16;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConflictParams {
    /// `FAIL` (default) or `UNIQUIFY`.
    name_conflict_policy: Option<String>,
    /// Separator between name and suffix; `_` by default.
    uniquify_separator: Option<String>,
    /// `RANDOM` (default) or `INCREMENTAL`.
    uniquify_strategy: Option<String>,
}

impl ConflictParams {
    /// Returns what to do if the name is taken.
    pub(super) fn policy(self) -> ApiResult<NameConflict> {
        let unsupported =
            |name: &str, value: &str| ApiError::bad_request(format!("{name} \"{value}\" is not supported!"));
        let suffix = match self.uniquify_strategy.as_deref() {
            None | Some("" | "RANDOM") => NameSuffix::Random,
            Some("INCREMENTAL") => NameSuffix::Incremental,
            Some(other) => return Err(unsupported("uniquifyStrategy", other)),
        };
        match self.name_conflict_policy.as_deref() {
            None | Some("" | "FAIL") => Ok(NameConflict::Fail),
            Some("UNIQUIFY") => {
                let separator = self.uniquify_separator.unwrap_or_else(|| "_".to_owned());
                if separator.len() > MAX_SEPARATOR {
                    return Err(unsupported("uniquifySeparator", &separator));
                }
                Ok(NameConflict::Uniquify { separator, suffix })
            }
            Some(other) => Err(unsupported("nameConflictPolicy", other)),
        }
    }
}
