//! Types that contradict themselves are refused when they are registered.

use omni_flow::{
    Body, BuildCx, BuildError, CheckCx, GraphFile, Kind, Make, Medium, Opt, Port, RegisterError, Registry, Schema,
};

#[derive(serde::Deserialize)]
#[allow(dead_code)]
struct Config {
    size: Option<u32>,
}

macro_rules! bad {
    ($t:ident, $name:literal, $schema:expr) => {
        struct $t;
        impl Make for $t {
            const NAME: &'static str = $name;
            type Config = Config;
            fn schema() -> Schema {
                $schema
            }
            fn build(_: &Config, _: &BuildCx) -> Result<Body, BuildError> {
                Err(BuildError { message: String::new(), source: None })
            }
        }
    };
}
fn any(name: &str) -> Port {
    Port::new(name, Kind::of(Medium::Any), "")
}
bad!(Fine, "a.b", Schema::new("").option(Opt::maybe("size", "integer", "")).example("x: { use: a.b, size: 3 }"));
bad!(Named, "A b", Schema::new(""));
bad!(Reserved, "a.r", Schema::new("").option(Opt::maybe("init_timeout", "duration", "")));
bad!(Ports, "a.p", Schema::new("").input(any("x")).input(any("x")));
bad!(From, "a.f", Schema::new("").input(any("from")));
bad!(Like, "a.l", Schema::new("").output(any("x").like("y")));
bad!(Unparsed, "a.u", Schema::new("").example("x: { use: a.u"));
bad!(Misspelt, "a.m", Schema::new("").option(Opt::maybe("size", "integer", "")).example("{ use: a.m, sice: 3 }"));
bad!(Other, "a.o", Schema::new("").example("x: { use: a.b }"));

#[test]
fn contradictions_are_refused() {
    let mut r = Registry::new();
    r.add::<Fine>().unwrap();
    assert_eq!(r.add::<Fine>().err(), Some(RegisterError::Twice("a.b".into())));
    assert!(matches!(r.add::<Named>(), Err(RegisterError::Name(_))));
    assert!(matches!(r.add::<Reserved>(), Err(RegisterError::Reserved { .. })));
    assert!(matches!(r.add::<Ports>(), Err(RegisterError::Port { .. })));
    assert!(matches!(r.add::<From>(), Err(RegisterError::Port { .. })));
    assert!(matches!(r.add::<Like>(), Err(RegisterError::Like { .. })));
    assert!(matches!(r.add::<Unparsed>(), Err(RegisterError::Example { .. })));
    assert!(matches!(r.add::<Misspelt>(), Err(RegisterError::Example { .. })));
    assert!(matches!(r.add::<Other>(), Err(RegisterError::Example { .. })));
    assert_eq!(r.names().collect::<Vec<_>>(), ["a.b"], "what was refused is not known");
}

#[test]
fn a_type_may_be_written_with_underscores() {
    let mut r = Registry::new();
    r.add::<Fine>().unwrap();
    assert_eq!((r.canonical("a_b"), r.canonical("a.b")), (Some("a.b"), Some("a.b")));
    assert!(r.get("a_b").is_some());
    for wrong in ["a-b", "a_c", "_.b", "a_b_", ""] {
        assert_eq!(r.canonical(wrong), None, "{wrong}");
    }
    let file = GraphFile::parse("g.yaml", "graph: g\nnodes:\n  x: { use: a_b, size: 3 }\n").unwrap();
    let (plan, _) = file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}"));
    assert_eq!(plan.nodes[0].kind, "a.b");
}
