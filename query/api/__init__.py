"""The routes of /v1, one module a resource.

Knows nothing of SQL, S3 or Qdrant: it calls services and turns results into JSON.
"""
