use fieldline_script::{Arg, Host, Lang, Limits, Script};
fn main() {
    let lang = if std::env::var("JS").is_ok() { Lang::JavaScript } else { Lang::Tbel };
    let mut host = Host::new(Limits::default());
    for line in std::io::stdin().lines() {
        let line = line.unwrap().replace("\\n", "\n");
        let meta = [("a".to_owned(), "1".to_owned())];
        match Script::new(lang, &["msg", "metadata", "msgType"], &line) {
            Err(e) => println!("{line} => SYNTAX {e}"),
            Ok(s) => match host.call(&s, &[Arg::Json(r#"{"i":4,"str":"ABC","list":["B","A",5]}"#), Arg::Map(&meta), Arg::Text("T")]) {
                Ok(o) => println!("{line} => {}", o.into_json()),
                Err(e) => println!("{line} => ERR {e}"),
            },
        }
    }
}
