"""The maximum-entropy model of tables."""
