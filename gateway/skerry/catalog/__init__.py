"""What motes and attributes there are."""

from skerry.catalog.catalog import Catalog

__all__ = ["Catalog"]
