//! Time series, latest values and attributes in an embedded LSM engine.
