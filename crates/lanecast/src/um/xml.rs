//! Configuration files of Ultra Messaging in XML.
//!
//! Such a file has templates of options and applications that use them. The application that the
//! configuration names applies, by default that of the throughput and latency tools, or the only
//! one. Options with an equivalent setting apply: first those of its templates, then its own; the
//! others are listed as ignored. Each topic may have its own multicast group, and its own stores.
//! All other settings of a lanecast program hold for all its topics, so options that differ from
//! topic to topic are refused.

use super::options::{
    self, GROUP_ADDRESS, GROUP_PORT, OptionValue, group, is_group, is_list, store_name,
};
use crate::config::{Config, ConfigError};
use crate::settings;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::collections::HashMap;
use std::path::Path;

/// The application of the tools without persistence.
const APPLICATION: &str = "um_perf";

/// An option with its line and topic.
#[derive(Clone, Debug)]
struct OptionLine {
    line: usize,
    /// The topic of the option, inside an application.
    topic: Option<String>,
    name: String,
    value: String,
}

/// An application with its options.
#[derive(Debug, Default)]
struct Application {
    name: String,
    templates: Vec<String>,
    options: Vec<OptionLine>,
}

/// The parsed file.
#[derive(Debug, Default)]
struct Document {
    templates: HashMap<String, Vec<OptionLine>>,
    applications: Vec<Application>,
    /// The topic whose element is open.
    topic: Option<String>,
}

/// The open element, which owns the options that follow.
#[derive(Debug)]
enum Scope {
    Nothing,
    Template(String),
    Application,
}

/// Whether the text is XML.
pub(crate) fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

/// Applies options with an equivalent setting; lists the others as ignored.
pub(crate) fn apply(config: &mut Config, text: &str, path: &Path) -> Result<(), ConfigError> {
    let fault = |line: usize, message: String| ConfigError::Xml {
        place: format!("{}:{line}", path.display()),
        message,
    };
    let document = read(text).map_err(|(line, message)| fault(line, message))?;
    let application = document
        .application(config.um_application.as_deref())
        .map_err(|message| fault(1, message))?;
    for name in &application.templates {
        let Some(options) = document.templates.get(name) else {
            return Err(fault(1, format!("there is no template '{name}'")));
        };
        apply_options(config, options, path)?;
    }
    let (have_groups, have_stores) =
        (application.has_groups_of_topics(), application.has_stores_of_topics());
    let is_of_topic = |option: &OptionLine| {
        let is_own = have_groups && is_group(&option.name) || have_stores && is_list(&option.name);
        is_own && option.topic.is_some()
    };
    for (index, option) in application.options.iter().enumerate() {
        let others = &application.options[..index];
        let differs = |other: &&OptionLine| {
            if other.name != option.name {
                return false;
            }
            if is_list(&option.name) {
                return !is_of_topic(option)
                    && !is_of_topic(other)
                    && other.topic != option.topic
                    && !application.entries(option).eq(application.entries(other));
            }
            let is_alike = !is_of_topic(option) || other.topic == option.topic;
            is_alike && other.value != option.value
        };
        if let Some(other) = others.iter().find(differs).filter(|_| options::has(&option.name)) {
            let (name, value) = (&option.name, &option.value);
            let difference =
                format!("{name} is '{value}' here and '{}' in line {}", other.value, other.line);
            let advice =
                "lanecast has one for all topics, so write a file for each, or make them the same";
            return Err(fault(option.line, format!("{difference}: {advice}")));
        }
    }
    let (of_topics, of_all): (Vec<_>, Vec<_>) =
        application.options.iter().cloned().partition(is_of_topic);
    apply_options(config, &of_all, path)?;
    let (stores, groups): (Vec<_>, Vec<_>) =
        of_topics.into_iter().partition(|option| is_list(&option.name));
    apply_groups(config, &groups, path)?;
    apply_stores(config, &stores, path)
}

/// Sets the stores of each topic.
fn apply_stores(
    config: &mut Config,
    options: &[OptionLine],
    path: &Path,
) -> Result<(), ConfigError> {
    let mut topics: Vec<(&str, Vec<String>)> = Vec::new();
    let Some(first) = options.first() else { return Ok(()) };
    for option in options {
        let topic = option.topic.as_deref().unwrap_or_default();
        let index = topics.iter().position(|(name, _)| *name == topic).unwrap_or(topics.len());
        if index == topics.len() {
            topics.push((topic, Vec::new()));
        }
        let store = store_name(config, &option.value);
        if !topics[index].1.contains(&store) {
            topics[index].1.push(store);
        }
    }
    let entry = |(topic, stores): &(&str, Vec<String>)| format!("{topic}={}", stores.join(","));
    let all: Vec<String> = topics.iter().map(entry).collect();
    let place = format!("{}:{}: {}", path.display(), first.line, first.name);
    settings::set(config, "persistence.topic_stores", &all.join(" "), &place)
}

/// Sets the multicast group of each topic.
fn apply_groups(
    config: &mut Config,
    options: &[OptionLine],
    path: &Path,
) -> Result<(), ConfigError> {
    let mut topics: Vec<&str> = options.iter().filter_map(|it| it.topic.as_deref()).collect();
    topics.dedup();
    for topic in topics {
        let of_topic = options.iter().filter(|it| it.topic.as_deref() == Some(topic));
        let value = |name: &str| {
            let found = of_topic.clone().find(|option| option.name == name);
            found.map(|option| option.value.as_str())
        };
        let group = group(config, value(GROUP_ADDRESS), value(GROUP_PORT));
        let Some(OptionLine { line, name, .. }) = of_topic.clone().next() else { continue };
        let place = format!("{}:{line}: {name}", path.display());
        let before = settings::find("net.groups").map(|setting| setting.value(config));
        let before = before.filter(|_| !config.net.groups.is_empty());
        let all: Vec<String> = before.into_iter().chain([format!("{topic}={group}")]).collect();
        settings::set(config, "net.groups", &all.join(","), &place)?;
    }
    Ok(())
}

impl Application {
    /// The entries of a list for the topic of one of them.
    fn entries(&self, of: &OptionLine) -> impl Iterator<Item = &str> {
        let alike = move |it: &&OptionLine| it.name == of.name && it.topic == of.topic;
        self.options.iter().filter(alike).map(|it| it.value.as_str())
    }

    /// Whether its topics have different stores.
    fn has_stores_of_topics(&self) -> bool {
        let lists = self.options.iter().filter(|it| it.topic.is_some() && is_list(&it.name));
        let differ = |one: &OptionLine, other: &OptionLine| {
            one.topic != other.topic && !self.entries(one).eq(self.entries(other))
        };
        lists.clone().any(|one| lists.clone().any(|other| differ(one, other)))
    }

    /// Whether its topics have different groups.
    fn has_groups_of_topics(&self) -> bool {
        let groups = self.options.iter().filter(|it| it.topic.is_some() && is_group(&it.name));
        let differ = |one: &OptionLine, other: &OptionLine| {
            one.topic != other.topic && one.name == other.name && one.value != other.value
        };
        groups.clone().any(|one| groups.clone().any(|other| differ(one, other)))
    }
}

fn apply_options(
    config: &mut Config,
    options: &[OptionLine],
    path: &Path,
) -> Result<(), ConfigError> {
    let options = options.iter().map(|OptionLine { line, name, value, .. }| OptionValue {
        line: *line,
        name,
        value,
    });
    options::apply(config, &options.collect::<Vec<_>>(), path)
}

impl Document {
    /// The application to apply.
    fn application(&self, name: Option<&str>) -> Result<&Application, String> {
        let name = name.unwrap_or(APPLICATION);
        let named = self.applications.iter().find(|it| it.name == name);
        match (named, self.applications.as_slice()) {
            (Some(it), _) | (None, [it]) => Ok(it),
            (None, []) => Err(format!("no <application>: write one named {name}")),
            (None, _) => Err(format!("several applications, and none is named {name}")),
        }
    }

    /// Processes the start of an element.
    fn open(
        &mut self,
        element: &BytesStart<'_>,
        scope: &mut Scope,
        line: usize,
    ) -> Result<(), String> {
        let attribute = |name: &str| attribute(element, name);
        match (element.name().0, &*scope) {
            ("template", _) => {
                let name = attribute("name")?.ok_or("a <template> without a name")?;
                self.templates.entry(name.clone()).or_default();
                *scope = Scope::Template(name);
            }
            ("application", _) => {
                let name = attribute("name")?.unwrap_or_default();
                self.applications.push(Application { name, ..Application::default() });
                *scope = Scope::Application;
            }
            ("option", _) => {
                let name = attribute("name")?.ok_or("an <option> without a name")?;
                let Some(value) = attribute("default-value")? else { return Ok(()) };
                let topic = self.topic.clone();
                let options = match scope {
                    Scope::Template(name) => self.templates.get_mut(name),
                    Scope::Application => self.applications.last_mut().map(|it| &mut it.options),
                    Scope::Nothing => None,
                };
                options.into_iter().for_each(|options| {
                    let (name, value) = (name.clone(), value.clone());
                    options.push(OptionLine { line, topic: topic.clone(), name, value });
                });
            }
            _ => {}
        }
        let used = attribute("template")?.filter(|_| matches!(scope, Scope::Application));
        if let (Some(names), Some(application)) = (used, self.applications.last_mut()) {
            let names = names.split(',').map(|name| name.trim().to_owned());
            application.templates.extend(names.filter(|name| !name.is_empty()));
        }
        Ok(())
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let found = element.try_get_attribute(name).map_err(|error| error.to_string())?;
    let value = found.map(|found| found.normalized_value(XmlVersion::Implicit1_0).map(Into::into));
    value.transpose().map_err(|error| error.to_string())
}

/// Parses a file. Errors carry the line and the problem.
fn read(text: &str) -> Result<Document, (usize, String)> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = Reader::from_str(text);
    let (mut counted, mut lines) = (0, 1);
    let mut line_at = |position: u64| {
        let position = (position as usize).clamp(counted, text.len());
        let passed = &text.as_bytes()[counted..position];
        lines += passed.iter().filter(|byte| **byte == b'\n').count();
        counted = position;
        lines
    };
    let (mut document, mut scope) = (Document::default(), Scope::Nothing);
    let mut depth = 0_usize;
    loop {
        let line = line_at(reader.buffer_position());
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                depth += 1;
                if element.name().0 == "topic" {
                    document.topic = attribute(&element, "topicname").map_err(|it| (line, it))?;
                }
                document.open(&element, &mut scope, line).map_err(|error| (line, error))?;
            }
            Ok(Event::Empty(element)) => {
                document.open(&element, &mut scope, line).map_err(|error| (line, error))?;
            }
            Ok(Event::End(element)) => {
                depth = depth.saturating_sub(1);
                match element.name().0 {
                    "template" | "application" => scope = Scope::Nothing,
                    "topic" => document.topic = None,
                    _ => {}
                }
            }
            Ok(Event::Eof) if depth == 0 => return Ok(document),
            Ok(Event::Eof) => return Err((line, "the file ends amid an element".into())),
            Ok(_) => {}
            Err(error) => return Err((line_at(reader.error_position()), error.to_string())),
        }
    }
}
