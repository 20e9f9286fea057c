"""The application over fakes, as in the unit tests of the API."""

from tests.api_fixtures import log_lines, make_world, migrated_catalog, world

__all__ = ["log_lines", "make_world", "migrated_catalog", "world"]
