//! A definition that has been read and checked, and does not know its topics yet.

use super::accumulator::Measure;
use super::definition::{Clause, ViewDefinition, ViewError};
use super::formula::Formula;
use super::groups::VALUES_MAX;
use super::template::Template;
use lanecast_filter::expr::Expr;
use lanecast_filter::path::Path;
use lanecast_filter::value::Comparison;
use lanecast_filter::{Filter, FilterLimits, Function, Projection, parse_expr};
use std::convert::Infallible;

/// What a view computes.
#[derive(Debug)]
pub(crate) struct Blueprint {
    /// The fields that it asks for: of which topic, counted from 0, and where in it.
    pub(crate) inputs: Vec<(usize, Path)>,
    /// What is joined: of the topic with the next number each.
    pub(crate) links: Vec<Link>,
    pub(crate) filter: Option<Filter>,
    /// The inputs to group by.
    pub(crate) keys: Vec<usize>,
    /// What aggregate functions are about: formulas of inputs.
    pub(crate) arguments: Vec<Formula>,
    /// What has to be remembered of which argument.
    pub(crate) measures: Vec<(Measure, usize)>,
    /// The inputs of which the last value is shown.
    pub(crate) lasts: Vec<usize>,
    /// The leaves of the columns.
    pub(crate) leaves: Vec<Leaf>,
    /// A formula of leaves for each field of the view.
    pub(crate) columns: Vec<Formula>,
    pub(crate) paths: Vec<Path>,
    /// Which fields of the view make its key.
    pub(crate) key_columns: Vec<usize>,
    pub(crate) template: Template,
}

/// How records of one topic are found.
#[derive(Debug)]
pub(crate) struct Link {
    /// The topic before it that says what to look for.
    pub(crate) left: usize,
    /// Inputs of that topic, and of this one, that are equal.
    pub(crate) left_inputs: Vec<usize>,
    pub(crate) right_inputs: Vec<usize>,
}

/// What a group knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// A value that its rows share.
    Shared(usize),
    /// That of its latest row.
    Last(usize),
    /// What a function says of a measure.
    Aggregate(Function, usize),
}

/// A definition that is being read.
struct Draft<'a> {
    topics: Vec<&'a str>,
    inputs: Vec<(usize, Path)>,
    keys: Vec<usize>,
    subjects: Vec<Expr>,
    arguments: Vec<Formula>,
    measures: Vec<(Measure, usize)>,
    lasts: Vec<usize>,
    leaves: Vec<Leaf>,
}

impl Blueprint {
    pub(crate) fn new(definition: &ViewDefinition) -> Result<Self, ViewError> {
        let mut draft = Draft::new(definition)?;
        let mut links = Vec::new();
        for (number, join) in definition.joins.iter().enumerate() {
            links.push(draft.link(number, &join.on)?);
        }
        let filter = definition.filter.as_deref().map(|text| draft.filter(text)).transpose()?;
        let grouping = draft.grouping(&definition.grouping)?;
        let read = Projection::parse_list(&definition.projection, &FilterLimits::DEFAULT);
        let projections = read.map_err(ViewError::of(Clause::Projection))?;
        let mut columns = Vec::new();
        for projection in &projections {
            columns.push(draft.column(projection)?);
        }
        let key_columns = draft.key_columns(&grouping, &projections)?;
        let paths: Vec<Path> = projections.iter().map(|one| one.path.clone()).collect();
        let template = Template::new(definition.format, &paths, definition.rounding);
        let template = template.map_err(|(field, misfit)| {
            let what = format!("{} cannot be a field: {misfit}", paths[field]);
            ViewError::new(Clause::Projection, projections[field].at, what)
        })?;
        Ok(Self {
            inputs: draft.inputs,
            links,
            filter,
            keys: draft.keys,
            arguments: draft.arguments,
            measures: draft.measures,
            lasts: draft.lasts,
            leaves: draft.leaves,
            columns,
            paths,
            key_columns,
            template,
        })
    }

    /// The number of the input that `path` names, which is known to be one.
    pub(crate) fn input(&self, topics: &[&str], path: &Path) -> Option<usize> {
        let place = place(topics, path)?;
        self.inputs.iter().position(|input| *input == place)
    }
}

impl<'a> Draft<'a> {
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
            measures: Vec::new(),
            lasts: Vec::new(),
            leaves: Vec::new(),
        })
    }

    /// The number of the input that `path` names.
    fn input(&mut self, path: &Path) -> Result<usize, (String, String)> {
        let Some(place) = place(&self.topics, path) else {
            let what = format!("{path} does not say whose field it is");
            return Err((what, format!("write /{}{path} or the like", self.topics[0])));
        };
        Ok(number_of(&mut self.inputs, place))
    }

    fn input_at(&mut self, clause: Clause, at: usize, path: &Path) -> Result<usize, ViewError> {
        self.input(path).map_err(|(what, hint)| ViewError::new(clause, at, what).with_hint(hint))
    }

    /// Reads `left = right AND ...`, which finds records of the topic behind join `number`.
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
            let places = fields.map(|path| place(&self.topics, path));
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

    fn column(&mut self, projection: &Projection) -> Result<Formula, ViewError> {
        check(&projection.expr, Clause::Projection, projection.at)?;
        Formula::new(&projection.expr, &mut |expr| self.leaf(expr, projection.at))
    }

    /// Which leaf `expr` is, if it is one.
    fn leaf(&mut self, expr: &Expr, at: usize) -> Result<Option<usize>, ViewError> {
        let leaf = match expr {
            Expr::Field(path) => {
                let input = self.input_at(Clause::Projection, at, path)?;
                match self.keys.iter().position(|key| *key == input) {
                    Some(key) => Leaf::Shared(key),
                    None => Leaf::Last(number_of(&mut self.lasts, input)),
                }
            }
            Expr::Call(function, parts) => match (Measure::of(*function), &**parts) {
                (Some(measure), [subject]) => {
                    let argument = self.argument(subject, at)?;
                    let measure = number_of(&mut self.measures, (measure, argument));
                    Leaf::Aggregate(*function, measure)
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(number_of(&mut self.leaves, leaf)))
    }

    /// The number of the formula of `subject`.
    fn argument(&mut self, subject: &Expr, at: usize) -> Result<usize, ViewError> {
        if let Some(known) = self.subjects.iter().position(|one| one == subject) {
            return Ok(known);
        }
        let formula = Formula::new(subject, &mut |expr| match expr {
            Expr::Field(path) => self.input_at(Clause::Projection, at, path).map(Some),
            _ => Ok(None),
        })?;
        self.subjects.push(subject.clone());
        self.arguments.push(formula);
        Ok(self.arguments.len() - 1)
    }

    /// Which columns show the values to group by.
    fn key_columns(
        &self,
        grouping: &[Projection],
        projections: &[Projection],
    ) -> Result<Vec<usize>, ViewError> {
        let shows = |expr: &Expr, key: usize| match expr {
            Expr::Field(path) => place(&self.topics, path).as_ref() == Some(&self.inputs[key]),
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

/// Refuses functions that cannot be taken back, or that look at more than single values.
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
            refused.get_or_insert(format!("{function} has no place in a view: {why}"));
        }
    });
    refused.map_or(Ok(()), |what| Err(ViewError::new(clause, at, what)))
}

/// The topic that `path` is about, and the path within it: with several topics, the first name is
/// that of the topic.
fn place(topics: &[&str], path: &Path) -> Option<(usize, Path)> {
    if topics.len() == 1 {
        return Some((0, path.clone()));
    }
    let (first, rest) = path.split_first();
    let is_plain = !first.is_attribute() && first.index().is_none();
    let topic = topics.iter().position(|topic| is_plain && *topic == first.name())?;
    Some((topic, rest?))
}

/// The place of `thing` in `list`, where it is put if it is new.
fn number_of<T: PartialEq>(list: &mut Vec<T>, thing: T) -> usize {
    let known = list.iter().position(|one| *one == thing);
    known.unwrap_or_else(|| {
        list.push(thing);
        list.len() - 1
    })
}

/// `filter` with its fields numbered.
pub(crate) fn numbered(filter: &Filter, mut number: impl FnMut(&Path) -> usize) -> Expr<usize> {
    let named = filter.expr().rename(&mut |path: &Path| Ok::<_, Infallible>(number(path)));
    let Ok(expr) = named;
    expr
}
