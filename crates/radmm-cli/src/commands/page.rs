//! `radmm page`: the link to the page of a running node.

use std::fs;
use std::io;
use std::path::Path;

use radmm_node::http::client::PageLink;
use radmm_node::runtime::link_file;
use radmm_study::SiteFile;

use crate::args::PageArgs;
use crate::error::CommandError;
use crate::input::load::SourceText;
use crate::output::files;

pub(crate) fn run(args: &PageArgs) -> Result<(), CommandError> {
    let node = RunningNode::find(&args.site)?;
    // The link of a node that has ended leads nowhere.
    node.status()?;
    files::print(&node.text)
}

/// A node that serves its page on this machine.
pub(super) struct RunningNode {
    /// The link as it is written.
    text: String,
    link: PageLink,
}

impl RunningNode {
    /// Finds the node of a site.
    pub(super) fn find(site: &Path) -> Result<Self, CommandError> {
        let source = SourceText::read(site)?;
        let (site, _) = SiteFile::parse(&source.text, &source.name)?;
        if site.metrics.is_none() {
            return Err(CommandError::NoPage { site: source.name });
        }
        let path = link_file(&source.folder.join(site.state));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) => return Err(CommandError::NoPageLink { path, cause }),
        };
        match PageLink::parse(&text) {
            Some(link) => Ok(Self { text, link }),
            None => Err(CommandError::NoPageLink {
                path,
                cause: io::Error::other("it holds no link"),
            }),
        }
    }

    /// Reads the report of the node, as JSON.
    pub(super) fn status(&self) -> Result<String, CommandError> {
        let address = self.link.address;
        let failed = |cause| CommandError::NoNode { address, cause };
        match self.link.get("api/status").map_err(failed)? {
            (200, body) => Ok(body),
            (code, _) => {
                let words = format!("another program, or an earlier node's file (code {code})");
                Err(failed(io::Error::other(words)))
            }
        }
    }
}
