//! Clients of accounts that are kept outside of the node: they are made anew when the account changes.

use std::sync::Arc;

use fieldline_connectors::{ConnectorConfigError as WrongConfig, ConnectorError};
use parking_lot::Mutex;
use serde_json::Value;

use super::external_node::failed;

/// The client of an account.
pub(super) struct AccountClientCache<C>(Mutex<Option<(Value, Arc<C>)>>);

impl<C> Default for AccountClientCache<C> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<C> AccountClientCache<C> {
    /// The client of an account as it is now.
    pub(super) fn get(
        &self,
        account: Value,
        make: impl FnOnce(&Value) -> Result<C, WrongConfig>,
    ) -> Result<Arc<C>, ConnectorError> {
        let mut known = self.0.lock();
        if let Some((of, client)) = &*known
            && *of == account
        {
            return Ok(Arc::clone(client));
        }
        let client = make(&account)
            .map(Arc::new)
            .map_err(|error| failed(error.to_string()))?;
        *known = Some((account, Arc::clone(&client)));
        Ok(client)
    }
}
