//! Scripts and styles: part of the program, served compressed under names with their hash, so that browsers keep them for good.

use std::io::Write as _;

use axum::{
    body::{Body, Bytes},
    extract::Path,
    response::{IntoResponse as _, Response},
};
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, StatusCode,
    header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS},
};
use xxhash_rust::xxh3::xxh3_64;

/// Name, type and content.
const FILES: [(&str, &str, &[u8]); 6] = [
    (
        "console.css",
        "text/css; charset=utf-8",
        include_bytes!("../assets/console.css"),
    ),
    (
        "console.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/console.js"),
    ),
    (
        "htmx.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/htmx.min.js"),
    ),
    (
        "rate.css",
        "text/css; charset=utf-8",
        include_bytes!("../assets/rate.css"),
    ),
    (
        "rate.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/rate.js"),
    ),
    ("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

/// All files, ready to be sent.
#[derive(Debug)]
pub(crate) struct Assets(Vec<Asset>);

#[derive(Debug)]
struct Asset {
    name: &'static str,
    /// With its hash.
    path: String,
    media_type: &'static str,
    plain: Bytes,
    compressed: Bytes,
}

impl Assets {
    /// Reads and compresses them.
    ///
    /// # Panics
    /// Never: nothing fails that writes to memory.
    pub(crate) fn new() -> Self {
        let asset = |(name, media_type, content): (&'static str, &'static str, &'static [u8])| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            let compressed = encoder.write_all(content).and_then(|()| encoder.finish());
            let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
            Asset {
                name,
                path: format!("/assets/{stem}-{:016x}.{ending}", xxh3_64(content)),
                media_type,
                plain: Bytes::from_static(content),
                compressed: compressed.expect("invariant: memory can be written").into(),
            }
        };
        Self(FILES.map(asset).into())
    }

    /// The address of the file of that name.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn path(&self, name: &str) -> &str {
        let asset = self.0.iter().find(|asset| asset.name == name);
        &asset
            .expect("invariant: templates name files that there are")
            .path
    }

    /// Sends a file.
    pub(crate) fn send(&self, Path(name): Path<String>, headers: &HeaderMap) -> Response {
        let path = format!("/assets/{name}");
        let Some(asset) = self.0.iter().find(|asset| asset.path == path) else {
            return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
        };
        let accepted = headers.get(ACCEPT_ENCODING);
        let accepts_gzip = accepted
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains("gzip"));
        let headers = [
            (CONTENT_TYPE, asset.media_type),
            (CACHE_CONTROL, "public, max-age=31536000, immutable"),
            (VARY, "accept-encoding"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        if accepts_gzip {
            let encoding = [(CONTENT_ENCODING, "gzip")];
            (headers, encoding, Body::from(asset.compressed.clone())).into_response()
        } else {
            (headers, Body::from(asset.plain.clone())).into_response()
        }
    }
}
