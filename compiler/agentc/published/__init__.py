"""What others read: the JSON Schema that editors use, from the tables that the compiler itself
reads specs by, and the card of a model that is pushed to a hub.
"""
