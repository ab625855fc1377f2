"""Methods: which queries, generator and settings suit a schema, a number of rows and a budget."""
