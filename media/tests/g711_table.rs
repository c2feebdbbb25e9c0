//! Field case F13: all codes of both laws against the table.

mod common;

use omni_flow_media::g711::{alaw_decode, mulaw_decode};

#[test]
fn f13_all_codes_decode_to_the_table() {
    let table = String::from_utf8(common::vector("f13-g711-table.csv")).unwrap();
    let mut seen = 0;
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.trim().split(',').collect();
        let code = u8::from_str_radix(fields[0], 16).unwrap();
        assert_eq!(mulaw_decode(code).to_string(), fields[1], "mu-law {code:02X}");
        assert_eq!(alaw_decode(code).to_string(), fields[2], "A-law {code:02X}");
        seen += 1;
    }
    assert_eq!(seen, 256);
}
