//! Assets.

use fieldline_model::entity::{Asset, AssetProfile, EntityDraft};

use super::assignable::{self, AssignableRules};
use super::{ServiceContext, ServiceResult, profiles, validate};

impl AssignableRules for Asset {
    async fn prepare(context: &ServiceContext, asset: &mut EntityDraft<Self>) -> ServiceResult<()> {
        check_fields(asset)?;
        assignable::check_customer::<Self>(context, asset).await?;
        let named = (asset.asset_profile_id, asset.asset_type.as_str());
        let profile: AssetProfile = profiles::of_entity(context, asset.tenant_id, named.0, named.1).await?;
        asset.asset_profile_id = Some(profile.id);
        asset.asset_type = profile.name;
        Ok(())
    }
}

/// What can be said about an asset without asking the stores.
pub(super) fn check_fields(asset: &Asset) -> ServiceResult<()> {
    validate::required("Asset name", &asset.name)?;
    validate::lengths(&[
        ("name", Some(&asset.name)),
        ("type", Some(&asset.asset_type)),
        ("label", asset.label.as_deref()),
    ])?;
    validate::json_object("additionalInfo", asset.additional_info.as_ref())
}
