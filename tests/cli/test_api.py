"""`pgq-core api tokens`: made, listed, revoked."""

from __future__ import annotations

from tests.cli.conftest import Cli


def test_a_token_is_shown_once_listed_and_revoked(cli: Cli) -> None:
    made = cli("api", "tokens", "create", "shop", "--scope", "enqueue", "-s", "read", "--expires", "90d")
    listed = cli("api", "tokens", "--json")

    assert (made.code, made.out[:4]) == (0, "pgq_")
    assert made.out.strip() not in listed.out
    (token,) = listed.json
    assert (token["name"], token["scopes"], token["created_by"]) == ("shop", ["enqueue", "read"], "ops@test")
    assert token["expires_at"] is not None
    assert "shop" in cli("api", "tokens", "list").out
    assert cli("api", "tokens", "revoke", "shop").code == 0
    assert cli("api", "tokens", "revoke", "shop").code == 1
    assert cli("api", "tokens", "--json").json[0]["revoked_by"] == "ops@test"
    assert [row["action"] for row in cli("operations", "--json").json] == ["revoke_token", "create_token"]


def test_a_token_needs_a_name_and_a_scope_that_exist(cli: Cli) -> None:
    assert cli("api", "tokens", "create", "shop", "--scope", "admin").code == 2
    assert cli("api", "tokens", "create", "shop").code == 2
    assert cli("api", "tokens", "create", "a,b", "--scope", "read").code == 2
    assert cli("api", "tokens", "create", "shop", "--scope", "read").code == 0
    assert cli("api", "tokens", "create", "shop", "--scope", "read").code == 1


def test_a_program_that_may_only_look_makes_no_token(cli: Cli) -> None:
    assert cli("api", "tokens", "create", "shop", "--scope", "read", "--read-only").code == 4


def test_an_address_that_makes_no_sense_is_said(cli: Cli) -> None:
    answer = cli("api", "serve", "--host", "no such host", "--port", "0")

    assert answer.code == 2
    assert "cannot listen on no such host:0" in answer.err
    assert cli("api", "--unknown-types", "maybe").code == 2
