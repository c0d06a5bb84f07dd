//! The `fieldline` program.
fn main() {}
