"""The kinds of attack on hub, services and cluster, and the tests that make them.

`pytest -m attack tests/hub` makes those of a tier; `tests/unit/test_attacks.py` holds this table against what
there is: each kind has tests, and each of them exists. A test is named here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One kind of attack."""

    tries: str
    """What is tried."""
    tests: tuple[str, ...]
    """`file::function`, or `file::Class.function`, below `tests`."""


ATTACKS: Mapping[str, Attack] = {
    "options": Attack(
        tries="options of odd shapes, of other teams, retired, withdrawn, patched in, by a link",
        tests=(
            "hub/test_refusals.py::test_form_link_and_rest_say_the_same",
            "hub/test_refusals.py::test_a_malformed_body_is_the_request_s_fault_and_not_kept",
            "hub/test_refusals.py::test_access_that_was_withdrawn_counts_at_once",
            "hub/test_refusals.py::test_who_starts_for_somebody_else_does_so_with_their_rights",
            "hub/test_starts.py::test_a_link_fills_in_the_page_and_starts_nothing",
            "hub/test_starts.py::test_options_that_were_patched_in_are_judged_at_the_start",
            "hub/test_attacks.py::test_options_of_any_shape_start_nothing",
            "unit/selection/test_select.py::test_wrong_types_are_the_request_s_fault",
            "unit/selection/test_select.py::test_a_hidden_name_is_answered_like_one_that_does_not_exist",
        ),
    ),
    "image": Attack(
        tries="images beside the list: other digests and registries that look like ours",
        tests=(
            "hub/test_attacks.py::test_an_image_that_is_not_listed_is_never_run",
            "unit/catalog/test_compose.py::test_a_typed_image_out_of_bounds",
            "unit/test_names.py::test_what_is_no_image_reference",
        ),
    ),
    "labels": Attack(
        tries="names with markup of templates, labels that open the proxy's API, queues of others",
        tests=(
            "hub/test_attacks.py::test_a_name_is_only_a_name",
            "hub/test_attacks.py::test_no_part_of_a_pod_is_the_user_s_to_say",
            "control/test_rendered.py::test_every_pod_of_a_catalog_is_accepted_and_fits_restricted_pod_security",
            "control/test_rendered.py::test_any_catalog_that_validates_gives_pods_that_are_accepted",
            "unit/catalog/test_rules.py::test_a_fault_is_found_where_it_is",
            "unit/test_names.py::test_any_text_becomes_a_label_value",
        ),
    ),
    "storage": Attack(
        tries="the home of somebody else: names that become one, claims that are there, paths that lead out",
        tests=(
            "hub/test_refusals.py::test_nobody_gets_the_home_of_somebody_else",
            "hub/test_attacks.py::test_a_name_is_only_a_name",
            "unit/spawner/test_homes.py::test_a_home_of_somebody_else_is_not_mounted",
            "unit/spawner/test_homes.py::test_with_its_user_goes_the_home_that_is_certainly_theirs",
            "unit/spawner/test_object_names.py::test_no_two_servers_share_a_name_and_all_names_are_valid",
        ),
    ),
    "teams": Attack(
        tries="groups of odd shapes, missing, lost while the session lives on",
        tests=(
            "hub/test_sign_in.py::test_groups_of_the_provider_are_teams",
            "hub/test_sign_in.py::test_who_leaves_a_group_loses_it_while_the_session_lives_on",
            "nodes/test_keycloak.py::test_who_has_no_group_has_no_claim",
            "unit/test_sign_in.py::test_groups_are_read",
            "unit/test_sign_in.py::test_nothing_is_a_crash",
        ),
    ),
    "quota": Attack(
        tries="many starts in one instant, refusals in a row, quotas that change meanwhile, two shares",
        tests=(
            "hub/test_quota.py::test_of_two_servers_in_the_same_instant_one_starts",
            "hub/test_refusals.py::test_refusals_in_a_row_leave_the_hub_up",
            "hub/test_refusals.py::test_the_cluster_s_quota_is_explained_and_not_counted_against_the_hub",
            "control/test_hub_cluster.py::test_two_named_servers_in_the_same_instant_with_room_for_one",
            "control/test_hub_cluster.py::test_many_starts_at_once_and_hubs_that_restart_between_never_overshoot",
            "nodes/test_waiting.py::test_more_than_one_share_fails_at_once",
        ),
    ),
    "culler": Attack(
        tries="to be kept or to have others stopped: false activity, false reports, answers that are none",
        tests=(
            "hub/test_culling.py::test_a_narrow_token_of_the_user_stops_nothing",
            "nodes/test_installed_policies.py::test_with_a_set_s_policies_each_reaches_what_it_has_to",
            "unit/idle_culler/test_judge.py::test_the_users_word_delays_but_not_for_ever",
            "unit/idle_culler/test_cases.py::test_an_old_session_ends_whatever_time_the_activity_claims",
            "unit/idle_culler/test_pages.py::test_what_is_no_report_is_refused_and_changes_nothing",
            "unit/idle_culler/test_pages.py::test_nobody_acts_on_a_server_of_somebody_else",
            "unit/services/test_prometheus.py::test_other_answers_are_errors",
            "unit/services/test_prometheus.py::test_a_pattern_matches_these_texts_and_no_others",
        ),
    ),
    "markup": Attack(
        tries="markup in texts of catalogs, users, notebooks and jobs",
        tests=(
            "hub/test_attacks.py::test_what_was_sent_is_shown_as_text",
            "unit/form/test_render.py::test_no_text_of_the_catalog_or_the_user_becomes_markup",
            "unit/handoff/test_http.py::test_a_page_shows_what_users_wrote_as_text",
            "unit/idle_culler/test_pages.py::test_names_are_shown_and_used_as_they_are",
            "unit/services/test_base.py::test_a_page_says_who_is_there_and_escapes_what_it_shows",
        ),
    ),
    "tokens": Attack(
        tries="tokens in logs and objects, tokens and accounts that may more than they need",
        tests=(
            "hub/test_attacks.py::test_no_secret_is_in_the_hub_s_log",
            "hub/test_attacks.py::test_a_narrow_token_of_a_user_opens_nothing_of_another",
            "hub/test_services.py::test_a_token_counts_where_its_scopes_reach",
            "control/test_attacks.py::test_nobody_here_reads_secrets_or_makes_tokens",
            "control/test_attacks.py::test_nobody_here_raises_rights",
            "control/test_installation.py::test_accounts_may_what_is_declared_and_nothing_else",
            "unit/spawner/test_requests.py::test_the_log_of_a_refusal_has_neither_token_nor_manifest",
            "unit/services/test_base.py::test_the_query_of_a_request_is_not_logged",
        ),
    ),
    "handoff": Attack(
        tries="foreign pages, paths and links out of the folder, variables and objects of others, replays",
        tests=(
            "control/test_handoff.py::test_what_would_run_beside_the_queues_is_refused",
            "control/test_attacks.py::test_nobody_here_gets_into_a_pod_that_runs",
            "hub/test_services.py::test_somebody_else_s_site_changes_nothing",
            "unit/handoff/test_http.py::test_what_a_foreign_page_can_send_is_not_taken",
            "unit/handoff/test_http.py::test_another_s_run_is_as_if_it_were_not_there",
            "unit/handoff/test_archive.py::test_members_that_could_leave_the_folder_are_refused",
            "unit/handoff/test_manifests.py::test_what_a_user_writes_stays_a_value",
            "unit/handoff/test_plan.py::test_variables_that_are_not_allowed",
            "unit/handoff/test_desk.py::test_another_user_s_key_is_another_run",
        ),
    ),
    "redirects": Attack(
        tries="to be led elsewhere around signing in, to finish a sign-in of somebody else, starts by a link",
        tests=(
            "hub/test_attacks.py::test_sign_in_leads_nowhere_else",
            "hub/test_attacks.py::test_a_sign_in_that_somebody_else_began_is_not_finished",
            "hub/test_attacks.py::test_somebody_else_s_site_starts_nothing",
        ),
    ),
    "machines": Attack(
        tries="to have a machine cordoned, drained or ended by events, names and faults that come and go",
        tests=("control/test_attacks.py::test_nobody_here_cordons_drains_or_ends_a_machine",),
    ),
    "network": Attack(
        tries="clouds' metadata, kubelets, API server, exporters, the proxy's API, other people's servers",
        tests=("nodes/test_installed_policies.py::test_with_a_set_s_policies_each_reaches_what_it_has_to",),
    ),
}
