//! Texts, read as a content server's file of settings: refused in words, or settings whose topics
//! and views can be made or are refused in words. What was made takes messages and questions.
#![no_main]

use lanecast_broker::{ClientId, Engine, Now, ServerConfig};
use lanecast_fuzz::{Grammar, Script};
use lanecast_wire::command::{Field, HeaderWriter};
use libfuzzer_sys::fuzz_target;

/// Files: `f` is a whole one. Values stand in the order of their settings.
const FILES: Grammar = Grammar(&[
    ('f', &["~k~k~v", "~k~v~v", "~s~k~v", "~s~s~k~k~v~v", "~k~w~v"]),
    (
        's',
        &[
            "[listen]\ntcp = '~a'\nwebsocket = '~a'\nallow_remote = ~b\n",
            "[listen]\ntcp = '~a'\norigins = ['https://~n']\n",
            "[limits]\nclients = ~i\nframe = '~z'\noutbox = '~z'\nsubscriptions = ~i\n",
            "[limits]\nqueries = ~i\ntopics = ~i\nnames = ~i\nhandshake = '~h'\n",
            "[slow]\npolicy = '~o'\ntotal = '~z'\ndirectory = '~n'\ndisk = '~z'\nage = '~h'\n",
            "[auth]\nusers = '~n'\n",
            "[drain]\ntime = '~h'\n",
            "[tls]\ncertificate = '~n'\nkey = '~n'\nclients = '~n'\n",
            "[storage]\ndirectory = '~n'\nsegment = '~z'\ncheckpoint = ~i\n",
        ],
    ),
    (
        'k',
        &[
            "[[topic]]\nname = 'a'\ntype = 'json'\nkey = ['/id']\n",
            "[[topic]]\nname = '~n'\ntype = '~t'\nkey = ['~d']\nexpiration = '~h'\n",
            "[[topic]]\nname = '~n'\ntype = '~t'\nkey = ['~d', '~d']\nindex = ['~d']\n",
            "[[topic]]\nname = '~n'\ntype = '~t'\nindex = ['~d', '~d']\ndurable = ~b\n",
        ],
    ),
    (
        'v',
        &[
            "[[view]]\nname = 'w'\ntype = '~t'\ntopic = 'a'\n\
             projection = '~p, ~p'\ngroup_by = '~g'\n",
            "[[view]]\nname = 'v'\ntype = '~t'\ntopic = '~n'\nprojection = '/by, ~p'\n\
             group_by = '/by'\nfilter = '~e'\n",
        ],
    ),
    (
        'w',
        &[
            "[[view]]\nname = 'v'\ntype = 'json'\ntopic = '~n'\n\
             join = [{ topic = '~n', on = '~n~d = ~n~d' }]\nprojection = '/by, ~p, ~p'\n\
             group_by = '/by'\n",
            "[[view]]\nname = 'v'\ntype = '~t'\ntopic = 'a'\n\
             join = [{ topic = 'b', on = '/a/id = /b/id' }, \
             { topic = '~n', on = '/a/by = /~n~d' }]\n\
             projection = '/a/by, ~x AS /x'\ngroup_by = '/a/by'\n",
        ],
    ),
    ('p', &["/by", "~x AS ~d", "~x AS /x", "SUM(~e) AS /s", "~d"]),
    (
        'x',
        &[
            "SUM(~e)",
            "AVG(~e)",
            "COUNT(~e)",
            "COUNT_DISTINCT(~e)",
            "MAX(~e)",
            "MIN(~e)",
            "SUM(~e) / SUM(~e)",
            "IF(~x > ~e, ~x, ~e)",
            "~x - ~x",
            "~e",
        ],
    ),
    (
        'e',
        &[
            "1",
            "0",
            "0.1",
            "/qty",
            "/id",
            "NULL",
            "~d",
            "~e / ~e",
            "~e * ~e",
            "~e % ~e",
            "~e - (~e)",
            "~d = ~e",
            "IF(~e, ~e, ~e)",
            "~e IS NULL",
            "~e LIKE \"a\"",
            "ABS(~e)",
            "CONCAT(~e, ~e)",
            "COALESCE(~e, 7)",
            "SUBSTR(~e, ~e)",
        ],
    ),
    ('g', &["/by", "/by, /id", "", "~d", "~d, ~d"]),
    ('d', &["/id", "/by", "/qty", "/1", "/38", "/a/b", "/id/@a", "/a/id", "/b/id"]),
    ('n', &["a", "b", "v", "w", "", ".", "~n~n"]),
    ('t', &["json", "fix", "nvfix", "xml", "binary", "FIX"]),
    ('a', &["127.0.0.1:0", "::1", "[::1]:9007", "0.0.0.0", ""]),
    ('b', &["true", "false"]),
    ('o', &["disconnect", "offline"]),
    ('i', &["1", "7", "100", "65536", "4294967295", "-1", "0"]),
    ('z', &["1KiB", "64KiB", "1MiB", "16GiB", "1", "18446744073709551615", "17179869183GiB"]),
    ('h', &["0s", "1ns", "5s", "86400s", "18446744073709551615s", "18446744073s", "-1s"]),
]);
const BODIES: [&str; 9] = [
    r#"{"id":1,"by":"a","qty":5}"#,
    r#"{"id":2,"by":"a","qty":0.1}"#,
    r#"{"id":1,"by":"b","qty":1e300}"#,
    r#"{"id":2,"by":null,"qty":"x"}"#,
    r#"{"id":3,"by":"b"}"#,
    "id=1\u{1}by=a\u{1}qty=5\u{1}",
    "1=a\u{1}38=5\u{1}",
    r#"<id a="1">5</id>"#,
    "",
];

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script::new(bytes);
    match lanecast_broker::parse_config(&FILES.text(&mut script, 'f', 6)) {
        Err(message) => assert!(!message.is_empty()),
        Ok(settings) => {
            if let Err(error) = settings.check() {
                assert!(!error.to_string().is_empty());
                return;
            }
            // What is kept on a disk is not for a fuzzer.
            if settings.storage.is_none() {
                open(settings, &mut script);
            }
        }
    }
});

fn open(settings: ServerConfig, script: &mut Script<'_>) {
    let topics = settings.topics.iter();
    let kept = topics.map(|topic| (topic.name.clone(), topic.format.message_type()));
    let views = settings.views.iter().map(|view| (view.name.clone(), view.format.message_type()));
    let rooms: Vec<_> = kept.chain(views).collect();
    let mut engine = match Engine::new(settings) {
        Ok(engine) => engine,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut now = 1_000_000_000;
    while let Some(act) = script.act() {
        let Some((name, kind)) = rooms.get(usize::from(act) % rooms.len().max(1)) else { return };
        let Some(client) = engine.connect(now) else { return };
        let logon = [(Field::Command, "logon"), (Field::MessageType, kind.name())];
        say(&mut engine, now, client, &logon, "");
        let command = ["p", "p", "sow", "delta_publish", "sow_and_subscribe", "sow_delete"];
        let command = command[usize::from(script.byte()) % command.len()];
        let filter = ["", "/qty > 0", "1 = 1"][usize::from(script.byte()) % 3];
        let filter = (!filter.is_empty()).then_some((Field::Filter, filter));
        let fields = [(Field::Command, command), (Field::Topic, name)].into_iter().chain(filter);
        let body = BODIES[usize::from(script.byte()) % BODIES.len()];
        say(&mut engine, now, client, &fields.collect::<Vec<_>>(), body);
        now += u64::from(script.byte()) << 24;
        engine.disconnect(client);
    }
}

fn say(engine: &mut Engine, now: u64, client: ClientId, fields: &[(Field, &str)], body: &str) {
    let mut out = Vec::new();
    let mut header = HeaderWriter::record(&mut out);
    for (field, text) in fields {
        header = header.text(*field, text);
    }
    header.end();
    out.extend_from_slice(body.as_bytes());
    let moment = Now { monotonic_ns: now, unix_ns: now };
    engine.execute(moment, client, &out);
    engine.on_time(moment);
    engine.next_deadline(moment);
    while engine.next_dirty().is_some() {}
    engine.end_round();
    while engine.next_disconnect().is_some() {}
}
