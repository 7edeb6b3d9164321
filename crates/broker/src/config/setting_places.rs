//! Places of the settings of a file. Options of a program can change some of them, so that others
//! contradict them only then: the error names all places.

use crate::config::place::{NamedTopic, Place};
use lanecast_filter::message_type::MessageType;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Places of the settings of a file.
#[derive(Clone, Debug, Default)]
pub struct SettingPlaces {
    path: PathBuf,
    /// Settings by table and name, such as `listen.tcp`.
    settings: HashMap<String, Place>,
    topics: Vec<(String, MessageType, Place)>,
    views: Vec<(String, Place)>,
}

impl SettingPlaces {
    /// The places in `text`, which is that of the file at `path`.
    pub(crate) fn of(path: &Path, text: &str, file: [&[NamedTopic<'_>]; 2]) -> Self {
        let mut settings = HashMap::new();
        let table = DeTable::parse(text).ok();
        for (name, value) in table.iter().flat_map(|table| table.get_ref()) {
            settings.insert(name.get_ref().to_string(), Place::of(text, name.span().start));
            let DeValue::Table(inner) = value.get_ref() else { continue };
            for key in inner.keys() {
                let place = Place::of(text, key.span().start);
                settings.insert(format!("{}.{}", name.get_ref(), key.get_ref()), place);
            }
        }
        let place = |it: &NamedTopic<'_>| Place::of(text, it.span.start);
        let [topics, views] = file;
        let topics = topics.iter().map(|it| (it.name.to_owned(), it.kind, place(it))).collect();
        let views = views.iter().map(|it| (it.name.to_owned(), place(it))).collect();
        Self { path: path.to_owned(), settings, topics, views }
    }

    /// File, line and column of a setting, such as `listen.tcp`, or of a table; `None` if the file
    /// does not have it.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(name).map(|place| self.in_file(*place))
    }

    /// File, line and column of a topic of that type.
    pub fn topic(&self, name: &str, kind: MessageType) -> Option<String> {
        let known = self.topics.iter().find(|(known, its, _)| (&**known, *its) == (name, kind));
        known.map(|(.., place)| self.in_file(*place))
    }

    /// File, line and column of a view.
    pub fn view(&self, name: &str) -> Option<String> {
        let known = self.views.iter().find(|(known, _)| known == name);
        known.map(|(_, place)| self.in_file(*place))
    }

    fn in_file(&self, place: Place) -> String {
        format!("{}:{place}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::read_config_with_places;
    use std::io::Write;

    #[test]
    fn settings_topics_and_views_have_places() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let text = "name = 'east'\n[listen]\n  tcp = '0.0.0.0'\n[[topic]]\nname = 'a'\n\
            type = 'json'\nkey = ['/id']\n[[view]]\nname = 'b'\ntype = 'json'\ntopic = 'a'\n\
            projection = '/id AS /id'\n";
        file.write_all(text.as_bytes()).expect("written");
        let (_, places) = read_config_with_places(file.path()).expect("valid");
        let at = |place: &str| Some(format!("{}:{place}", file.path().display()));
        assert_eq!(places.setting("name"), at("1:1"));
        assert_eq!(places.setting("listen"), at("2:2"));
        assert_eq!(places.setting("listen.tcp"), at("3:3"));
        assert_eq!(places.setting("listen.websocket"), None);
        assert_eq!(places.topic("a", MessageType::Json), at("5:8"));
        assert_eq!((places.topic("a", MessageType::Fix), places.view("a")), (None, None));
        assert_eq!(places.view("b"), at("9:8"));
    }
}
