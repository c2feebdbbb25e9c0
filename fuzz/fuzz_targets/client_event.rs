//! `omni_flow_tests::fuzz::client_event`, for as long as it is left running.
#![no_main]

use libfuzzer_sys::fuzz_target;
use omni_flow_tests::fuzz;

fuzz_target!(|input: &[u8]| fuzz::client_event(input));
