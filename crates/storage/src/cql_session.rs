//! Connections to a Cassandra cluster.

#[cfg(feature = "cassandra-tls")]
mod tls;

use std::error::Error;
use std::time::Duration;

use scylla::client::Compression;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::statement::Consistency;

use crate::series::CassandraOptions;

/// How long the driver waits for an answer of one statement.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the nodes that the settings name, and to those that these name.
pub(crate) async fn connect(options: &CassandraOptions) -> Result<Session, Box<dyn Error + Send + Sync>> {
    let mut policy = DefaultPolicy::builder().token_aware(true);
    if let Some(data_center) = &options.data_center {
        policy = policy
            .prefer_datacenter(data_center.clone())
            .permit_dc_failover(false);
    }
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::LocalQuorum)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .load_balancing_policy(policy.build())
        .build();
    let mut builder = SessionBuilder::new()
        .known_nodes(options.node_list())
        .compression(Some(Compression::Lz4))
        .default_execution_profile_handle(profile.into_handle())
        .fetch_schema_metadata(false);
    if let Some(user) = &options.user {
        builder = builder.user(user, options.password.clone().unwrap_or_default());
    }
    #[cfg(feature = "cassandra-tls")]
    if options.tls {
        builder = builder.tls_context(Some(tls::client_config(options)?));
    }
    Ok(builder.build().await?)
}
