"""Generated from the wire contract by `cargo xtask proto`."""
