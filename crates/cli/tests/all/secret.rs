//! `lanecast serve` with TLS, and the commands that speak to it.

#[expect(dead_code, reason = "it also makes what servers in a test's own process go by")]
#[path = "../../../tls/tests/all/certificates.rs"]
pub(crate) mod certificates;

use crate::run::Stage;
use certificates::Certificates;

#[test]
fn commands_encrypt_and_files_are_read_again_on_demand() {
    let (stage, certificates) = (Stage::new(), Certificates::new());
    certificates.issue("server", "127.0.0.1", 2100);
    certificates.issue("me", "desk", 2100);
    let [certificate, key, ca] =
        ["server.pem", "server.key", "ca.pem"].map(|name| certificates.path(name));
    stage.write(
        "serve.toml",
        format!(
            "[listen]\ntcp = \"127.0.0.1:0\"\nwebsocket = \"127.0.0.1:0\"\n\
             [tls]\ncertificate = {certificate:?}\nkey = {key:?}\nclients = {ca:?}\n\
             [[topic]]\nname = \"t\"\ntype = \"json\"\nkey = [\"/id\"]\n"
        ),
    );
    let server = stage.start("serve --config serve.toml");
    server.until_out("wss://127.0.0.1:");
    let line = server.out().lines().next().expect("a line").to_owned();
    let at = format!("tcps://{}", line.rsplit(' ').next().expect("an address"));
    let [mine, secret] = ["me.pem", "me.key"].map(|name| certificates.path(name));
    let ca = format!("--ca {}", ca.display());
    let shown =
        format!("{ca} --certificate {} --certificate-key {}", mine.display(), secret.display());
    let way = format!("t --server {at}");
    stage.run(&format!("pub {way} {shown} {{\"id\":1}}")).good();
    assert_eq!(stage.run(&format!("query {way} {shown}")).good(), "{\"id\":1}\n");
    let told = |options: &str, code: i32, words: &str| {
        let done = stage.run(&format!("query {way} {options}"));
        assert!(done.refused(code).contains(words), "{}", done.err);
    };
    told("", 2, "with --ca FILE");
    told(&ca, 1, "the server requires a certificate");
    told("--ca none.pem", 1, "cannot read none.pem");
    certificates.write("server.pem", "nothing");
    server.signal("HUP");
    server.until_err("certificates stay as they were: ");
    certificates.issue("server", "127.0.0.1", 2101);
    server.signal("HUP");
    server.until_err("read users and certificates again");
    assert_eq!(stage.run(&format!("query {way} {shown}")).good(), "{\"id\":1}\n");
    server.signal("TERM");
    server.finish().good();
}
