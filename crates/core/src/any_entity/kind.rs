//! Entity kinds: the declaration that each kind makes, and the functions derived from it for entities of any kind.

use std::fmt;
use std::pin::Pin;

use fieldline_model::entity::{Authority, ShortCustomerInfo, StoredEntity};
use fieldline_model::{CustomerId, EntityId, EntityKey, EntityType, TenantId};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{AccessGrant, AccessResource, AccessRights};
use crate::ports::{EntityStores, StoreResult};

/// The future of a store call.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = StoreResult<T>> + Send + 'a>>;

/// See [`find`].
pub type FindOne<K> =
    for<'a> fn(&'a EntityStores, TenantId, Authority, <K as StoredEntity>::Id) -> StoreFuture<'a, Option<K>>;

/// See [`find_all`].
pub type FindAll<K> =
    for<'a> fn(&'a EntityStores, TenantId, Vec<<K as StoredEntity>::Id>) -> StoreFuture<'a, Vec<K>>;

/// A kind of entities that has its own ids.
pub trait EntityKind:
    StoredEntity<Id: fmt::Display + From<Uuid> + Into<EntityId>>
    + EntityVariant
    + Serialize
    + Clone
    + Send
    + Sync
    + 'static
{
    /// The type in its ids.
    const TYPE: EntityType;
    /// The declaration of the kind.
    const DECLARED: KindDeclaration<Self>;

    /// The typed form of a bare id.
    fn typed(id: Uuid) -> Self::Id {
        id.into()
    }

    /// Returns the properties that the role table needs.
    fn resource(&self) -> AccessResource {
        (Self::DECLARED.resource)(self)
    }
}

/// The declaration of an entity kind. A missing part does not compile; parts that most kinds share come from the
/// `KindPolicy` and `QueryFields` constants that the declaration names.
pub struct KindDeclaration<K: EntityKind> {
    /// The policy for the whole kind.
    pub policy: KindPolicy,
    /// Returns the properties that the role table needs.
    pub resource: fn(&K) -> AccessResource,
    /// The customers that an entity is assigned to, for kinds that allow several.
    pub shared_with: fn(&K) -> &[ShortCustomerInfo],
    /// The display name.
    pub name: fn(&K) -> &str,
    /// The fields available to entity queries besides name and time.
    pub query: QueryFields<K>,
    /// Finds the entity of an id, as far as a user of the tenant with that authority can know of it; see [`find`].
    pub find: FindOne<K>,
    /// Finds those of the entities with these ids that belong to the tenant, in one query; `None` if they are looked up
    /// one by one.
    pub find_all: Option<FindAll<K>>,
}

/// The policy for all entities of a kind.
#[derive(Debug, Clone, Copy)]
pub struct KindPolicy {
    /// The rights of each role.
    pub rights: AccessRights,
    /// Whether system administrators, who have no tenant of their own, may find the entities.
    pub beyond_tenants: bool,
    /// Roles of a tenant that may read the entities that belong to no tenant.
    pub shared_readers: &'static [Authority],
    /// Whether the entities may belong to a customer.
    pub of_customers: bool,
    /// Whether relation queries find the entities without naming the kind.
    pub related: bool,
    /// The limit on the number of entities per tenant; `None` for no limit.
    pub limit: Option<KindLimit>,
}

/// The limit on the number of entities of a kind per tenant.
#[derive(Debug, Clone, Copy)]
pub struct KindLimit {
    /// The setting of the tenant profile.
    pub setting: &'static str,
    /// Counts the entities of the tenant.
    pub count: fn(&EntityStores, TenantId) -> StoreFuture<'_, u64>,
}

/// The fields of a kind available to entity queries.
pub struct QueryFields<K: 'static> {
    /// Further aliases of the name, besides `name` and `title`.
    pub name_aliases: &'static [&'static str],
    /// The text fields.
    pub texts: &'static [QueryText<K>],
    /// The free-form JSON, called `additionalInfo` in queries.
    pub info: fn(&K) -> Option<&Value>,
}

impl<K: 'static> QueryFields<K> {
    /// Only a name.
    pub const NAME_ONLY: Self = Self {
        name_aliases: &[],
        texts: &[],
        info: |_| None,
    };

    /// Resolves a query name, aliases included, to a text field.
    fn text_of(&self, name: &str) -> Option<EntityTextField> {
        match name {
            "name" | "title" => Some(EntityTextField::Name),
            "additionalInfo" => Some(EntityTextField::AdditionalInfo),
            alias if self.name_aliases.contains(&alias) => Some(EntityTextField::Name),
            name => self
                .texts
                .iter()
                .find(|text| text.name == name)
                .map(|text| text.field),
        }
    }
}

/// A text field of a kind.
pub struct QueryText<K: 'static> {
    /// The name in queries.
    pub name: &'static str,
    /// The field.
    pub field: EntityTextField,
    /// Returns the text of an entity, if it has one.
    pub of: fn(&K) -> Option<&str>,
}

impl<K: 'static> QueryText<K> {
    /// Creates a text field with a query name.
    pub const fn new(name: &'static str, field: EntityTextField, of: fn(&K) -> Option<&str>) -> Self {
        Self { name, field, of }
    }
}

/// A text that entities may have, named as in queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum EntityTextField {
    Name,
    Type,
    Label,
    FirstName,
    LastName,
    Email,
    Region,
    Country,
    State,
    City,
    Address,
    Address2,
    Zip,
    Phone,
    AdditionalInfo,
    QueueName,
    ServiceId,
}

/// The types that may occur in ids but have no entity kind here.
macro_rules! no_kind {
    () => {
        EntityType::Rpc | EntityType::Edge
    };
}

/// The policy of types without an entity kind: no such entity exists.
const NO_KIND: KindPolicy = KindPolicy {
    rights: AccessRights {
        system: AccessGrant::Nothing,
        tenant: AccessGrant::Anything,
        customer: AccessGrant::Nothing,
    },
    beyond_tenants: false,
    shared_readers: &[],
    of_customers: false,
    related: false,
    limit: None,
};

/// Conversion between an entity kind and [`AnyEntity`].
pub trait EntityVariant: Sized {
    /// Wraps the entity.
    fn into_entity(self) -> AnyEntity;
    /// Unwraps the entity if it is of this kind.
    fn of(entity: AnyEntity) -> Option<Self>;
}

macro_rules! any_entity {
    ($($name:ident($kind:ty))*) => {
        /// An entity of any kind.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "the names are their own documentation")]
        pub enum AnyEntity {
            $($name($kind),)*
        }

        $(
            impl EntityVariant for $kind {
                fn into_entity(self) -> AnyEntity {
                    AnyEntity::$name(self)
                }

                fn of(entity: AnyEntity) -> Option<Self> {
                    match entity {
                        AnyEntity::$name(found) => Some(found),
                        _ => None,
                    }
                }
            }
        )*

        impl AnyEntity {
            /// Returns the properties that the role table needs.
            pub fn resource(&self) -> AccessResource {
                match self {
                    $(Self::$name(it) => (<$kind>::DECLARED.resource)(it),)*
                }
            }

            /// The customers that the entity is assigned to, for kinds that allow several.
            pub fn shared_with(&self) -> &[ShortCustomerInfo] {
                match self {
                    $(Self::$name(it) => (<$kind>::DECLARED.shared_with)(it),)*
                }
            }

            /// The display name.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$name(it) => (<$kind>::DECLARED.name)(it),)*
                }
            }

            /// The creation time, milliseconds.
            pub fn created_time(&self) -> i64 {
                match self {
                    $(Self::$name(it) => it.created_time(),)*
                }
            }

            /// Calls `show` for each text besides the name, for entity queries.
            pub fn each_text(&self, mut show: impl FnMut(EntityTextField, &str)) {
                match self {
                    $(Self::$name(it) => {
                        for text in <$kind>::DECLARED.query.texts {
                            if let Some(found) = (text.of)(it) {
                                show(text.field, found);
                            }
                        }
                    })*
                }
            }

            /// The free-form JSON, for entity queries.
            pub fn info(&self) -> Option<&Value> {
                match self {
                    $(Self::$name(it) => (<$kind>::DECLARED.query.info)(it),)*
                }
            }

            /// Converts the entity to the JSON of the REST API; null if it cannot be serialized.
            pub fn to_json(&self) -> Value {
                let shown = match self {
                    $(Self::$name(it) => serde_json::to_value(it),)*
                };
                shown.unwrap_or_default()
            }
        }

        /// The policy of all entities of a type.
        #[inline]
        pub const fn kind_policy(entity_type: EntityType) -> &'static KindPolicy {
            match entity_type {
                $(EntityType::$name => &<$kind>::DECLARED.policy,)*
                no_kind!() => &NO_KIND,
            }
        }

        /// Resolves a query name, aliases included, to a text field of a type.
        pub fn query_text(entity_type: EntityType, name: &str) -> Option<EntityTextField> {
            match entity_type {
                $(EntityType::$name => <$kind>::DECLARED.query.text_of(name),)*
                no_kind!() => QueryFields::<()>::NAME_ONLY.text_of(name),
            }
        }

        /// Finds the entity of an id, as far as a user of the tenant (the null id for system administrators) with that
        /// authority can know of it. The caller checks afterwards whether the user may see it.
        ///
        /// # Errors
        /// The store failed.
        pub async fn find(
            stores: &EntityStores,
            tenant: TenantId,
            authority: Authority,
            id: EntityId,
        ) -> StoreResult<Option<AnyEntity>> {
            Ok(match id.entity_type {
                $(EntityType::$name => (<$kind>::DECLARED.find)(stores, tenant, authority, id.id.into())
                    .await?
                    .map(AnyEntity::$name),)*
                no_kind!() => None,
            })
        }

        /// Finds those of the entities with these ids that belong to the tenant, in one query; `None` for kinds that
        /// are looked up one by one.
        ///
        /// # Errors
        /// The store failed.
        pub async fn find_all(
            stores: &EntityStores,
            tenant: TenantId,
            entity_type: EntityType,
            ids: &std::collections::BTreeSet<Uuid>,
        ) -> StoreResult<Option<Vec<AnyEntity>>> {
            match entity_type {
                $(EntityType::$name => {
                    let Some(find_all) = <$kind>::DECLARED.find_all else { return Ok(None) };
                    let found = find_all(stores, tenant, ids.iter().map(|id| (*id).into()).collect()).await?;
                    Ok(Some(found.into_iter().map(AnyEntity::$name).collect()))
                })*
                no_kind!() => Ok(None),
            }
        }
    };
}

crate::for_each_entity_kind!(any_entity);

impl AnyEntity {
    /// Like [`Self::resource`], from the view of a customer: an entity assigned to several customers counts as that
    /// customer's, if it is among them.
    pub fn resource_for(&self, customer: CustomerId) -> AccessResource {
        let resource = self.resource();
        let is_own = |one: &ShortCustomerInfo| one.customer_id == customer;
        if !customer.is_null() && self.shared_with().iter().any(is_own) {
            return AccessResource { customer, ..resource };
        }
        resource
    }

    /// The key under which the data of the entity is read and written.
    pub fn subject(&self) -> EntityKey {
        let resource = self.resource();
        EntityKey {
            tenant: resource.tenant,
            entity: resource.entity,
        }
    }
}
