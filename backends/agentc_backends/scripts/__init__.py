"""Users' own programs as stages: a script or a command between others."""
