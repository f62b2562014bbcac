//! Whether the manifests of deploy/k8s are true: of each other, and of the programs. No cluster is needed; that they are
//! valid by Kubernetes' schemas is what `cargo xtask manifests` sees to.

mod objects;
mod pod;
mod references;
mod running;
