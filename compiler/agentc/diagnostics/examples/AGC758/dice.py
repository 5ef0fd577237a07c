"""The code of an environment; nothing of it runs before its folder is trusted."""
