//! Whether deploy/ is right, in itself and about the programs. Neither a cluster nor a container engine is needed. That
//! the manifests are valid by Kubernetes' schemas is checked by `cargo xtask manifests`.

mod compose;
mod console;
mod edge;
mod identity;
mod objects;
mod pod;
mod raters;
mod references;
mod running;
mod secured;
