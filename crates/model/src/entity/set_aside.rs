//! Records that were taken out of their queue, because going on with them was not possible.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{EntityId, EntityKey, SetAsideId, TenantId};

/// Why a record was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SetAsideReason {
    /// The process died more than once while it had this record in hand, and nothing else.
    KilledProcess,
    /// The strategy of its queue has tried it as often as it does.
    RetriesExhausted,
}

impl SetAsideReason {
    /// Every reason.
    pub const ALL: [Self; 2] = [Self::KilledProcess, Self::RetriesExhausted];

    /// The name in the REST API and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KilledProcess => "KILLED_PROCESS",
            Self::RetriesExhausted => "RETRIES_EXHAUSTED",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// What is known of a record that was set aside, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetAsideInfo {
    /// Its id. The same record that is set aside twice has the same.
    pub id: SetAsideId,
    /// When it was set aside, milliseconds.
    pub created_time: i64,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// The entity it is about.
    pub entity_id: EntityId,
    /// Its queue; that of a tenant's own is behind the tenant's id and a slash.
    pub queue_name: String,
    /// Its partition of the queue.
    pub partition: u16,
    /// Its position in the partition.
    pub offset: i64,
    /// When the platform received it, milliseconds.
    pub received_time: i64,
    /// Why it was set aside.
    pub reason: SetAsideReason,
    /// More about that, for people.
    pub details: String,
    /// How often the process died with it in hand.
    pub deaths: u32,
    /// How long the record is, bytes.
    pub size: i64,
}

impl SetAsideInfo {
    /// The entity it is about, with its tenant.
    pub const fn entity_key(&self) -> EntityKey {
        EntityKey {
            tenant: self.tenant_id,
            entity: self.entity_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_known_by_their_names() {
        for reason in SetAsideReason::ALL {
            assert_eq!(SetAsideReason::from_name(reason.name()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
        assert_eq!(SetAsideReason::from_name("OTHER"), None);
    }
}
