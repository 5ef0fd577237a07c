"""The language as others read it: the JSON Schema that editors use, from the tables that the
compiler itself reads specs by.
"""
