"""The version, in a file that can be read without importing the package."""

__version__ = "0.1.0"
