//! What tests share: contract suites that every backend must pass, a clock that is moved by hand, fixtures.

pub mod clock;
pub mod contract;
