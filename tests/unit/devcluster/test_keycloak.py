"""Keycloak's distribution is the pinned one, and realms are what their tests say."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.devcluster.build import BuildError, keycloak
from tests.devcluster.keycloak import Account, build_realm


def archive(folder: Path) -> Path:
    path = folder / "keycloak.zip"
    with zipfile.ZipFile(path, "w") as files:
        files.writestr("keycloak-1/bin/kc.sh", "#!/bin/sh\n")
        files.writestr("keycloak-1/lib/quarkus-run.jar", "")
    return path


def test_another_file_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="is not the Keycloak that is pinned"):
        keycloak._unpack(archive(tmp_path), tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_the_distribution_s_folder_becomes_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path)
    monkeypatch.setattr(keycloak, "SHA256", keycloak.hashlib.sha256(path.read_bytes()).hexdigest())
    keycloak._unpack(path, tmp_path / "target")
    assert (tmp_path / "target" / "bin" / "kc.sh").stat().st_mode & 0o111
    assert (tmp_path / "target" / "lib" / "quarkus-run.jar").exists()
    assert {found.name for found in tmp_path.iterdir()} == {"keycloak.zip", "target"}


def test_a_realm_has_every_group_that_somebody_is_in() -> None:
    realm = build_realm(
        "hub",
        client_id="jupyterhub",
        client_secret="secret",
        redirect_uris=["http://127.0.0.1/hub/oauth_callback"],
        accounts=[Account(name="ada", password="x", groups=("nlp",)), Account(name="sam", password="y")],
        groups=["vision"],
    )
    assert realm["groups"] == [{"name": "vision"}, {"name": "nlp"}]
    assert [user["groups"] for user in realm["users"]] == [["/nlp"], []]
    (client,) = realm["clients"]
    assert client["redirectUris"] == ["http://127.0.0.1/hub/oauth_callback"]
