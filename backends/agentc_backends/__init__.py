"""Built-in backends: one folder for each; the compiler reaches them only through entry points."""
