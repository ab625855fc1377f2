"""Sources: open files, frames, pictures and tables, and describe them. They keep no row."""
