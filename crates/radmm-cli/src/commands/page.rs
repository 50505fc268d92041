//! `radmm page`: the link to the page of a running node.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use radmm_node::http::client::{get, parse_link};
use radmm_node::runtime::link_file;
use radmm_study::SiteFile;

use crate::args::PageArgs;
use crate::error::CommandError;
use crate::input::load::SourceText;
use crate::output::files;

pub(crate) fn run(args: &PageArgs) -> Result<(), CommandError> {
    let node = RunningNode::find(&args.site)?;
    // The link of a node that has ended leads nowhere.
    node.get("/health")?;
    files::print(&node.link)
}

/// A node that serves its page on this machine.
pub(super) struct RunningNode {
    link: String,
    address: SocketAddr,
    token: String,
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
        let link = match fs::read_to_string(&path) {
            Ok(link) => link,
            Err(cause) => return Err(CommandError::NoPageLink { path, cause }),
        };
        match parse_link(&link) {
            Some((address, token)) => Ok(Self {
                link,
                address,
                token,
            }),
            None => Err(CommandError::NoPageLink {
                path,
                cause: io::Error::other("it holds no link"),
            }),
        }
    }

    /// Reads a page of the node.
    pub(super) fn get(&self, path: &str) -> Result<String, CommandError> {
        let address = self.address;
        let failed = |cause| CommandError::NoNode { address, cause };
        match get(address, &self.token, path).map_err(failed)? {
            // Health is told by the code as well.
            (200 | 503, body) => Ok(body),
            (code, _) => {
                let words = format!("another program, or an earlier node's file (code {code})");
                Err(failed(io::Error::other(words)))
            }
        }
    }
}
