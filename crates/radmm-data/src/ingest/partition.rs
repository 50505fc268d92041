//! A table partitioned over the nodes.

use std::collections::HashMap;

use radmm::curator::{RowMemory, Shard, ShardBuilder};

use super::holdout::Holdout;
use super::row_buffer::RowBuffer;
use super::split;
use crate::error::DataError;
use crate::error_kinds::SplitError;
use crate::schema::{Schema, Split};

/// The rules by which a table is partitioned.
#[derive(Clone, Copy, Debug)]
pub struct PartitionSpec<'a> {
    /// The rule that assigns rows to nodes.
    pub split: &'a Split,
    /// The number of nodes.
    pub nodes: usize,
    /// The rule that holds rows out, if there is one.
    pub holdout: Option<&'a Holdout>,
    /// The memory for encoded rows; `None` if all are kept in memory.
    pub memory: Option<&'a RowMemory>,
}

impl<'a> PartitionSpec<'a> {
    /// Returns a specification that holds no rows out and keeps all in memory.
    pub fn new(split: &'a Split, nodes: usize) -> Self {
        Self {
            split,
            nodes,
            holdout: None,
            memory: None,
        }
    }

    /// Returns the same specification with rows held out.
    pub fn holding_out(self, holdout: &'a Holdout) -> Self {
        Self {
            holdout: Some(holdout),
            ..self
        }
    }

    /// Returns the same specification with rows stored that exceed this memory.
    pub fn within(self, memory: &'a RowMemory) -> Self {
        Self {
            memory: Some(memory),
            ..self
        }
    }
}

/// A table partitioned over the nodes, with counts of its rows.
pub struct Partition {
    /// The parts of the nodes, in order.
    pub parts: Vec<Part>,
    /// The held-out rows, if there is a rule for them.
    pub test: Option<Shard>,
    /// The number of held-out rows of the positive class.
    pub test_positive: usize,
    /// The number of rows in the file, without those held out.
    pub read: usize,
    /// The number of rows dropped because a used field is missing.
    pub dropped: usize,
    /// The number of training rows of the positive class.
    pub positive: usize,
    /// The columns that neither the schema nor the split names, in order.
    pub ignored: Vec<String>,
    /// The first few different labels, in order of appearance, those of held-out rows last. Many suggest misspelt ones.
    pub labels: Vec<String>,
    /// The number of training rows with each of these labels, in the same order. Labels without a number occur only in
    /// held-out rows. Training rows that are not counted here have other labels.
    pub label_counts: Vec<usize>,
    /// The numeric columns with values beyond their bounds, and how many. Many suggest that the bounds are in other
    /// units.
    pub clipped: Vec<(String, usize)>,
    /// The columns with values that count as missing because they cannot be encoded, and how many. Many suggest that they are written
    /// otherwise than in the schema.
    pub others: Vec<(String, usize)>,
    /// The columns without whose values rows were dropped, and how many rows lack each, most first.
    pub lacking: Vec<(String, usize)>,
}

impl Partition {
    /// Returns the number of held-out rows.
    pub fn held_out(&self) -> usize {
        self.test.as_ref().map_or(0, Shard::rows)
    }
}

/// The training rows of one node.
pub struct Part {
    /// The name `node 0`, `node 1`, … or, if rows are split by a column, the value of the node.
    pub name: String,
    /// The rows; there is at least one.
    pub shard: Shard,
    /// The number of rows of the positive class.
    pub positive: usize,
}

/// Assigns encoded rows to nodes: at once if the split allows it, and otherwise when all rows are known. The rows of a
/// node stay in the order of the file.
pub(crate) struct Partitioner<'a> {
    file: &'a str,
    schema: &'a Schema,
    split: &'a Split,
    nodes: usize,
    /// The values of the nodes of a split by column, as far as they are known.
    values: Vec<String>,
    /// The node of each of these values.
    node_of: HashMap<String, usize>,
    columns: usize,
    memory: Option<&'a RowMemory>,
    shards: Vec<ShardBuilder>,
    /// The number of rows of the positive class, by node.
    positive: Vec<usize>,
    /// The rows whose node depends on all rows.
    pending: RowBuffer,
    rows: usize,
}

impl<'a> Partitioner<'a> {
    pub(crate) fn new(
        file: &'a str,
        schema: &'a Schema,
        spec: PartitionSpec<'a>,
    ) -> Result<Self, DataError> {
        let (split, nodes) = (spec.split, spec.nodes);
        let mut partitioner = Self {
            file,
            schema,
            split,
            nodes,
            values: Vec::new(),
            node_of: HashMap::new(),
            columns: schema.width(),
            memory: spec.memory,
            shards: Vec::new(),
            positive: Vec::new(),
            pending: RowBuffer::within(spec.memory),
            rows: 0,
        };
        if nodes == 0 {
            return Err(partitioner.error(SplitError::NoNodes));
        }
        if let Split::Column { column, values } = split {
            if !values.is_empty() && values.len() != nodes {
                return Err(partitioner.wrong_values(column, values.len()));
            }
            for value in values {
                if partitioner.node_of.contains_key(value) {
                    return Err(partitioner.error(SplitError::RepeatedValue {
                        column: column.clone(),
                        value: value.clone(),
                    }));
                }
                partitioner.add_value(value);
            }
        }
        Ok(partitioner)
    }

    /// Returns the node of a value of a split by column. It is a new node if the values were not given and a node is
    /// left.
    pub(crate) fn node_for(&mut self, value: &str) -> Option<usize> {
        let open = matches!(self.split, Split::Column { values, .. } if values.is_empty());
        if open && self.values.len() < self.nodes && !self.node_of.contains_key(value) {
            self.add_value(value);
        }
        self.node_of.get(value).copied()
    }

    /// Returns the values of the nodes.
    pub(crate) fn values(&self) -> &[String] {
        &self.values
    }

    fn add_value(&mut self, value: &str) {
        self.node_of.insert(value.to_owned(), self.values.len());
        self.values.push(value.to_owned());
    }

    fn wrong_values(&self, column: &str, values: usize) -> DataError {
        self.error(SplitError::WrongValues {
            column: column.to_owned(),
            values,
            nodes: self.nodes,
        })
    }

    /// Returns the node of the next row in a round-robin split.
    pub(crate) fn round_robin(&self) -> Option<usize> {
        matches!(self.split, Split::RoundRobin).then_some(self.rows % self.nodes)
    }

    /// Assigns a row to its node, or keeps it if the node is not known yet.
    pub(crate) fn push(
        &mut self,
        node: Option<usize>,
        entries: &[(u32, f64)],
        positive: bool,
    ) -> Result<(), DataError> {
        self.rows += 1;
        match node {
            Some(node) => self.assign(node, entries, positive),
            None => {
                let pushed = self.pending.push(entries, positive);
                pushed.map_err(DataError::storage(self.file))
            }
        }
    }

    /// Returns the part of each node, none of them empty.
    pub(crate) fn finish(mut self) -> Result<Vec<Part>, DataError> {
        let (rows, nodes) = (self.rows, self.nodes);
        if rows < nodes {
            return Err(self.error(SplitError::TooFewRows { rows, nodes }));
        }
        if let Split::Column { column, .. } = self.split
            && self.values.len() < nodes
        {
            return Err(self.wrong_values(column, self.values.len()));
        }
        let node_of = match self.split {
            Split::RoundRobin | Split::Column { .. } => Ok(Vec::new()),
            Split::Shuffled { seed } => Ok(split::shuffled(rows, nodes, *seed)),
            Split::Sizes { sizes, seed } => split::by_sizes(rows, nodes, sizes, *seed),
            Split::Dirichlet { alpha, seed } => {
                let positive: Vec<bool> = self.pending.positive().collect();
                split::dirichlet(&positive, nodes, *alpha, *seed)
            }
        };
        let node_of = node_of.map_err(|cause| self.error(cause))?;
        let mut pending = std::mem::take(&mut self.pending);
        let mut entries = Vec::new();
        for node in node_of {
            // There is a node for each pending row.
            let popped = pending.pop(&mut entries);
            if let Some(positive) = popped.map_err(DataError::storage(self.file))? {
                self.assign(node, &entries, positive)?;
            }
        }
        self.grow(nodes);
        let shards = std::mem::take(&mut self.shards);
        let parts = shards.into_iter().enumerate().map(|(node, builder)| {
            let shard = builder
                .finish()
                .map_err(|_| self.error(self.no_rows(node)))?;
            Ok(Part {
                name: self.name(node),
                shard,
                positive: self.positive[node],
            })
        });
        parts.collect()
    }

    fn assign(
        &mut self,
        node: usize,
        entries: &[(u32, f64)],
        positive: bool,
    ) -> Result<(), DataError> {
        self.grow(node + 1);
        self.positive[node] += usize::from(positive);
        let pushed = self.shards[node].push(entries, positive);
        pushed.map_err(DataError::row(self.file))
    }

    /// Allocates the first `nodes` shards. A shard is allocated with its first row, so that the number of nodes is
    /// checked against the rows before it costs memory.
    fn grow(&mut self, nodes: usize) {
        let (columns, policy) = (self.columns, self.schema.rows);
        if self.shards.len() < nodes {
            let builder = || ShardBuilder::new(columns, policy).with_memory(self.memory);
            self.shards.resize_with(nodes, builder);
            self.positive.resize(nodes, 0);
        }
    }

    fn name(&self, node: usize) -> String {
        match self.split {
            Split::Column { .. } => self.values[node].clone(),
            _ => format!("node {node}"),
        }
    }

    fn no_rows(&self, node: usize) -> SplitError {
        match self.split {
            Split::Column { column, .. } => SplitError::NoRowsWithValue {
                node,
                column: column.clone(),
                value: self.values[node].clone(),
            },
            Split::Dirichlet { alpha, .. } => SplitError::NoRowsDrawn {
                node,
                alpha: *alpha,
            },
            // Unreachable: round-robin gives each node a row if there are enough, and too small sizes are refused.
            Split::RoundRobin | Split::Shuffled { .. } | Split::Sizes { .. } => {
                SplitError::TooFewRows {
                    rows: self.rows,
                    nodes: self.nodes,
                }
            }
        }
    }

    fn error(&self, cause: SplitError) -> DataError {
        DataError::Split {
            file: self.file.to_owned(),
            cause,
        }
    }
}
