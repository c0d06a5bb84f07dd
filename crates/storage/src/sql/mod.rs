//! Entities in SQL: SQLite embedded, PostgreSQL at scale, one set of statements for both.
//!
//! A table holds in columns what is looked up, joined, sorted or unique, and the rest of the entity as a JSON document,
//! so that no field is lost and each fact has one place. Rows carry their tenant, and references between rows of one
//! tenant are foreign keys that include the tenant: the database itself keeps the walls.
//!
//! | module | job |
//! |---|---|
//! | `database` | the two engines behind one small interface, transactions, opening and closing |
//! | `query` | statements under construction, and rows read column by column |
//! | `schema` | numbered migrations |
//! | `record`, `entities` | saving, reading and deleting any entity, and the stores that do |
//! | `list` | pages: filter, text search, sort |
//! | `months` | tables that have a part for each month in PostgreSQL |
//! | `list_executor` | connections for what people read that may take long |
//! | `search`, `text_index` | text search by index, and what keeps the index |
//! | `assignables`, `profiles` | what the stores of what customers may have, and of profiles, do besides |
//! | `statement_error` | what a database's error means to the caller |
//! | the others | what is particular about a kind of entities, or one store each |

mod alarm_changes;
mod alarm_comments;
mod alarm_order;
mod alarm_rows;
mod alarms;
mod api_keys;
mod asset_profiles;
mod assets;
mod assignables;
mod audit;
mod calculated_fields;
mod copy;
mod customers;
mod dashboards;
mod database;
mod device_credentials;
mod device_profiles;
mod device_transfers;
mod devices;
mod entities;
mod entity_rows;
mod entity_views;
mod events;
mod housekeeper;
mod import;
mod kinds;
mod list;
mod list_executor;
mod months;
mod mqtt_clients;
mod names;
mod options;
mod ota_packages;
mod ota_updates;
mod profiles;
mod query;
mod queues;
mod record;
mod relations;
mod resources;
mod rpcs;
mod rule_chains;
mod rule_nodes;
mod schema;
mod search;
mod set_aside;
mod settings;
mod shared_subscriptions;
mod sign_ins;
mod statement_error;
mod tenant_profiles;
mod tenants;
mod text_index;
mod users;
mod versions;
mod widget_types;
mod widgets_bundles;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use fieldline_core::ports::{EntityRowStore, EntityStores, StoreResult};

pub use copy::TableChecksum;
pub use database::EntityDatabase;
pub(crate) use database::WITHOUT_JIT;
use entities::SqlEntities;
pub use options::Options;
pub(crate) use statement_error::postgres_kind;

/// Opens or creates the entity stores in a SQLite file. Use [`EntityDatabase`] to keep a handle for closing.
pub async fn open_sqlite(path: &Path, options: &Options) -> StoreResult<EntityStores> {
    Ok(EntityDatabase::sqlite(path, options).await?.entity_stores())
}

/// Opens or creates the entity stores in a PostgreSQL database. Use [`EntityDatabase`] to keep a handle for closing.
pub async fn open_postgres(url: &str, options: &Options) -> StoreResult<EntityStores> {
    Ok(EntityDatabase::postgres(url, options).await?.entity_stores())
}

impl EntityDatabase {
    /// Entities of this database, whole kinds at a time.
    pub fn entity_rows(&self) -> Arc<dyn EntityRowStore> {
        Arc::new(entity_rows::SqlEntityRows(self.clone()))
    }

    /// The entity stores of this database; closing it closes them.
    pub fn entity_stores(&self) -> EntityStores {
        EntityStores {
            tenants: Arc::new(SqlEntities::new(self)),
            assets: Arc::new(SqlEntities::new(self)),
            asset_profiles: Arc::new(SqlEntities::new(self)),
            entity_views: Arc::new(SqlEntities::new(self)),
            relations: Arc::new(relations::SqlRelations(self.clone())),
            alarms: Arc::new(alarms::SqlAlarms(self.clone())),
            rpcs: Arc::new(rpcs::SqlRpcs(self.clone())),
            tenant_profiles: Arc::new(SqlEntities::new(self)),
            calculated_fields: Arc::new(SqlEntities::new(self)),
            ota_packages: Arc::new(SqlEntities::new(self)),
            ota_updates: Arc::new(ota_updates::SqlOtaUpdates(self.clone())),
            resources: Arc::new(SqlEntities::new(self)),
            widget_types: Arc::new(SqlEntities::new(self)),
            widgets_bundles: Arc::new(SqlEntities::new(self)),
            api_keys: Arc::new(api_keys::SqlApiKeys(self.clone())),
            audit: Arc::new(audit::SqlAuditLog(self.clone())),
            set_aside: Arc::new(set_aside::SqlSetAside(self.clone())),
            settings: Arc::new(settings::SqlSettings(self.clone())),
            sign_ins: Arc::new(sign_ins::SqlSignIns(self.clone())),
            mqtt_clients: Arc::new(mqtt_clients::SqlMqttClients(self.clone())),
            shared_subscriptions: Arc::new(shared_subscriptions::SqlSharedSubscriptions(self.clone())),
            dashboards: Arc::new(SqlEntities::new(self)),
            versions: Arc::new(versions::SqlVersions(self.clone())),
            customers: Arc::new(SqlEntities::new(self)),
            users: Arc::new(SqlEntities::new(self)),
            devices: Arc::new(SqlEntities::new(self)),
            device_transfers: Arc::new(device_transfers::SqlDeviceTransfers(self.clone())),
            device_profiles: Arc::new(SqlEntities::new(self)),
            device_credentials: Arc::new(device_credentials::SqlDeviceCredentials(self.clone())),
            rule_chains: Arc::new(SqlEntities::new(self)),
            queues: Arc::new(SqlEntities::new(self)),
            events: Arc::new(events::SqlEvents(self.clone())),
            housekeeper: Arc::new(housekeeper::SqlHousekeeper(self.clone())),
        }
    }
}
