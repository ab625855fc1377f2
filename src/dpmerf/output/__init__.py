"""Output: synthetic tables and pictures as files."""
