//! The widget library: types of widgets and bundles of them, of tenants and of the system.

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_model::entity::{EntityDraft, WidgetTypeDetails, WidgetTypeInfo, WidgetsBundle};
use fieldline_model::{EntityType, TenantId, WidgetTypeId};
use serde_json::Value;

use super::{ServiceContext, ServiceError, ServiceResult, resources, saving, validate};

/// Most types in a bundle.
const MAX_TYPES: usize = 1_000;
/// Most tags of a type.
const MAX_TAGS: usize = 100;
/// Largest picture within a type or a bundle, in bytes.
const MAX_IMAGE: usize = 1_048_576;
/// Longest description, in bytes.
const MAX_DESCRIPTION: usize = 16_384;
/// Most numbers that are tried behind a name that is taken.
const MAX_NUMBER: u32 = 10_000;

/// Rules about widget types and bundles. The tenant of each call is the owner: the null id for the system's.
#[derive(Clone)]
pub struct WidgetLibraryService(Arc<ServiceContext>);

impl WidgetLibraryService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the type, or updates it where it has an id, or with `by_fqn` where one of its name is there.
    ///
    /// # Errors
    /// A rule is broken, or the name is taken.
    pub async fn save_type(
        &self,
        owner: TenantId,
        mut draft: EntityDraft<WidgetTypeDetails>,
        by_fqn: bool,
    ) -> ServiceResult<WidgetTypeDetails> {
        let stores = &*self.0.stores.widget_types;
        draft.resources = None;
        resources::keep_widget_images(&self.0, owner, &mut draft).await?;
        check_type(&draft)?;
        let given = draft.base.fqn.take().filter(|fqn| !fqn.trim().is_empty());
        let mut old = match draft.id {
            Some(id) => {
                let found = stores.get(owner, id).await?;
                Some(found.ok_or_else(|| saving::not_there(EntityType::WidgetType))?)
            }
            None => None,
        };
        if let (None, true, Some(fqn)) = (&old, by_fqn, &given) {
            old = stores.by_fqn(owner, fqn).await?;
            // The client knows the name alone, so there is no version that it could have read.
            draft.base.version = None;
        }
        let fqn = match (&old, given) {
            (Some(old), Some(fqn)) if old.base.fqn.as_ref() != Some(&fqn) => {
                return Err(ServiceError::invalid("Update of widget type fqn is prohibited!"));
            }
            (Some(old), _) => old.base.fqn.clone(),
            (None, given) => {
                let wanted = given.unwrap_or_else(|| identifier(&draft.base.name));
                Some(self.free_fqn(owner, &wanted).await?)
            }
        };
        draft.base.fqn = fqn;
        draft.base.tenant_id = owner;
        let saved = saving::save(&self.0, stores, draft, old.as_ref()).await?;
        self.0.publish_change(EntityChange::saved(owner, saved.base.id));
        Ok(saved)
    }

    async fn free_fqn(&self, owner: TenantId, wanted: &str) -> ServiceResult<String> {
        let stores = &self.0.stores.widget_types;
        for candidate in candidates(wanted) {
            if stores.id_of(owner, &candidate).await?.is_none() {
                return Ok(candidate);
            }
        }
        Err(ServiceError::invalid(format!(
            "There are too many widget types called '{wanted}': please give it another fqn"
        )))
    }

    /// Deletes a type. Dashboards that name it stay as they are.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete_type(&self, found: &WidgetTypeInfo) -> ServiceResult<()> {
        let (owner, id) = (found.base.tenant_id, found.base.id);
        self.0.stores.widget_types.delete(owner, id).await?;
        self.0.publish_change(EntityChange::deleted(owner, id));
        Ok(())
    }

    /// Creates the bundle, or updates it where it has an id. Its types stay as they are.
    ///
    /// # Errors
    /// A rule is broken, or the alias is taken.
    pub async fn save_bundle(
        &self,
        owner: TenantId,
        mut draft: EntityDraft<WidgetsBundle>,
    ) -> ServiceResult<WidgetsBundle> {
        let stores = &*self.0.stores.widgets_bundles;
        validate::required("Widgets bundle title", &draft.title)?;
        validate::lengths(&[("title", Some(&draft.title)), ("alias", draft.alias.as_deref())])?;
        let of_system = if owner.is_null() { "system " } else { "" };
        let title = format!("\"{}\" {of_system}bundle image", draft.title);
        resources::keep_image(&self.0, owner, &title, &mut draft.image).await?;
        check_texts(draft.image.as_deref(), draft.description.as_deref())?;
        let given = draft.alias.take().filter(|alias| !alias.trim().is_empty());
        let old = saving::stored(stores, owner, &draft).await?;
        draft.alias = match (&old, given) {
            (Some(old), Some(alias)) if old.alias.as_ref() != Some(&alias) => {
                return Err(ServiceError::invalid(
                    "Update of widgets bundle alias is prohibited!",
                ));
            }
            (Some(old), _) => old.alias.clone(),
            (None, given) => {
                let wanted = given.unwrap_or_else(|| identifier(&draft.title));
                Some(self.free_alias(owner, &wanted).await?)
            }
        };
        draft.tenant_id = owner;
        draft.name = draft.title.clone();
        let saved = saving::save(&self.0, stores, draft, old.as_ref()).await?;
        self.0.publish_change(EntityChange::saved(owner, saved.id));
        Ok(saved)
    }

    async fn free_alias(&self, owner: TenantId, wanted: &str) -> ServiceResult<String> {
        let stores = &self.0.stores.widgets_bundles;
        for candidate in candidates(wanted) {
            if stores.by_alias(owner, &candidate).await?.is_none() {
                return Ok(candidate);
            }
        }
        Err(ServiceError::invalid(format!(
            "There are too many widget bundles called '{wanted}': please give it another alias"
        )))
    }

    /// Deletes a bundle; its types stay.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete_bundle(&self, bundle: &WidgetsBundle) -> ServiceResult<()> {
        let (owner, id) = (bundle.tenant_id, bundle.id);
        self.0.stores.widgets_bundles.delete(owner, id).await?;
        self.0.publish_change(EntityChange::deleted(owner, id));
        Ok(())
    }

    /// Replaces the types of a bundle by these, in this order.
    ///
    /// # Errors
    /// There are too many, or one of them belongs neither to the bundle's owner nor to the system.
    pub async fn set_types(&self, bundle: &WidgetsBundle, types: &[WidgetTypeId]) -> ServiceResult<()> {
        if types.len() > MAX_TYPES {
            return Err(ServiceError::invalid(format!(
                "A widgets bundle can have {MAX_TYPES} widget types, not {}",
                types.len()
            )));
        }
        let wanted: BTreeSet<WidgetTypeId> = types.iter().copied().collect();
        if wanted.len() != types.len() {
            return Err(ServiceError::invalid("A widget type is named twice!"));
        }
        let found = self
            .0
            .stores
            .widget_types
            .visible(bundle.tenant_id, types)
            .await?;
        let found: BTreeSet<WidgetTypeId> = found.into_iter().collect();
        if let Some(absent) = wanted.difference(&found).next() {
            return Err(ServiceError::invalid(format!(
                "Widget type with id [{absent}] is not found"
            )));
        }
        self.0.stores.widgets_bundles.set_types(bundle.id, types).await?;
        self.0
            .publish_change(EntityChange::saved(bundle.tenant_id, bundle.id));
        Ok(())
    }

    /// The same by fully qualified names: those of the bundle's owner first, then the system's. A prefix `system.` or
    /// `tenant.` says which of both. Names that nothing has are left out.
    ///
    /// # Errors
    /// There are too many.
    pub async fn set_types_by_fqn(&self, bundle: &WidgetsBundle, fqns: &[String]) -> ServiceResult<()> {
        if fqns.len() > MAX_TYPES {
            return Err(ServiceError::invalid(format!(
                "A widgets bundle can have {MAX_TYPES} widget types, not {}",
                fqns.len()
            )));
        }
        // A bundle that is brought in may name types that this installation does not have.
        let mut types = Vec::with_capacity(fqns.len());
        for fqn in fqns {
            types.extend(self.find_by_fqn(bundle.tenant_id, fqn).await?);
        }
        self.set_types(bundle, &types).await
    }

    async fn find_by_fqn(&self, owner: TenantId, fqn: &str) -> ServiceResult<Option<WidgetTypeId>> {
        let stores = &self.0.stores.widget_types;
        if let Some(found) = stores.id_of(owner, fqn).await? {
            return Ok(Some(found));
        }
        if let Some(found) = stores.id_of(TenantId::NULL, fqn).await? {
            return Ok(Some(found));
        }
        Ok(match fqn.split_once('.') {
            Some(("system", name)) => stores.id_of(TenantId::NULL, name).await?,
            Some(("tenant", name)) => stores.id_of(owner, name).await?,
            _ => None,
        })
    }
}

fn check_type(draft: &EntityDraft<WidgetTypeDetails>) -> ServiceResult<()> {
    let base = &draft.base;
    validate::required("Widgets type name", &base.name)?;
    validate::lengths(&[("name", Some(&base.name)), ("fqn", base.fqn.as_deref())])?;
    check_texts(draft.texts.image.as_deref(), draft.texts.description.as_deref())?;
    let tags = draft.texts.tags.as_deref().unwrap_or_default();
    if tags.len() > MAX_TAGS {
        return Err(ServiceError::invalid(format!(
            "A widget type can have {MAX_TAGS} tags, not {}",
            tags.len()
        )));
    }
    for tag in tags {
        validate::lengths(&[("tag", Some(tag))])?;
    }
    match &draft.descriptor {
        Value::Object(fields) if !fields.is_empty() => Ok(()),
        Value::Null | Value::Object(_) => {
            Err(ServiceError::invalid("Widgets type descriptor can't be empty!"))
        }
        _ => Err(ServiceError::invalid("descriptor must be a JSON object!")),
    }
}

/// What lists show of each row is bounded, since they have many.
fn check_texts(image: Option<&str>, description: Option<&str>) -> ServiceResult<()> {
    for (name, text, most) in [
        ("image", image, MAX_IMAGE),
        ("description", description, MAX_DESCRIPTION),
    ] {
        let size = text.map_or(0, str::len);
        if size > most {
            return Err(ServiceError::invalid(format!(
                "{name} has {size} bytes, and {most} are allowed"
            )));
        }
    }
    Ok(())
}

/// The identifier that is made from a name: in lower case, what is no part of a word as `_`.
fn identifier(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for letter in name.to_lowercase().chars() {
        match letter.is_alphanumeric() || letter == '_' {
            true => plain.push(letter),
            false if plain.ends_with('_') => {}
            false => plain.push('_'),
        }
    }
    plain.chars().take(240).collect()
}

/// Identifiers that are tried one after the other: the one that is wanted, then with a number.
fn candidates(wanted: &str) -> impl Iterator<Item = String> {
    let numbered = wanted.to_owned();
    std::iter::once(numbered.clone()).chain((2..=MAX_NUMBER).map(move |number| format!("{numbered}{number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_made_from_the_name_and_numbered_where_it_is_taken() {
        let made: Vec<String> = candidates(&identifier("Air -- quality (µg)")).take(3).collect();
        assert_eq!(made, ["air_quality_µg_", "air_quality_µg_2", "air_quality_µg_3"]);
    }
}
