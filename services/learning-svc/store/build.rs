//! Rebuilds the crate when its embedded migrations change.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
