"""WebShop (Yao et al., 2022): find and buy a product that an instruction describes, as text.

Use `environment.WebShopEnvironment` over a `shop.Shop` in process, or `python -m` of `job_serve.py`
for a server that speaks AgentGym's HTTP protocol. Standard library only; the catalogue is invented
(`invented.py`) or read from files that a spec names.
"""
