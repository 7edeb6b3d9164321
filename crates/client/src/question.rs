//! What is asked of the server.

use crate::error::ClientError;
use lanecast_wire::command::{Command, Field, HeaderWriter};
use std::time::Duration;

/// Records that come together.
const BATCH: u64 = 100;

/// Which records are wanted, and in which order. The default is all of them.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// What they have to meet.
    pub filter: Option<String>,
    /// Fields, each with `DESC` behind it or not, separated by commas.
    pub order_by: Option<String>,
    /// How many at most.
    pub top: Option<u64>,
    /// How many are left out at first.
    pub skip: u64,
    /// Which of their fields come, such as `-/,+/price`; all of them if it is not said.
    pub select: Option<String>,
}

/// How to be told of records that are followed.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Also of those that leave the filter, are deleted, or expire.
    pub out_of_focus: bool,
    /// Of each at most once in this time.
    pub conflation: Option<Duration>,
    /// With the fields that changed and those of the key alone, of records that met the filter
    /// before.
    pub deltas: bool,
}

/// What a subscription is to.
#[derive(Clone, Debug)]
pub(crate) struct Interest {
    pub(crate) topic: String,
    pub(crate) question: Question,
    pub(crate) wishes: Wishes,
    /// Whether records come first.
    pub(crate) asks: bool,
}

impl Question {
    /// Adds what it says to a header; `options` are those of the command besides.
    pub(crate) fn write<'a>(
        &self,
        header: HeaderWriter<'a>,
        mut options: Vec<String>,
    ) -> HeaderWriter<'a> {
        if self.skip > 0 {
            options.push(format!("skip_n={}", self.skip));
        }
        let header = self.write_filter(header.number(Field::BatchSize, BATCH), options);
        let header = header.text_if(Field::OrderBy, self.order_by.as_deref());
        self.top.iter().fold(header, |header, top| header.number(Field::TopN, *top))
    }

    /// Adds what it says of single messages.
    fn write_filter<'a>(
        &self,
        header: HeaderWriter<'a>,
        mut options: Vec<String>,
    ) -> HeaderWriter<'a> {
        options.extend(self.select.iter().map(|select| format!("select=[{select}]")));
        let header = header.text_if(Field::Filter, self.filter.as_deref());
        let options = options.join(",");
        header.text_if(Field::Options, (!options.is_empty()).then_some(&*options))
    }
}

impl Interest {
    /// Messages from now on.
    pub(crate) fn messages(topic: &str, filter: Option<&str>) -> Self {
        let filter = filter.map(str::to_owned);
        let question = Question { filter, ..Question::default() };
        Self { topic: topic.to_owned(), question, wishes: Wishes::default(), asks: false }
    }

    /// What becomes of records from now on.
    ///
    /// # Errors
    /// If the question says which records come first: none do.
    pub(crate) fn changes(
        topic: &str,
        question: &Question,
        wishes: &Wishes,
    ) -> Result<Self, ClientError> {
        if question.order_by.is_some() || question.top.is_some() || question.skip > 0 {
            return Err(ClientError::Question(
                "only records that are asked for can be sorted and counted: query_and_subscribe \
                 does that",
            ));
        }
        Ok(Self { asks: false, ..Self::records(topic, question, wishes) })
    }

    /// Records, and what becomes of them.
    pub(crate) fn records(topic: &str, question: &Question, wishes: &Wishes) -> Self {
        let (question, wishes) = (question.clone(), wishes.clone());
        Self { topic: topic.to_owned(), question, wishes, asks: true }
    }

    pub(crate) fn command(&self) -> Command {
        match (self.asks, self.wishes.deltas) {
            (true, true) => Command::SowAndDeltaSubscribe,
            (true, false) => Command::SowAndSubscribe,
            (false, true) => Command::DeltaSubscribe,
            (false, false) => Command::Subscribe,
        }
    }

    /// Adds what it says to the header of its command.
    pub(crate) fn write<'a>(&self, header: HeaderWriter<'a>, name: &str) -> HeaderWriter<'a> {
        let header = header.text(Field::Topic, &self.topic).text(Field::SubscriptionId, name);
        let mut options = Vec::new();
        if self.wishes.out_of_focus {
            options.push("oof".to_owned());
        }
        if let Some(interval) = self.wishes.conflation {
            options.push(format!("conflation={}ms", interval.as_millis().max(1)));
        }
        if !self.asks {
            return self.question.write_filter(header, options);
        }
        self.question.write(header.text(Field::QueryId, name), options)
    }
}
