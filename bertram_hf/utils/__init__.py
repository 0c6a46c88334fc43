"""Helpers that know nothing of BERTRAM: files, hashes, settings, tables, processes."""
