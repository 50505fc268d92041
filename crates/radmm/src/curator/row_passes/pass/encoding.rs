//! Passes as bytes, for workers.

use std::sync::Arc;

use super::{CurvaturesAt, Pass, Summand};
use crate::curator::bytes::{ByteReader, ByteWriter, WrongBytes};
use crate::curator::solver::double_double::Point;
use crate::problem::Loss;
use crate::protocol::metric::Metric;

impl Pass {
    pub(in crate::curator) fn write(&self, writer: &mut ByteWriter) {
        writer.count(self.stride);
        match &self.summand {
            Summand::Gradient {
                at,
                loss,
                weight,
                metric,
            } => {
                writer.byte(0);
                write_point(at, writer);
                write_loss(*loss, writer);
                writer.number(*weight);
                writer.byte(u8::from(metric.is_some()));
                if let Some(metric) = metric {
                    let (transform, bounds) = metric.numbers();
                    writer.count(metric.columns());
                    writer.numbers(transform);
                    writer.items(&bounds, f64::to_le_bytes);
                }
            }
            Summand::Hessian(curvatures) => {
                writer.byte(1);
                curvatures.write(writer);
            }
            Summand::HessianProduct { curvatures, vector } => {
                writer.byte(2);
                curvatures.write(writer);
                write_point(vector, writer);
            }
            Summand::HessianDiagonal { curvatures, start } => {
                writer.byte(3);
                curvatures.write(writer);
                writer.number(*start);
            }
            Summand::RootCurvature(curvatures) => {
                writer.byte(4);
                curvatures.write(writer);
            }
            Summand::Gram { unit } => {
                writer.byte(5);
                writer.number(*unit);
            }
            Summand::Row { weight } => {
                writer.byte(6);
                writer.number(*weight);
            }
            Summand::WeightedRow { weights } => {
                writer.byte(7);
                writer.numbers(weights);
            }
            Summand::RowProduct => writer.byte(8),
            Summand::Loss { at, loss } => {
                writer.byte(9);
                write_point(at, writer);
                write_loss(*loss, writer);
            }
            Summand::Margin { at } => {
                writer.byte(10);
                write_point(at, writer);
            }
            Summand::Label => writer.byte(11),
        }
    }

    pub(in crate::curator) fn read(reader: &mut ByteReader<'_>) -> Result<Self, WrongBytes> {
        let stride = reader.count()?;
        if stride == 0 {
            return Err(INVALID);
        }
        let summand = match reader.byte()? {
            0 => Summand::Gradient {
                at: read_point(reader)?,
                loss: read_loss(reader)?,
                weight: reader.number()?,
                metric: match reader.byte()? {
                    0 => None,
                    _ => Some(read_metric(reader)?),
                },
            },
            1 => Summand::Hessian(CurvaturesAt::read(reader)?),
            2 => Summand::HessianProduct {
                curvatures: CurvaturesAt::read(reader)?,
                vector: read_point(reader)?,
            },
            3 => Summand::HessianDiagonal {
                curvatures: CurvaturesAt::read(reader)?,
                start: reader.number()?,
            },
            4 => Summand::RootCurvature(CurvaturesAt::read(reader)?),
            5 => Summand::Gram {
                unit: reader.number()?,
            },
            6 => Summand::Row {
                weight: reader.number()?,
            },
            7 => Summand::WeightedRow {
                weights: reader.numbers()?,
            },
            8 => Summand::RowProduct,
            9 => Summand::Loss {
                at: read_point(reader)?,
                loss: read_loss(reader)?,
            },
            10 => Summand::Margin {
                at: read_point(reader)?,
            },
            11 => Summand::Label,
            _ => return Err(INVALID),
        };
        Ok(Self { summand, stride })
    }

    /// Returns whether every vector of the pass has as many numbers as rows have columns.
    pub(in crate::curator) fn is_of(&self, columns: usize) -> bool {
        let is = |point: &Point| point.high().len() == columns;
        match &self.summand {
            Summand::Gradient { at, metric, .. } => {
                let metric = metric.as_ref();
                is(at) && metric.is_none_or(|metric| metric.columns() == columns)
            }
            Summand::Hessian(curvatures)
            | Summand::HessianDiagonal { curvatures, .. }
            | Summand::RootCurvature(curvatures) => is(&curvatures.at),
            Summand::HessianProduct { curvatures, vector } => is(&curvatures.at) && is(vector),
            Summand::Loss { at, .. } | Summand::Margin { at } => is(at),
            Summand::Gram { .. }
            | Summand::Row { .. }
            | Summand::WeightedRow { .. }
            | Summand::RowProduct
            | Summand::Label => true,
        }
    }
}

impl CurvaturesAt {
    fn write(&self, writer: &mut ByteWriter) {
        write_point(&self.at, writer);
        write_loss(self.loss, writer);
        writer.number(self.weight);
    }

    fn read(reader: &mut ByteReader<'_>) -> Result<Self, WrongBytes> {
        Ok(Self {
            at: read_point(reader)?,
            loss: read_loss(reader)?,
            weight: reader.number()?,
        })
    }
}

const INVALID: WrongBytes = WrongBytes("they do not describe a pass over rows");

fn write_point(point: &Point, writer: &mut ByteWriter) {
    writer.numbers(point.high());
    writer.numbers(point.low());
}

fn read_point(reader: &mut ByteReader<'_>) -> Result<Point, WrongBytes> {
    let (high, low) = (reader.numbers()?, reader.numbers()?);
    Point::from_parts(high, low).ok_or(INVALID)
}

fn write_loss(loss: Loss, writer: &mut ByteWriter) {
    match loss {
        Loss::Logistic => writer.byte(0),
        Loss::CutLogistic => writer.byte(1),
        Loss::SmoothHinge { width } => {
            writer.byte(2);
            writer.number(width);
        }
    }
}

fn read_loss(reader: &mut ByteReader<'_>) -> Result<Loss, WrongBytes> {
    Ok(match reader.byte()? {
        0 => Loss::Logistic,
        1 => Loss::CutLogistic,
        2 => Loss::SmoothHinge {
            width: reader.number()?,
        },
        _ => return Err(INVALID),
    })
}

fn read_metric(reader: &mut ByteReader<'_>) -> Result<Arc<Metric>, WrongBytes> {
    let (columns, transform) = (reader.count()?, reader.numbers()?);
    let bounds = [reader.number()?, reader.number()?, reader.number()?];
    let metric = Metric::from_numbers(columns, transform, bounds).ok_or(INVALID)?;
    Ok(Arc::new(metric))
}
