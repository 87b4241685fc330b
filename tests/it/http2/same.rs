//! Tests of backends once more, with backends that are asked by HTTP/2: nothing differs.

use pdbmux::config::Protocol;

use crate::door::{backends, limits};
use crate::gzip::backends as compressed;
use crate::reload::load;
use crate::stream::ordered;
use crate::{ejection, groups, reload, stream, stub, transfer};

/// Runs what another module tests.
macro_rules! by_http2 {
    ($($module:ident => $($test:ident),+;)+) => {
        $($(
            #[test]
            fn $test() {
                stub::all_speaking(Protocol::Http2, || $module::$test());
            }
        )+)+
    };
}

by_http2! {
    transfer =>
        a_transfer_that_flows_for_longer_than_the_timeout_is_not_cut,
        a_stall_is_a_timeout_wherever_it_begins,
        a_body_that_breaks_off_is_never_merged_as_far_as_it_came,
        a_body_above_the_ceiling_is_a_failed_backend_promised_or_not,
        a_slow_client_gets_all_of_a_large_answer;
    stream =>
        what_is_streamed_is_what_is_held_in_another_order,
        the_head_and_what_is_decided_go_out_before_the_backends_are_done,
        a_backend_that_fails_under_way_breaks_the_answer_off,
        under_static_a_backend_is_not_read_while_all_it_sends_can_only_wait,
        a_client_that_leaves_ends_the_asking,
        all_who_want_the_same_are_sent_all_of_it_and_nothing_is_kept;
    ordered =>
        what_the_backends_order_as_we_do_is_streamed_in_order,
        a_list_out_of_order_is_broken_off_once_and_held_from_then_on,
        what_must_be_held_and_has_no_room_is_refused_and_comes_later;
    compressed =>
        backends_are_asked_to_compress_where_that_is_configured,
        damaged_and_foreign_encodings_are_failed_backends,
        compressed_answers_are_streamed_and_break_off_where_they_are_cut;
    groups =>
        whatever_becomes_of_one_of_a_group_another_answers_in_its_place_and_goes_on_to,
        an_answer_that_is_passed_on_and_ends_before_its_first_byte_is_another_ones,
        who_does_not_begin_to_answer_in_time_is_not_waited_for_if_another_does;
    ejection =>
        failures_in_a_row_leave_a_backend_out_and_others_are_asked_without_it,
        one_request_tries_a_backend_whose_time_is_over_while_others_go_without;
    limits =>
        a_place_comes_back_when_a_client_leaves_and_when_an_answer_is_cut,
        a_place_is_had_until_the_last_byte_is_written;
    backends =>
        no_backend_is_asked_more_at_one_time_than_it_may_and_all_are_answered,
        a_backend_without_a_place_in_time_has_failed_and_the_other_answers,
        rounds_that_keep_places_of_several_backends_do_not_wait_for_each_other;
    load =>
        a_hundred_reloads_under_load_cost_no_request_and_no_connection,
        a_request_ends_as_it_began;
    reload =>
        connections_to_a_backend_that_is_reached_as_before_are_kept;
}
