"""A real S3 object store as a process of the host: Versity's gateway over a folder.

It has users, bucket policies, multipart uploads and presigned URLs, and refuses as S3 does. It needs no
cluster and no root; a cluster file with the addon `object-store` has one that its pods reach.

Shell: starts programs, speaks S3.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config

from tests.devcluster import build
from tests.devcluster.answering import until_answering
from tests.devcluster.commands import execute
from tests.devcluster.ports import free_port
from tests.devcluster.processes import Processes
from tests.devcluster.record import write_whole
from tests.devcluster.waiting import Check, nothing

PROGRAMS = ("versitygw",)
REGION = "us-east-1"
KEYS_FILE = "root-keys.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What a user signs requests with."""

    access: str
    """The user's name too."""
    secret: str = field(repr=False)


class ObjectStore:
    """A handle: any process of the host may make one."""

    def __init__(self, url: str, *, root: Keys, program: Path, env: Mapping[str, str]) -> None:
        self.url = url
        """Without a slash at its end; buckets are found by path, not by host name."""
        self.root = root
        """Of the user who may do everything."""
        self.region = REGION
        self._program = program
        self._env = env

    def client(self, keys: Keys | None = None) -> Any:
        """An S3 client of botocore, of the root user or another one."""
        keys = keys or self.root
        return botocore.session.get_session().create_client(
            "s3",
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=keys.access,
            aws_secret_access_key=keys.secret,
            config=Config(
                # Presigned addresses would still be signed by version 2.
                signature_version="s3v4",
                s3={"addressing_style": "path"},
                proxies={},
            ),
        )

    def make_bucket(self, name: str) -> None:
        """Make a bucket that nobody but the root user may use, until `allow` says otherwise."""
        self.client().create_bucket(Bucket=name)

    def make_user(self, name: str) -> Keys:
        """Make a user who may do nothing yet; raises `CommandFailedError` if there is one of that name."""
        keys = Keys(access=name, secret=secrets.token_urlsafe(24))
        given = ("--access", keys.access, "--secret", keys.secret, "--role", "user")
        self._admin("create-user", *given)
        return keys

    def allow(self, bucket: str, *statements: Mapping[str, Any]) -> None:
        """Give a bucket a policy of these statements, in place of the one that it has."""
        policy = {"Version": "2012-10-17", "Statement": [dict(statement) for statement in statements]}
        self.client().put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))

    def environment(self, keys: Keys | None = None) -> dict[str, str]:
        """By what most S3 clients find the store and sign in."""
        keys = keys or self.root
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": keys.access,
            "AWS_SECRET_ACCESS_KEY": keys.secret,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
        }

    def wait_until_ready(self, *, check: Check = nothing) -> None:
        until_answering(f"{self.url}/", what=f"the object store at {self.url}", refusals=True, check=check)

    def _admin(self, *arguments: str) -> str:
        admin = {
            "ADMIN_ENDPOINT_URL": self.url,
            "ADMIN_ACCESS_KEY_ID": self.root.access,
            "ADMIN_SECRET_ACCESS_KEY": self.root.secret,
        }
        shown = ["versitygw", "admin", arguments[0], "…"]
        return execute([self._program, "admin", *arguments], env={**self._env, **admin}, shown=shown)


def user_may(
    keys: Keys, *actions: str, bucket: str, prefix: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Build statements that let a user do some of `GetObject`, `PutObject`, … below a prefix and list all."""
    who = {"Effect": "Allow", "Principal": {"AWS": [keys.access]}}
    objects = f"arn:aws:s3:::{bucket}/{prefix}*"
    return (
        {**who, "Action": [f"s3:{action}" for action in actions], "Resource": [objects]},
        {**who, "Action": ["s3:ListBucket"], "Resource": [f"arn:aws:s3:::{bucket}"]},
    )


@contextlib.contextmanager
def running_object_store(folder: Path, *, host: str = "127.0.0.1") -> Iterator[ObjectStore]:
    """Run an empty store, or one with what an earlier one left in `folder`; it ends with the block.

    Raises `DevClusterError` or `BuildError`.
    """
    processes = Processes(folder)
    program, address = build.ensure(PROGRAMS)[PROGRAMS[0]], f"{host}:{free_port()}"
    try:
        yield start(processes, folder, program, address=address, log=folder / "object-store.log")
    finally:
        processes.stop_all()


def start(processes: Processes, folder: Path, program: Path, *, address: str, log: Path) -> ObjectStore:
    """Start a store as one of `processes`; returns when it answers."""
    for part in ("buckets", "metadata", "users"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    root = _root_keys(folder)
    # Metadata in files of their own: not every file system has extended attributes.
    backend = ("posix", "--sidecar", folder / "metadata", folder / "buckets")
    process = processes.start(
        "object-store",
        [program, "--port", address, "--region", REGION, "--iam-dir", folder / "users", "--quiet", *backend],
        log=log,
        env={"ROOT_ACCESS_KEY_ID": root.access, "ROOT_SECRET_ACCESS_KEY": root.secret},
    )
    store = ObjectStore(f"http://{address}", root=root, program=program, env=processes.env)
    store.wait_until_ready(check=process.check)
    return store


def _root_keys(folder: Path) -> Keys:
    """The root user's keys, the same ones for a folder; none of any kind outside the host's own files."""
    file = folder / KEYS_FILE
    if not file.exists():
        write_whole(file, json.dumps({"access": "root", "secret": secrets.token_urlsafe(24)}))
        file.chmod(0o600)
    return Keys(**json.loads(file.read_text()))
