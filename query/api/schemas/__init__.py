"""What goes over the wire, as pydantic schemas: the source of docs/api/openapi.json.

Knows nothing of HTTP and nothing of where the data come from but the domain types.
"""
