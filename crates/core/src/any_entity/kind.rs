//! What a kind of entities is: what is to be declared of each, and what follows from that for any entity.

use std::fmt;
use std::pin::Pin;

use fieldline_model::entity::{Authority, ShortCustomerInfo, StoredEntity};
use fieldline_model::{CustomerId, EntityId, EntityKey, EntityType, TenantId};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{AccessGrant, AccessResource, AccessRights};
use crate::ports::{EntityStores, StoreResult};

/// What a store is about to answer.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = StoreResult<T>> + Send + 'a>>;

/// See [`find`].
pub type FindOne<K> =
    for<'a> fn(&'a EntityStores, TenantId, Authority, <K as StoredEntity>::Id) -> StoreFuture<'a, Option<K>>;

/// See [`find_all`].
pub type FindAll<K> =
    for<'a> fn(&'a EntityStores, TenantId, Vec<<K as StoredEntity>::Id>) -> StoreFuture<'a, Vec<K>>;

/// A kind of entities with ids of their own.
pub trait EntityKind:
    StoredEntity<Id: fmt::Display + From<Uuid> + Into<EntityId>>
    + EntityVariant
    + Serialize
    + Clone
    + Send
    + Sync
    + 'static
{
    /// What ids name it.
    const TYPE: EntityType;
    /// All else that there is to say about it.
    const DECLARED: KindDeclaration<Self>;

    /// The typed form of a bare id.
    fn typed(id: Uuid) -> Self::Id {
        id.into()
    }

    /// What the table of roles needs to know about it.
    fn resource(&self) -> AccessResource {
        (Self::DECLARED.resource)(self)
    }
}

/// What is declared of a kind of entities. A part that is left out does not compile; parts that most kinds have in common
/// come from `KindPolicy` and `QueryFields` constants that the declaration names.
pub struct KindDeclaration<K: EntityKind> {
    /// What holds for all of the kind.
    pub policy: KindPolicy,
    /// What the table of roles needs to know about it.
    pub resource: fn(&K) -> AccessResource,
    /// The customers it is assigned to where there may be several.
    pub shared_with: fn(&K) -> &[ShortCustomerInfo],
    /// What people call it.
    pub name: fn(&K) -> &str,
    /// What entity queries see of it besides name and time.
    pub query: QueryFields<K>,
    /// The entity of an id, as far as somebody of a tenant with that authority can know; see [`find`].
    pub find: FindOne<K>,
    /// Those of the entities of these ids that the tenant has, in one query; `None` where they are looked up one by one.
    pub find_all: Option<FindAll<K>>,
}

/// What holds for all entities of a kind.
#[derive(Debug, Clone, Copy)]
pub struct KindPolicy {
    /// Who may do what with them.
    pub rights: AccessRights,
    /// Whether system administrators, who have no tenant to look into, may find them.
    pub beyond_tenants: bool,
    /// Whether they may be a customer's.
    pub of_customers: bool,
    /// Whether queries along relations find them without naming the kind.
    pub related: bool,
    /// How many of them a tenant may have; `None` for any number.
    pub limit: Option<KindLimit>,
}

/// How many entities of a kind a tenant may have.
#[derive(Debug, Clone, Copy)]
pub struct KindLimit {
    /// The setting of the tenant profile.
    pub setting: &'static str,
    /// How many the tenant has.
    pub count: fn(&EntityStores, TenantId) -> StoreFuture<'_, u64>,
}

/// What entity queries see of a kind of entities.
pub struct QueryFields<K: 'static> {
    /// Further names of the name, besides `name` and `title`.
    pub name_aliases: &'static [&'static str],
    /// Its texts.
    pub texts: &'static [QueryText<K>],
    /// Its free-form JSON, by the name `additionalInfo`.
    pub info: fn(&K) -> Option<&Value>,
}

impl<K: 'static> QueryFields<K> {
    /// A name and nothing else.
    pub const NAME_ONLY: Self = Self {
        name_aliases: &[],
        texts: &[],
        info: |_| None,
    };

    /// The text that queries mean by a name, aliases included.
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

/// A text of a kind of entities.
pub struct QueryText<K: 'static> {
    /// What queries call it.
    pub name: &'static str,
    /// What it is.
    pub field: EntityTextField,
    /// The text of an entity, where it has one.
    pub of: fn(&K) -> Option<&str>,
}

impl<K: 'static> QueryText<K> {
    /// A text under a name.
    pub const fn new(name: &'static str, field: EntityTextField, of: fn(&K) -> Option<&str>) -> Self {
        Self { name, field, of }
    }
}

/// A text that entities may have. The names are those of queries.
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

/// The types that ids may name without there being a kind of entities to look up.
macro_rules! no_kind {
    () => {
        EntityType::Rpc
            | EntityType::Edge
            | EntityType::TbResource
            | EntityType::WidgetsBundle
            | EntityType::WidgetType
    };
}

/// What holds for types that are no kinds: nobody ever has one.
const NO_KIND: KindPolicy = KindPolicy {
    rights: AccessRights {
        system: AccessGrant::Nothing,
        tenant: AccessGrant::Anything,
        customer: AccessGrant::Nothing,
    },
    beyond_tenants: false,
    of_customers: false,
    related: false,
    limit: None,
};

/// A kind of entities, as one of all.
pub trait EntityVariant: Sized {
    /// It as one of all entities.
    fn into_entity(self) -> AnyEntity;
    /// One of all entities, where it is of this kind.
    fn of(entity: AnyEntity) -> Option<Self>;
}

macro_rules! any_entity {
    ($($name:ident($kind:ty))*) => {
        /// An entity of one of the kinds.
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
            /// What the table of roles needs to know about it.
            pub fn resource(&self) -> AccessResource {
                match self {
                    $(Self::$name(it) => (<$kind>::DECLARED.resource)(it),)*
                }
            }

            /// The customers it is assigned to where there may be several.
            pub fn shared_with(&self) -> &[ShortCustomerInfo] {
                match self {
                    $(Self::$name(it) => (<$kind>::DECLARED.shared_with)(it),)*
                }
            }

            /// What people call it.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$name(it) => (<$kind>::DECLARED.name)(it),)*
                }
            }

            /// When it was created, milliseconds.
            pub fn created_time(&self) -> i64 {
                match self {
                    $(Self::$name(it) => it.created_time(),)*
                }
            }

            /// Shows its texts besides its name, for entity queries.
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

            /// Its free-form JSON, for entity queries.
            pub fn info(&self) -> Option<&Value> {
                match self {
                    $(Self::$name(it) => (<$kind>::DECLARED.query.info)(it),)*
                }
            }

            /// It in the shape of the REST API; null where it cannot be shown.
            pub fn to_json(&self) -> Value {
                let shown = match self {
                    $(Self::$name(it) => serde_json::to_value(it),)*
                };
                shown.unwrap_or_default()
            }
        }

        /// What holds for all entities of a type.
        #[inline]
        pub const fn kind_policy(entity_type: EntityType) -> &'static KindPolicy {
            match entity_type {
                $(EntityType::$name => &<$kind>::DECLARED.policy,)*
                no_kind!() => &NO_KIND,
            }
        }

        /// The text that queries mean by a name when they ask for entities of a type, aliases included.
        pub fn query_text(entity_type: EntityType, name: &str) -> Option<EntityTextField> {
            match entity_type {
                $(EntityType::$name => <$kind>::DECLARED.query.text_of(name),)*
                no_kind!() => QueryFields::<()>::NAME_ONLY.text_of(name),
            }
        }

        /// The entity of an id, as far as somebody of a tenant (the null id for system administrators) with that authority can
        /// know. Whether it may be handed out is to be asked then.
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

        /// Those of the entities of these ids that the tenant has, in one query; `None` for kinds that are looked up one by
        /// one.
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
    /// The same as [`Self::resource`] when somebody of this customer asks: what is assigned to several customers counts as
    /// that of the one who asks, if it is among them.
    pub fn resource_for(&self, customer: CustomerId) -> AccessResource {
        let resource = self.resource();
        let is_own = |one: &ShortCustomerInfo| one.customer_id == customer;
        if !customer.is_null() && self.shared_with().iter().any(is_own) {
            return AccessResource { customer, ..resource };
        }
        resource
    }

    /// What reads and writes of its data are addressed to.
    pub fn subject(&self) -> EntityKey {
        let resource = self.resource();
        EntityKey {
            tenant: resource.tenant,
            entity: resource.entity,
        }
    }
}
