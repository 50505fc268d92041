//! Pages as HTML: text, tables and figures in one file, in light and dark.

mod data_table;
mod html_figure;
mod markup;
mod page;
mod text_table;

pub use markup::sentences;
pub use page::{Block, Claim, Headline, Page, Section};
pub use text_table::TextTable;
