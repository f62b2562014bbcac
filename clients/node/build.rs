//! Lets the addon be linked without the symbols of Node, which are there once it is loaded.

fn main() {
    napi_build::setup();
}
