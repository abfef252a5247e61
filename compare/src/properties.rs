//! What the mutations take from the fuzz targets' properties.

#[path = "../../fuzz/src/properties/draw.rs"]
mod draw;

pub use draw::Draw;
