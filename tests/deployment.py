"""A deployment for tests: shared real servers, and workers and a sweeper as OS processes of its
own.

Each deployment has its own catalog file, bucket, broker database and index alias on the shared
servers, so that tests do not see each other. Its settings reach the processes as environment
variables, as in production.
"""

from __future__ import annotations

import functools
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import boto3
from botocore.config import Config
from mypy_boto3_s3.client import S3Client

from core.domain.access import Principal
from core.domain.documents import DocumentRecord, DocumentStatus
from core.factory import Adapters
from core.settings import Settings, load_settings, settings_environ
from tests import stack
from tests.fakes.models_server import ModelsServer, serving_models

_WORKER = "import sys; from core.settings import load_settings; "
_WORKER += "from workers.lifecycle import run_worker; sys.exit(run_worker(load_settings()))"
_SWEEPER = "from core.settings import load_settings; "
_SWEEPER += "from workers.sweeper import run_sweeper; run_sweeper(load_settings())"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Servers:
    """What deployments share. The model server is a thread of this process."""

    broker: stack.Broker
    objects: stack.Objects
    index: stack.Index
    models: ModelsServer

    @classmethod
    @contextmanager
    def started(cls, folder: Path) -> Iterator[Servers]:
        broker = stack.valkey(folder / "valkey")
        objects = stack.seaweedfs(folder / "seaweedfs", ["pincite-artifacts"])
        index = stack.index_server(folder / "index")
        with ExitStack() as ending:
            for server in (broker.server, objects.server, index.server):
                ending.callback(server.kill)
                server.start()
            models = ending.enter_context(serving_models())
            yield cls(broker, objects, index, models)


@dataclass
class Deployment:
    """Build with `fresh`; `end` kills what it started."""

    servers: Servers
    settings: Settings
    folder: Path
    bucket: str
    processes: list[stack.Server] = field(default_factory=list)

    @classmethod
    def fresh(
        cls, servers: Servers, folder: Path, sections: Mapping[str, Mapping[str, object]]
    ) -> Deployment:
        number = next(_numbers)
        bucket = f"documents-{number}"
        folder.mkdir(parents=True)
        values: dict[str, dict[str, object]] = {
            "objects": {
                "endpoint": servers.objects.endpoint,
                "access_key": servers.objects.access_key,
                "secret_key": servers.objects.secret_key,
                "buckets": {bucket: f"tenant-{number}"},
                "reconcile_s": 1.0,
            },
            "broker": {"url": servers.broker.url.removesuffix("/0") + f"/{number % 16}"},
            "index": {
                "url": servers.index.url,
                "api_key": servers.index.api_key,
                "alias": f"alias-{number}",
            },
            "models": {"url": servers.models.url},
            "worker": {"retry_base_s": 0.2, "lease_s": 8.0},
            "log": {"format": "json", "level": "INFO"},
        }
        for name, section in sections.items():
            values[name] = {**values.get(name, {}), **section}
        settings = load_settings({"data_dir": folder, **values})
        write_tokenizer(settings.models_dir / settings.models.embedder)
        made = cls(servers, settings, folder, bucket)
        made.adapters.catalog.migrate()
        for name in (bucket, settings.objects.artifacts_bucket):
            made.adapters.object_store.ensure_bucket(name)
        return made

    @functools.cached_property
    def adapters(self) -> Adapters:
        """This process's own view of the same catalog, store and index."""
        return Adapters(self.settings)

    @property
    def principal(self) -> Principal:
        return Principal.system(self.adapters.tenant_ids[self.bucket], "test")

    @functools.cached_property
    def s3(self) -> S3Client:
        """A plain boto3 client, as any user of the bucket has."""
        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.servers.objects.endpoint,
            aws_access_key_id=self.servers.objects.access_key,
            aws_secret_access_key=self.servers.objects.secret_key,
            region_name="us-east-1",
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
        )

    def start_worker(self, name: str = "worker") -> stack.Server:
        """A worker process, consuming when this returns."""
        alive = self.folder / "worker.alive"
        alive.unlink(missing_ok=True)
        return self._start(name, _WORKER, alive)

    def start_sweeper(self, name: str = "sweeper") -> stack.Server:
        alive = self.folder / "sweeper.alive"
        alive.unlink(missing_ok=True)
        return self._start(name, _SWEEPER, alive)

    def put(self, key: str, body: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)

    def remove(self, key: str) -> None:
        self.s3.delete_object(Bucket=self.bucket, Key=key)

    def retry(self, key: str) -> None:
        """As `pincite jobs retry` does, for the document's newest job."""
        job_id = self.records()[key].job_id
        assert job_id is not None
        self.adapters.catalog.parts.retry(self.principal, job_id)

    def records(self) -> dict[str, DocumentRecord]:
        """Every document that is not deleted, by key."""
        found: dict[str, DocumentRecord] = {}
        cursor: str | None = None
        while True:
            with self.adapters.catalog.snapshot(self.principal) as snapshot:
                page, cursor = snapshot.documents(cursor=cursor, limit=200)
            found |= {record.key: record for record in page}
            if cursor is None:
                return found

    def wait_for(
        self, expected: Mapping[str, DocumentStatus], *, timeout_s: float = 60.0
    ) -> dict[str, DocumentRecord]:
        """Until exactly these documents exist with these statuses. Raises AssertionError, with the
        processes' logs, when that does not come."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = self.records()
            if {key: record.status for key, record in found.items()} == expected:
                return found
            if time.monotonic() > deadline:
                states = {key: (str(r.status), r.problem) for key, r in found.items()}
                logs = "\n".join(f"{p.name}:\n{p.log()[-3000:]}" for p in self.processes)
                raise AssertionError(f"after {timeout_s} s: {states}\n{logs}")
            time.sleep(0.05)

    def wait_for_ready(self, *keys: str, timeout_s: float = 60.0) -> dict[str, DocumentRecord]:
        return self.wait_for(dict.fromkeys(keys, DocumentStatus.READY), timeout_s=timeout_s)

    def events(self, process: stack.Server) -> list[dict[str, object]]:
        """The process's log, line by line."""
        lines = process.log().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
        self.adapters.close()
        self.s3.close()

    def _start(self, name: str, code: str, alive: Path) -> stack.Server:
        process = stack.python_process(
            name, code, self.folder, settings_environ(self.settings), alive.exists
        )
        self.processes.append(process)
        process.start()
        return process


def write_tokenizer(directory: Path) -> None:
    """A tokenizer of words: enough to count tokens without a model's files."""
    from tokenizers import Tokenizer, pre_tokenizers, processors
    from tokenizers.models import WordLevel

    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    directory.mkdir(parents=True)
    tokenizer.save(str(directory / "tokenizer.json"))
