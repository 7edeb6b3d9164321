//! Queries and subscriptions.

use crate::error::ClientError;
use lanecast_wire::command::{Command, Field, HeaderWriter};
use std::time::Duration;

/// Records in one `sow` message of an answer.
const BATCH: u64 = 100;

/// A query of stored records. The default selects all of them.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The filter.
    pub filter: Option<String>,
    /// Comma-separated fields, each optionally followed by `DESC`.
    pub order_by: Option<String>,
    /// Most records.
    pub top: Option<u64>,
    /// Records to skip first.
    pub skip: u64,
    /// Delivered fields, such as `-/,+/price`; all by default.
    pub select: Option<String>,
}

/// Options of a subscription to stored records.
#[derive(Clone, Debug, Default)]
pub struct SubscribeOptions {
    /// Also deliver records that no longer match, are deleted, or expire.
    pub out_of_focus: bool,
    /// Deliver each record at most once in this time.
    pub conflation: Option<Duration>,
    /// Deliver only changed fields and key fields of records that matched before.
    pub deltas: bool,
}

/// A subscription command.
#[derive(Clone, Debug)]
pub(crate) struct SubscribeRequest {
    pub(crate) topic: String,
    pub(crate) query: Query,
    pub(crate) options: SubscribeOptions,
    /// Whether the stored records come first.
    pub(crate) with_records: bool,
}

impl Query {
    /// Adds its fields to a header; `options` are further ones of the command.
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

    /// Adds the fields that apply to single messages.
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

impl SubscribeRequest {
    /// A subscription to messages from now on.
    pub(crate) fn messages(topic: &str, filter: Option<&str>) -> Self {
        let filter = filter.map(str::to_owned);
        let query = Query { filter, ..Query::default() };
        Self {
            topic: topic.to_owned(),
            query,
            options: SubscribeOptions::default(),
            with_records: false,
        }
    }

    /// A subscription to changes of records from now on.
    ///
    /// # Errors
    /// If the query has an order or a limit, which need the stored records.
    pub(crate) fn changes(
        topic: &str,
        query: &Query,
        options: &SubscribeOptions,
    ) -> Result<Self, ClientError> {
        if query.order_by.is_some() || query.top.is_some() || query.skip > 0 {
            return Err(ClientError::Query(
                "an order, a limit and a skip need stored records: use query_and_subscribe",
            ));
        }
        Ok(Self { with_records: false, ..Self::records(topic, query, options) })
    }

    /// A query of records and a subscription to their changes.
    pub(crate) fn records(topic: &str, query: &Query, options: &SubscribeOptions) -> Self {
        let (query, options) = (query.clone(), options.clone());
        Self { topic: topic.to_owned(), query, options, with_records: true }
    }

    pub(crate) fn command(&self) -> Command {
        match (self.with_records, self.options.deltas) {
            (true, true) => Command::SowAndDeltaSubscribe,
            (true, false) => Command::SowAndSubscribe,
            (false, true) => Command::DeltaSubscribe,
            (false, false) => Command::Subscribe,
        }
    }

    /// Adds its fields to the header of its command.
    pub(crate) fn write<'a>(&self, header: HeaderWriter<'a>, name: &str) -> HeaderWriter<'a> {
        let header = header.text(Field::Topic, &self.topic).text(Field::SubscriptionId, name);
        let mut options = Vec::new();
        if self.options.out_of_focus {
            options.push("oof".to_owned());
        }
        if let Some(interval) = self.options.conflation {
            options.push(format!("conflation={}ms", interval.as_millis().max(1)));
        }
        if !self.with_records {
            return self.query.write_filter(header, options);
        }
        self.query.write(header.text(Field::QueryId, name), options)
    }
}
