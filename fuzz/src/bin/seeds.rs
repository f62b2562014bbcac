//! Rewrites the seeds of every target's corpus: `cargo run -p emend-fuzz --bin seeds`. Other inputs stay as they are.

use std::fs;

use emend_fuzz::{corpus, seeds};

fn main() -> anyhow::Result<()> {
    for (target, seeds) in seeds::all() {
        let directory = corpus::directory(target);
        fs::create_dir_all(&directory)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(directory.join(format!("seed-{number:02}")), seed)?;
        }
    }
    Ok(())
}
