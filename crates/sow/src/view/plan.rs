//! Plan of a view: its parsed and checked definition, before it is bound to topics.

use super::accumulator::AccumulatorKind;
use super::definition::{Clause, ViewDefinition, ViewError};
use super::expression::CompiledExpr;
use super::groups::VALUES_MAX;
use super::record_writer::RecordWriter;
use lanecast_filter::expr::Expr;
use lanecast_filter::path::Path;
use lanecast_filter::value::Comparison;
use lanecast_filter::{Filter, FilterLimits, Function, Projection, parse_expr};
use std::convert::Infallible;

/// Plan of a view.
#[derive(Debug)]
pub(crate) struct ViewPlan {
    /// Input fields: topic, counted from 0, and path within its messages.
    pub(crate) inputs: Vec<(usize, Path)>,
    /// Joins; the n-th one joins topic n + 1.
    pub(crate) links: Vec<Link>,
    pub(crate) filter: Option<Filter>,
    /// Inputs to group by.
    pub(crate) keys: Vec<usize>,
    /// Arguments of aggregate functions: expressions of inputs.
    pub(crate) arguments: Vec<CompiledExpr>,
    /// Accumulators of a group: kind and argument.
    pub(crate) accumulator_kinds: Vec<(AccumulatorKind, usize)>,
    /// Inputs whose latest value is shown.
    pub(crate) lasts: Vec<usize>,
    /// Leaves of the columns' expressions.
    pub(crate) leaves: Vec<Leaf>,
    /// Expression of leaves, per field of the view.
    pub(crate) columns: Vec<CompiledExpr>,
    pub(crate) paths: Vec<Path>,
    /// Fields of the view that form its key.
    pub(crate) key_columns: Vec<usize>,
    pub(crate) record_writer: RecordWriter,
}

/// A join: how records of a topic are found.
#[derive(Debug)]
pub(crate) struct Link {
    /// The earlier topic with the other side of the equations.
    pub(crate) left: usize,
    /// Inputs of both topics that must be equal, pairwise.
    pub(crate) left_inputs: Vec<usize>,
    pub(crate) right_inputs: Vec<usize>,
}

/// Leaf of a column: a value that a group provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// A grouping value.
    Shared(usize),
    /// A value of the latest row.
    Last(usize),
    /// An aggregate function over an accumulator.
    Aggregate(Function, usize),
}

/// Builder of a plan.
struct PlanBuilder<'a> {
    topics: Vec<&'a str>,
    inputs: Vec<(usize, Path)>,
    keys: Vec<usize>,
    subjects: Vec<Expr>,
    arguments: Vec<CompiledExpr>,
    accumulator_kinds: Vec<(AccumulatorKind, usize)>,
    lasts: Vec<usize>,
    leaves: Vec<Leaf>,
}

impl ViewPlan {
    pub(crate) fn new(definition: &ViewDefinition) -> Result<Self, ViewError> {
        let mut builder = PlanBuilder::new(definition)?;
        let mut links = Vec::new();
        for (number, join) in definition.joins.iter().enumerate() {
            links.push(builder.link(number, &join.on)?);
        }
        let filter = definition.filter.as_deref().map(|text| builder.filter(text)).transpose()?;
        let grouping = builder.grouping(&definition.grouping)?;
        let read = Projection::parse_list(&definition.projection, &FilterLimits::DEFAULT);
        let projections = read.map_err(ViewError::of(Clause::Projection))?;
        let mut columns = Vec::new();
        for projection in &projections {
            columns.push(builder.column(projection)?);
        }
        let key_columns = builder.key_columns(&grouping, &projections)?;
        let paths: Vec<Path> = projections.iter().map(|one| one.path.clone()).collect();
        let record_writer = RecordWriter::new(definition.format, &paths, definition.rounding);
        let record_writer = record_writer.map_err(|(field, misfit)| {
            let what = format!("{} cannot be a field: {misfit}", paths[field]);
            ViewError::new(Clause::Projection, projections[field].at, what)
        })?;
        Ok(Self {
            inputs: builder.inputs,
            links,
            filter,
            keys: builder.keys,
            arguments: builder.arguments,
            accumulator_kinds: builder.accumulator_kinds,
            lasts: builder.lasts,
            leaves: builder.leaves,
            columns,
            paths,
            key_columns,
            record_writer,
        })
    }

    /// Number of the input `path`, which is known to exist.
    pub(crate) fn input(&self, topics: &[&str], path: &Path) -> Option<usize> {
        let resolve = resolve(topics, path)?;
        self.inputs.iter().position(|input| *input == resolve)
    }
}

impl<'a> PlanBuilder<'a> {
    fn new(definition: &'a ViewDefinition) -> Result<Self, ViewError> {
        let topics: Vec<&str> = definition.topics().collect();
        for (number, topic) in topics.iter().enumerate() {
            if topics[..number].contains(topic) {
                let what = format!("{topic} is joined to itself");
                let error = ViewError::new(Clause::Topics, 0, what);
                return Err(error.with_hint("join a view of it, which has a name of its own"));
            }
        }
        Ok(Self {
            topics,
            inputs: Vec::new(),
            keys: Vec::new(),
            subjects: Vec::new(),
            arguments: Vec::new(),
            accumulator_kinds: Vec::new(),
            lasts: Vec::new(),
            leaves: Vec::new(),
        })
    }

    /// Number of the input `path`; adds it if it is new.
    fn input(&mut self, path: &Path) -> Result<usize, (String, String)> {
        let Some(resolve) = resolve(&self.topics, path) else {
            let what = format!("{path} does not say whose field it is");
            return Err((what, format!("write /{}{path} or the like", self.topics[0])));
        };
        Ok(number_of(&mut self.inputs, resolve))
    }

    fn input_at(&mut self, clause: Clause, at: usize, path: &Path) -> Result<usize, ViewError> {
        self.input(path).map_err(|(what, hint)| ViewError::new(clause, at, what).with_hint(hint))
    }

    /// Parses `left = right AND ...`, the condition of join `number`.
    fn link(&mut self, number: usize, on: &str) -> Result<Link, ViewError> {
        let (clause, right) = (Clause::Join(number), number + 1);
        let read = parse_expr(on, &FilterLimits::DEFAULT).map_err(ViewError::of(clause))?;
        let equations = if let Expr::And(parts) = &read { parts.as_slice() } else { &[read] };
        let refused = |what: String| {
            let (name, other) = (self.topics[right], self.topics[0]);
            let hint = format!("write /{other}/field = /{name}/field, several joined by AND");
            ViewError::new(clause, 0, what).with_hint(hint)
        };
        let mut link = Link { left: 0, left_inputs: Vec::new(), right_inputs: Vec::new() };
        for (count, equation) in equations.iter().enumerate() {
            let fields = match equation {
                Expr::Compare(Comparison::Equal, parts) => match &**parts {
                    [Expr::Field(one), Expr::Field(other)] => [one, other],
                    _ => return Err(refused(format!("{equation} does not equate two fields"))),
                },
                _ => return Err(refused(format!("{equation} does not equate two fields"))),
            };
            let places = fields.map(|path| resolve(&self.topics, path));
            let [Some(one), Some(other)] = places else {
                return Err(refused(format!("{equation} does not say whose fields it is about")));
            };
            let (left, right_place) = if one.0 == right { (other, one) } else { (one, other) };
            let is_same = count == 0 || left.0 == link.left;
            if right_place.0 != right || left.0 >= right || !is_same {
                let what = format!("{equation} does not join {} to one before", self.topics[right]);
                return Err(refused(what));
            }
            link.left = left.0;
            link.left_inputs.push(number_of(&mut self.inputs, left));
            link.right_inputs.push(number_of(&mut self.inputs, right_place));
        }
        Ok(link)
    }

    fn filter(&mut self, text: &str) -> Result<Filter, ViewError> {
        let filter = Filter::parse(text).map_err(ViewError::of(Clause::Filter))?;
        check(filter.expr(), Clause::Filter, 0)?;
        for path in filter.paths() {
            self.input_at(Clause::Filter, 0, path)?;
        }
        Ok(filter)
    }

    fn grouping(&mut self, text: &str) -> Result<Vec<Projection>, ViewError> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let read = Projection::parse_list(text, &FilterLimits::DEFAULT);
        let grouping = read.map_err(ViewError::of(Clause::Grouping))?;
        for group in &grouping {
            let input = match &group.expr {
                Expr::Field(path) if *path == group.path => {
                    self.input_at(Clause::Grouping, group.at, path)?
                }
                _ => {
                    let what = format!("{} is no field", group.expr);
                    let error = ViewError::new(Clause::Grouping, group.at, what);
                    return Err(error.with_hint("group by fields, and name them in the projection"));
                }
            };
            if !self.keys.contains(&input) {
                self.keys.push(input);
            }
        }
        if self.keys.len() > VALUES_MAX {
            let what = format!("{} fields are more than {VALUES_MAX}", self.keys.len());
            let error = ViewError::new(Clause::Grouping, 0, what);
            return Err(error.with_hint("group by fewer fields"));
        }
        Ok(grouping)
    }

    fn column(&mut self, projection: &Projection) -> Result<CompiledExpr, ViewError> {
        check(&projection.expr, Clause::Projection, projection.at)?;
        CompiledExpr::new(&projection.expr, &mut |expr| self.leaf(expr, projection.at))
    }

    /// Number of the leaf `expr`; `None` if it is none.
    fn leaf(&mut self, expr: &Expr, at: usize) -> Result<Option<usize>, ViewError> {
        let leaf = match expr {
            Expr::Field(path) => {
                let input = self.input_at(Clause::Projection, at, path)?;
                match self.keys.iter().position(|key| *key == input) {
                    Some(key) => Leaf::Shared(key),
                    None => Leaf::Last(number_of(&mut self.lasts, input)),
                }
            }
            Expr::Call(function, parts) => match (AccumulatorKind::of(*function), &**parts) {
                (Some(kind), [subject]) => {
                    let argument = self.argument(subject, at)?;
                    let kind = number_of(&mut self.accumulator_kinds, (kind, argument));
                    Leaf::Aggregate(*function, kind)
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(number_of(&mut self.leaves, leaf)))
    }

    /// Number of the argument `subject`; compiles it if it is new.
    fn argument(&mut self, subject: &Expr, at: usize) -> Result<usize, ViewError> {
        if let Some(known) = self.subjects.iter().position(|one| one == subject) {
            return Ok(known);
        }
        let expr = CompiledExpr::new(subject, &mut |expr| match expr {
            Expr::Field(path) => self.input_at(Clause::Projection, at, path).map(Some),
            _ => Ok(None),
        })?;
        self.subjects.push(subject.clone());
        self.arguments.push(expr);
        Ok(self.arguments.len() - 1)
    }

    /// Columns that show the grouping values.
    fn key_columns(
        &self,
        grouping: &[Projection],
        projections: &[Projection],
    ) -> Result<Vec<usize>, ViewError> {
        let shows = |expr: &Expr, key: usize| match expr {
            Expr::Field(path) => resolve(&self.topics, path).as_ref() == Some(&self.inputs[key]),
            _ => false,
        };
        let mut columns = Vec::new();
        for key in &self.keys {
            let column = projections.iter().position(|one| shows(&one.expr, *key));
            columns.push(column.ok_or_else(|| {
                let group = grouping.iter().find(|group| shows(&group.expr, *key));
                let (path, at) =
                    group.map_or((String::new(), 0), |one| (one.path.to_string(), one.at));
                let what = format!("records are told apart by {path}, which they do not show");
                let error = ViewError::new(Clause::Grouping, at, what);
                error.with_hint(format!("add `{path} AS /name` to the projection"))
            })?);
        }
        Ok(columns)
    }
}

/// Rejects functions that views do not support.
fn check(expr: &Expr, clause: Clause, at: usize) -> Result<(), ViewError> {
    let mut refused = None;
    expr.visit(&mut |part| {
        if let Expr::Call(function, _) = part {
            let why = match function {
                Function::ClientName
                | Function::InstanceName
                | Function::TopicName
                | Function::UnixTimestamp => "records do not say; publish it in a field",
                Function::MessageSize | Function::ArrayCount | Function::ArrayToString => {
                    "views compute with the first value of a field"
                }
                _ => return,
            };
            refused.get_or_insert(format!("{function} is not allowed in a view: {why}"));
        }
    });
    refused.map_or(Ok(()), |what| Err(ViewError::new(clause, at, what)))
}

/// Topic and path within it that `path` names. With several topics the first step is the topic's
/// name.
fn resolve(topics: &[&str], path: &Path) -> Option<(usize, Path)> {
    if topics.len() == 1 {
        return Some((0, path.clone()));
    }
    let (first, rest) = path.split_first();
    let is_plain = !first.is_attribute() && first.index().is_none();
    let topic = topics.iter().position(|topic| is_plain && *topic == first.name())?;
    Some((topic, rest?))
}

/// Index of `thing` in `list`; appends it if it is new.
fn number_of<T: PartialEq>(list: &mut Vec<T>, thing: T) -> usize {
    let known = list.iter().position(|one| *one == thing);
    known.unwrap_or_else(|| {
        list.push(thing);
        list.len() - 1
    })
}

/// `filter` with fields replaced by their numbers.
pub(crate) fn numbered(filter: &Filter, mut number: impl FnMut(&Path) -> usize) -> Expr<usize> {
    let named = filter.expr().rename(&mut |path: &Path| Ok::<_, Infallible>(number(path)));
    let Ok(expr) = named;
    expr
}
