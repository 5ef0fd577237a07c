"""What an external program requests of a model server, recorded by episode, and rows made of it.

`recorder.py` is the proxy between program and server, `relay.py` passes one request on,
`exchange.py` is a request with its reply; `proof.py` rebuilds the conversation, or says why it
cannot be proved; `episodes.py` makes and publishes rows. Who runs programs is elsewhere.
"""
