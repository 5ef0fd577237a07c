"""Documentation generated from the tables that the code uses: pages of the site, and pictures.

`python -m agentc.reference DIR` writes what is committed, `--check` fails where it is out of date,
and `--site` writes the pages that only the site has.
"""
