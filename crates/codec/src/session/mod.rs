//! Session state.
