//! What tests share: contract suites that every backend must pass, a clock that is moved by hand, fixtures, and the other
//! side of outside services.

pub mod clock;
pub mod contract;
pub mod fake_stores;
#[cfg(feature = "services")]
pub mod fakes;
#[cfg(feature = "services")]
pub mod services;
