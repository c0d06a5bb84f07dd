//! Entities that are to be stored: they get an id and a creation time then.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An entity with an id and a creation time.
pub trait StoredEntity: Send + Sync + Sized + 'static {
    /// Its typed id; the default one is the null id.
    type Id: Copy + Default + PartialEq + Send + Sync + 'static;
    /// Its id.
    fn id(&self) -> Self::Id;
    /// When it was created, milliseconds.
    fn created_time(&self) -> i64;
    /// Gives it an id and a creation time.
    fn set_identity(&mut self, id: Self::Id, created_time: i64);
}

/// An entity as somebody wants to have it stored: a new one, or a new form of a stored one. Its JSON is that of the entity,
/// with an id that is missing or `null` where it is new.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EntityDraft<T: StoredEntity> {
    /// Id of what is stored of it; `None` for a new entity.
    pub id: Option<T::Id>,
    fields: T,
}

impl<T: StoredEntity> EntityDraft<T> {
    /// The new entity.
    pub fn into_new(mut self, id: T::Id, created_time: i64) -> T {
        self.fields.set_identity(id, created_time);
        self.fields
    }

    /// The new form of a stored entity, whose id and creation time stay.
    pub fn into_update(self, stored: &T) -> T {
        self.into_new(stored.id(), stored.created_time())
    }
}

impl<T: StoredEntity> Deref for EntityDraft<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.fields
    }
}

impl<T: StoredEntity> DerefMut for EntityDraft<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.fields
    }
}

/// An entity with the null id is new.
impl<T: StoredEntity> From<T> for EntityDraft<T> {
    fn from(fields: T) -> Self {
        let id = fields.id();
        Self {
            id: (id != T::Id::default()).then_some(id),
            fields,
        }
    }
}

impl<T: StoredEntity + Serialize> Serialize for EntityDraft<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields.serialize(serializer)
    }
}

impl<'de, T: StoredEntity + Deserialize<'de>> Deserialize<'de> for EntityDraft<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

/// Says which field of an entity has its id and creation time: those of the part that is named, or its own.
macro_rules! stored_entity {
    ($entity:ident $($info:ident)? : $id:ident) => {
        impl $crate::entity::StoredEntity for $entity {
            type Id = $id;

            fn id(&self) -> $id {
                self$(.$info)?.id
            }

            fn created_time(&self) -> i64 {
                self$(.$info)?.created_time
            }

            fn set_identity(&mut self, id: $id, created_time: i64) {
                self$(.$info)?.id = id;
                self$(.$info)?.created_time = created_time;
            }
        }
    };
}
pub(super) use stored_entity;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::CustomerId;
    use crate::entity::Customer;

    fn read(id: serde_json::Value) -> Option<CustomerId> {
        let draft: EntityDraft<Customer> =
            serde_json::from_value(json!({ "id": id, "title": "Acme" })).unwrap();
        assert_eq!(draft.title, "Acme");
        draft.id
    }

    #[test]
    fn a_draft_knows_a_missing_id_from_one_that_names_nothing() {
        let id = CustomerId::new();
        assert_eq!(read(json!({ "id": id.0 })), Some(id));
        assert_eq!(read(json!(null)), None);
        let draft: EntityDraft<Customer> = serde_json::from_str("{}").unwrap();
        assert_eq!(draft.id, None);
        let nobody = read(json!({ "id": CustomerId::NULL.0 }));
        assert_eq!(nobody, Some(CustomerId(Uuid::nil())));
    }

    #[test]
    fn an_update_keeps_id_and_time() {
        let stored = EntityDraft::from(Customer::default()).into_new(CustomerId::new(), 7);
        let mut draft = EntityDraft::from(stored.clone());
        draft.title.push_str("Acme");
        draft.created_time = 9;
        let updated = draft.into_update(&stored);
        assert_eq!((updated.id, updated.created_time), (stored.id, 7));
        assert_eq!(updated.title, "Acme");
    }
}
