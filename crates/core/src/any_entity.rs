//! An entity of any kind, and the declaration of each kind.

mod kind;
mod kinds;
mod rights;

pub use kind::{
    AnyEntity, EntityKind, EntityTextField, EntityVariant, FindAll, FindOne, KindDeclaration, KindLimit,
    KindPolicy, QueryFields, QueryText, StoreFuture, find, find_all, kind_policy, query_text,
};
pub use kinds::TenantRuleNode;
pub use rights::{AccessGrant, AccessResource, AccessRights};
