//! Entities in the JSON shape of the REST API. The same shape is what the SQL stores keep, so a field that only one
//! client uses is kept and given back.

mod device;
mod owner;
mod user;

pub use device::{
    CredentialsType, Device, DeviceCredentials, DeviceInfo, DeviceProfile, DeviceProfileInfo, TransportType,
};
pub use owner::{Contact, Customer, Tenant, TenantInfo, TenantProfile, TenantProfileInfo};
pub use user::{Authority, User, UserCredentials};
