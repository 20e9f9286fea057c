"""A seeded collection for the parity tests, with the payload keys that the application uses."""

import random
import uuid
from typing import Any

from qdrant_client import QdrantClient, models

DENSE_SIZE = 16
VOCABULARY = 120
NAMESPACE = uuid.UUID("8c9cf1f6-28dd-4f55-9a39-6a0a6a3d7f52")
WORDS = ["pump", "valve", "notice", "contract", "filter", "pressure", "leave", "invoice"]

PAYLOAD_INDEXES: dict[str, Any] = {
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "collection": models.PayloadSchemaType.KEYWORD,
    "document": models.PayloadSchemaType.KEYWORD,
    "generation": models.PayloadSchemaType.KEYWORD,
    "language": models.PayloadSchemaType.KEYWORD,
    "tags": models.PayloadSchemaType.KEYWORD,
    "page_start": models.PayloadSchemaType.INTEGER,
    "page_end": models.PayloadSchemaType.INTEGER,
    "weight": models.PayloadSchemaType.FLOAT,
    "draft": models.PayloadSchemaType.BOOL,
    "published": models.PayloadSchemaType.DATETIME,
    "text": models.TextIndexParams(
        type=models.TextIndexType.TEXT,
        tokenizer=models.TokenizerType.WORD,
        lowercase=True,
        phrase_matching=True,
    ),
}


def vectors_config() -> dict[str, models.VectorParams]:
    return {"dense": models.VectorParams(size=DENSE_SIZE, distance=models.Distance.COSINE)}


def sparse_config() -> dict[str, models.SparseVectorParams]:
    return {"lexical": models.SparseVectorParams(modifier=models.Modifier.IDF)}


def dense(rng: random.Random) -> list[float]:
    return [rng.gauss(0, 1) for _ in range(DENSE_SIZE)]


def sparse(rng: random.Random, num_terms: int) -> models.SparseVector:
    """Terms with a Zipf-like frequency, so that IDF matters."""
    terms = sorted({int(VOCABULARY * rng.random() ** 3) for _ in range(num_terms)})
    return models.SparseVector(indices=terms, values=[rng.uniform(0.2, 2.0) for _ in terms])


def payload(rng: random.Random, number: int) -> dict[str, Any]:
    page = rng.randrange(1, 40)
    content: dict[str, Any] = {
        "tenant": f"ten_{number % 3}",
        "collection": f"col_{number % 5}",
        "document": f"doc_{number // 10}",
        "generation": f"gen_{number // 10}",
        "page_start": page,
        "page_end": page + rng.randrange(3),
        "language": rng.choice(["en", "de", "fr"]),
        "tags": rng.sample(["draft", "public", "legal", "old"], rng.randrange(4)),
        "published": f"20{rng.randrange(20, 26)}-0{rng.randrange(1, 10)}-15T10:00:00Z",
        "text": " ".join(rng.choice(WORDS).capitalize() for _ in range(6)),
        "weight": round(rng.uniform(0, 5), 2),
        "draft": rng.random() < 0.3,
        "parts": [
            {"kind": rng.choice(["row", "cell"]), "size": rng.randrange(5)} for _ in range(2)
        ],
    }
    if number % 7 == 0:
        content["language"] = None
    if number % 11 == 0:
        del content["tags"]
    return content


def points(seed: int, num_points: int) -> list[models.PointStruct]:
    """Most points have both vectors, every ninth only the dense one."""
    rng = random.Random(seed)
    built = []
    for number in range(num_points):
        vector: dict[str, Any] = {"dense": dense(rng)}
        if number % 9:
            vector["lexical"] = sparse(rng, 12)
        point_id = str(uuid.uuid5(NAMESPACE, str(number)))
        built.append(models.PointStruct(id=point_id, vector=vector, payload=payload(rng, number)))
    return built


def fill(client: QdrantClient, name: str, rows: list[models.PointStruct]) -> None:
    """Create a collection of this name with these points; local mode has no payload indexes."""
    client.create_collection(
        name, vectors_config=vectors_config(), sparse_vectors_config=sparse_config()
    )
    if rows:
        client.upsert(name, rows, wait=True)
