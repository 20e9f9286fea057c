"""`pincite up` as its user meets it: second instance, second start, Ctrl-C, put and ask."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from tests.embedded_stack import EmbeddedStack, running_stack
from tests.sample_pdfs import report_pdf
from tests.stack import clean_environ, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStack]:
    with running_stack(tmp_path_factory) as running:
        yield running


@pytest.fixture(scope="module")
def document(stack: EmbeddedStack) -> dict[str, Any]:
    """One report, put by a plain S3 client and ingested."""
    stack.s3().put_object(
        Bucket="documents", Key="stations/one.pdf", Body=report_pdf(41, num_pages=10)
    )
    (found,) = stack.wait_final(1, timeout_s=60)
    return found


def run_cli(stack: EmbeddedStack, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pincite.cli", *arguments],
        env=clean_environ() | {"PINCITE_DATA_DIR": str(stack.data_dir)},
        cwd=stack.data_dir,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_plain_put_becomes_a_quoted_answer(
    stack: EmbeddedStack, document: dict[str, Any]
) -> None:
    assert document["status"] == "ready"
    assert document["pages_total"] == 10
    with stack.client() as client:
        answer = client.ask("How many litres were measured for pump P041 on sheet 7?")
        assert answer["answer_status"] == "answered"
        location = answer["citations"][0]["sources"][0]["locations"][0]
        page = client.page(document["document_id"], location["page"])
    assert location["page"] == 7
    quote = answer["citations"][0]["sources"][0]["quote"]
    assert "294 litres" in quote
    assert page["text"][location["start"] : location["end"]] in quote


def test_the_printed_code_opens_the_page_once(stack: EmbeddedStack) -> None:
    assert stack.login_url is not None
    with httpx.Client(follow_redirects=False, trust_env=False) as browser:
        first = browser.get(stack.login_url)
        assert first.status_code == 303
        assert "HttpOnly" in first.headers["set-cookie"]
        assert browser.get(stack.login_url.split("/login")[0] + "/v1/me").status_code == 200
    with httpx.Client(follow_redirects=False, trust_env=False) as other:
        assert other.get(stack.login_url).status_code == 401


def test_a_second_instance_is_refused_by_name(stack: EmbeddedStack) -> None:
    second = run_cli(stack, "up")
    assert second.returncode == 1
    assert "already running" in second.stderr
    assert str(stack.data_dir) in second.stderr


def test_commands_talk_to_the_running_stack(stack: EmbeddedStack) -> None:
    status = run_cli(stack, "ops", "status")
    assert status.returncode == 0, status.stderr
    for name in ("broker", "objects", "index", "models", "engine", "api", "worker", "sweeper"):
        assert name in status.stdout
    assert "queue depth: 0 parts" in status.stdout
    assert run_cli(stack, "docs", "show", "doc_" + "0" * 32).returncode == 3
    exports = run_cli(stack, "config", "s3").stdout
    assert f"AWS_ENDPOINT_URL_S3='http://127.0.0.1:{stack.port(1)}'" in exports


@pytest.mark.usefixtures("document")
def test_nothing_takes_a_write_without_credentials(stack: EmbeddedStack) -> None:
    """Every port that a process of ours listens on, asked over plain HTTP."""
    ports = {
        connection.laddr.port
        for process in stack.processes().values()
        for connection in process.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert len(ports) == 15
    with httpx.Client(trust_env=False, timeout=5) as client:
        for port in sorted(ports):
            for method in ("PUT", "POST", "DELETE"):
                for path in ("/documents/x.pdf", "/buckets/documents/x.pdf", "/v1/documents"):
                    try:
                        response = client.request(
                            method, f"http://127.0.0.1:{port}{path}", content=b"x"
                        )
                    except httpx.HTTPError:
                        continue  # not HTTP, or TLS that wants our certificate
                    assert response.status_code >= 400, (port, method, path)
            for path in ("/dir/assign", "/vol/grow?count=1", "/col/delete?collection=documents"):
                try:
                    response = client.get(f"http://127.0.0.1:{port}{path}")
                except httpx.HTTPError:
                    continue
                assert response.status_code >= 400, (port, path)
    listed = stack.s3().list_objects_v2(Bucket="documents")
    assert [found["Key"] for found in listed["Contents"]] == ["stations/one.pdf"]


def test_ctrl_c_ends_everything_and_a_second_start_finds_everything(
    stack: EmbeddedStack, document: dict[str, Any]
) -> None:
    before = stack.processes()
    assert stack.interrupt() == 0
    wait_until(
        lambda: not any(process.is_running() for process in before.values()),
        timeout_s=5,
        what="all processes to end",
    )
    stack.up()
    with stack.client() as client:
        (found,) = client.documents()
        answer = client.ask("How many litres were measured for pump P041 on sheet 3?")
    assert found["document_id"] == document["document_id"]
    assert found["status"] == "ready"
    assert "290 litres" in answer["text"]
