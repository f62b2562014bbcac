//! Whether what deploy/ holds is true: of itself, and of the programs. Neither cluster nor container engine is needed; that they are
//! valid by Kubernetes' schemas is what `cargo xtask manifests` sees to.

mod compose;
mod objects;
mod pod;
mod references;
mod running;
mod secured;
