//! A table dealt out to the nodes.

use std::collections::HashMap;

use radmm::private::{Shard, ShardBuilder};

use crate::error::{DataError, SplitProblem};
use crate::holdout::Holdout;
use crate::schema::{Schema, Split};
use crate::split;
use crate::table::Table;

/// To whom rows go.
#[derive(Clone, Copy, Debug)]
pub struct Deal<'a> {
    /// Which row goes to which node.
    pub split: &'a Split,
    /// How many nodes there are.
    pub nodes: usize,
    /// Which rows go to none of them.
    pub holdout: Option<&'a Holdout>,
}

/// A table dealt out to the nodes, and what became of its rows.
pub struct Partition {
    /// One a node, in order.
    pub parts: Vec<Part>,
    /// Rows held out, if any were to be.
    pub test: Option<Shard>,
    /// Rows in the file, without those held out.
    pub read: usize,
    /// Rows left out because a used field is missing.
    pub dropped: usize,
    /// Rows of the positive class among those that were kept.
    pub positive: usize,
    /// Columns that neither the schema nor the split names, in order.
    pub ignored: Vec<String>,
    /// The first few values of the label, in order of appearance, those of held-out rows last. Many mean that some are misspelt.
    pub labels: Vec<String>,
    /// How many of the rows that were kept have each of these values, in the same order; those without a number are of held-out
    /// rows alone. The rows beyond these have other values.
    pub label_rows: Vec<usize>,
    /// Numeric columns with values beyond their bounds, and how many. Many mean that the bounds are in other units.
    pub clipped: Vec<(String, usize)>,
}

impl Partition {
    /// How many rows are held out.
    pub fn held_out(&self) -> usize {
        self.test.as_ref().map_or(0, Shard::rows)
    }
}

/// What one node gets.
pub struct Part {
    /// `node 0`, `node 1`, … or, when split by a column, its value.
    pub name: String,
    /// The rows; there is at least one.
    pub shard: Shard,
    /// How many of them are of the positive class.
    pub positive: usize,
}

/// Takes encoded rows one at a time and gives each to its node: at once where the split allows it, else when all are
/// known. A node's rows stay in the order of the file.
pub(crate) struct Dealer<'a> {
    file: &'a str,
    schema: &'a Schema,
    split: &'a Split,
    nodes: usize,
    /// For a column split, the values after which nodes are named, as far as they are known.
    values: Vec<String>,
    /// And from a value to its node.
    node_of: HashMap<String, usize>,
    columns: usize,
    dealt: Vec<ShardBuilder>,
    /// By node: rows of the positive class.
    positive: Vec<usize>,
    held: Table,
    rows: usize,
}

impl<'a> Dealer<'a> {
    pub(crate) fn new(
        file: &'a str,
        schema: &'a Schema,
        split: &'a Split,
        nodes: usize,
    ) -> Result<Self, DataError> {
        let mut dealer = Self {
            file,
            schema,
            split,
            nodes,
            values: Vec::new(),
            node_of: HashMap::new(),
            columns: schema.width(),
            dealt: Vec::new(),
            positive: Vec::new(),
            held: Table::default(),
            rows: 0,
        };
        if nodes == 0 {
            return Err(dealer.refuse(SplitProblem::NoNodes));
        }
        if let Split::Column { column, values } = split {
            if !values.is_empty() && values.len() != nodes {
                return Err(dealer.wrong_values(column, values.len()));
            }
            for value in values {
                if dealer.node_of.contains_key(value) {
                    return Err(dealer.refuse(SplitProblem::RepeatedValue {
                        column: column.clone(),
                        value: value.clone(),
                    }));
                }
                dealer.name_next(value);
            }
        }
        Ok(dealer)
    }

    /// The node that a column split names after `value`: a new one, if values were not given and a node is left.
    pub(crate) fn named(&mut self, value: &str) -> Option<usize> {
        let open = matches!(self.split, Split::Column { values, .. } if values.is_empty());
        if open && self.values.len() < self.nodes && !self.node_of.contains_key(value) {
            self.name_next(value);
        }
        self.node_of.get(value).copied()
    }

    /// The values after which nodes are named.
    pub(crate) fn values(&self) -> &[String] {
        &self.values
    }

    fn name_next(&mut self, value: &str) {
        self.node_of.insert(value.to_owned(), self.values.len());
        self.values.push(value.to_owned());
    }

    fn wrong_values(&self, column: &str, values: usize) -> DataError {
        self.refuse(SplitProblem::WrongValues {
            column: column.to_owned(),
            values,
            nodes: self.nodes,
        })
    }

    /// The node whose turn it is, if nodes take turns.
    pub(crate) fn turn(&self) -> Option<usize> {
        matches!(self.split, Split::RoundRobin).then_some(self.rows % self.nodes)
    }

    /// Gives a row to its node, or holds it if that is not known yet.
    pub(crate) fn push(
        &mut self,
        node: Option<usize>,
        entries: &[(u32, f64)],
        positive: bool,
    ) -> Result<(), DataError> {
        self.rows += 1;
        match node {
            Some(node) => self.deal(node, entries, positive),
            None => {
                self.held.push(entries, positive);
                Ok(())
            }
        }
    }

    /// Every node's part, none of them empty.
    pub(crate) fn finish(mut self) -> Result<Vec<Part>, DataError> {
        let (rows, nodes) = (self.rows, self.nodes);
        if rows < nodes {
            return Err(self.refuse(SplitProblem::TooFewRows { rows, nodes }));
        }
        if let Split::Column { column, .. } = self.split
            && self.values.len() < nodes
        {
            return Err(self.wrong_values(column, self.values.len()));
        }
        let node_of = match self.split {
            Split::RoundRobin | Split::Column { .. } => Ok(Vec::new()),
            Split::Shuffled { seed } => Ok(split::shuffled(rows, nodes, *seed)),
            Split::Sizes { sizes, seed } => split::sized(rows, nodes, sizes, *seed),
            Split::Dirichlet { alpha, seed } => {
                let positive: Vec<bool> = self.held.positive().collect();
                split::dirichlet(&positive, nodes, *alpha, *seed)
            }
        };
        let node_of = node_of.map_err(|problem| self.refuse(problem))?;
        let mut held = std::mem::take(&mut self.held);
        let mut entries = Vec::new();
        for node in node_of {
            // There is a node for each row that waits.
            if let Some(positive) = held.pop(&mut entries) {
                self.deal(node, &entries, positive)?;
            }
        }
        self.grow(nodes);
        let dealt = std::mem::take(&mut self.dealt);
        let parts = dealt.into_iter().enumerate().map(|(node, builder)| {
            let shard = builder
                .finish()
                .map_err(|_| self.refuse(self.no_rows(node)))?;
            Ok(Part {
                name: self.name(node),
                shard,
                positive: self.positive[node],
            })
        });
        parts.collect()
    }

    fn deal(
        &mut self,
        node: usize,
        entries: &[(u32, f64)],
        positive: bool,
    ) -> Result<(), DataError> {
        self.grow(node + 1);
        self.positive[node] += usize::from(positive);
        let pushed = self.dealt[node].push(entries, positive);
        pushed.map_err(|cause| DataError::Row {
            file: self.file.to_owned(),
            cause,
        })
    }

    /// Nodes come into being with their first row, so that their number is checked against the rows before it costs
    /// memory.
    fn grow(&mut self, nodes: usize) {
        let (columns, policy) = (self.columns, self.schema.rows);
        if self.dealt.len() < nodes {
            self.dealt
                .resize_with(nodes, || ShardBuilder::new(columns, policy));
            self.positive.resize(nodes, 0);
        }
    }

    fn name(&self, node: usize) -> String {
        match self.split {
            Split::Column { .. } => self.values[node].clone(),
            _ => format!("node {node}"),
        }
    }

    fn no_rows(&self, node: usize) -> SplitProblem {
        match self.split {
            Split::Column { column, .. } => SplitProblem::NoRowsWithValue {
                node,
                column: column.clone(),
                value: self.values[node].clone(),
            },
            Split::Dirichlet { alpha, .. } => SplitProblem::NoRowsDrawn {
                node,
                alpha: *alpha,
            },
            // Unreachable: by turns, as many rows as nodes are enough, and sizes that are too small are refused.
            Split::RoundRobin | Split::Shuffled { .. } | Split::Sizes { .. } => {
                SplitProblem::TooFewRows {
                    rows: self.rows,
                    nodes: self.nodes,
                }
            }
        }
    }

    fn refuse(&self, problem: SplitProblem) -> DataError {
        DataError::Split {
            file: self.file.to_owned(),
            problem,
        }
    }
}
