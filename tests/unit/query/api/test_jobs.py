"""Jobs: shown, retried, cancelled."""

from starlette.testclient import TestClient

from tests.api_world import World


def test_a_job_is_shown_with_its_stages(client: TestClient, world: World) -> None:
    accepted = world.ingest()
    job = client.get(f"/v1/jobs/{accepted.job_id}").json()
    assert job["document_id"] == accepted.document_id
    assert job["status"] == "ready"
    assert job["finished_at"] is not None
    assert job["stages"]["parse"] == {"done": 1}
    assert [found["job_id"] for found in client.get("/v1/jobs").json()["data"]] == [accepted.job_id]


def test_cancel_and_retry(client: TestClient, world: World) -> None:
    accepted = world.announce("hr/new.pdf", b"%PDF-1.7 new")
    path = f"/v1/jobs/{accepted.job_id}"
    cancelled = client.post(f"{path}/cancel").json()
    assert cancelled["problem"]["code"] == "cancelled"
    assert client.post(f"{path}/cancel").status_code == 409
    assert client.post(f"{path}/retry").json()["status"] == "queued"
    conflict = client.post(f"{path}/retry")
    assert conflict.status_code == 409
    assert conflict.json()["code"] == "conflict"
