//! `[network]` as it is serialised: with the keys and the names of topologies of its file.

use radmm::graph::Topology;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::NetworkSection;

impl Serialize for NetworkSection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("nodes", &self.nodes)?;
        match &self.topology {
            Topology::Ring => map.serialize_entry("topology", "ring")?,
            Topology::Path => map.serialize_entry("topology", "path")?,
            Topology::Star => map.serialize_entry("topology", "star")?,
            Topology::Complete => map.serialize_entry("topology", "complete")?,
            Topology::Grid { width } => {
                map.serialize_entry("topology", "grid")?;
                map.serialize_entry("width", width)?;
            }
            Topology::Random { probability, seed } => {
                map.serialize_entry("topology", "random")?;
                map.serialize_entry("probability", probability)?;
                map.serialize_entry("seed", seed)?;
            }
            Topology::Regular { degree, seed } => {
                map.serialize_entry("topology", "random-regular")?;
                map.serialize_entry("degree", degree)?;
                map.serialize_entry("seed", seed)?;
            }
            Topology::SmallWorld {
                degree,
                rewire,
                seed,
            } => {
                map.serialize_entry("topology", "small-world")?;
                map.serialize_entry("degree", degree)?;
                map.serialize_entry("rewire", rewire)?;
                map.serialize_entry("seed", seed)?;
            }
            Topology::Edges { edges } => map.serialize_entry("edges", edges)?,
        }
        map.end()
    }
}
