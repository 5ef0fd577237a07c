"""Real data of environments, fetched and checked: `agentc data`. `download.py` gets files over
HTTP, `acquire.py` makes a checked folder of them. What a data set declares:
`agentc.backend_api.data_sets`."""
