"""Real data of environments, fetched and checked: `agentc data`.

`find.py` lists what installed backends declare, `download.py` and `unpack.py` get it, `content.py`
knows it by its hashes, `acquire.py` does all of that in a staging folder. What a data set declares:
`agentc.backend_api.declare`.
"""
