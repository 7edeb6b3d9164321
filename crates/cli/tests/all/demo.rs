//! `demo`, which is what a newcomer sees first.

use crate::run::Stage;

#[test]
fn no_survivor_loses_anything() {
    let stage = Stage::new();
    let text = stage.run("demo --seconds 1 --rate 20000 --lines 1000 --orders 20000 --json").good();
    let outcome: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(outcome["lost"], 0, "{outcome}");
    let total = outcome["flat_out"]["total"].as_u64().unwrap();
    assert!(total > 20_000, "{outcome}");
    let survivors = outcome["survivors"].as_array().unwrap();
    assert_eq!(survivors.len(), 2);
    for survivor in survivors {
        assert_eq!(survivor["received"], total, "{survivor}");
        assert_eq!(survivor["out_of_order"], 0, "{survivor}");
        assert_eq!(survivor["fate"], "closed", "{survivor}");
    }
    let group = &outcome["group"];
    assert_eq!((&group["agreed"], &group["out_of_order"]), (&true.into(), &0.into()), "{group}");
    assert!(group["delivered"].as_u64().unwrap() > 0, "{group}");
    let store = &outcome["store"];
    let (published, second) = (&store["published"], &store["second_life"]);
    assert_eq!((&second["next"], &second["wrong"]), (published, &0.into()), "{store}");
    assert!(second["recovered"].as_u64() >= store["missed"].as_u64(), "{store}");
    let content = &outcome["content"];
    assert_eq!((&content["published"], &content["lost"]), (&20_000.into(), &0.into()), "{content}");
    assert_eq!(content["wrong_subscribers"], 0, "{content}");
    assert!(content["delivered"].as_u64().unwrap() > 1_000, "{content}");
    assert!(content["view"]["records"].as_u64().unwrap() > 100, "{content}");
    assert_eq!(content["view"]["wrong"], 0, "{content}");
    let questions = content["questions"].as_array().unwrap();
    assert!(questions.iter().all(|it| it["is_right"] == true && it["records"] != 0), "{content}");
}
