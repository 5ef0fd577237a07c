"""Where WebShop's files of 1000 products were published, and the hashes by which they are known.

The catalogue's hash is of its canonical form (`job_canonical.py`), made from the products that a
published Lucene index stored; the file that the authors offer has more in it that no shop reads.
"""

from __future__ import annotations

from agentc.backend_api import DataSet, DataSource

_DRIVE = "https://drive.google.com/uc?export=download&id="

PRODUCTS_1000 = DataSet(
    name="webshop-1000",
    doc="WebShop's 1000 products with their attributes: 6,910 goals, in the released order.",
    licence="the code is MIT; the texts are sellers', scraped from a shop",
    sources=(
        DataSource(
            name="items_shuffle_1000.json",
            url=f"{_DRIVE}1EgHdxQ_YxqIQlvvq5iKlCrkEKR6-j0Ib",
            size=8_000_000,
        ),
        DataSource(
            name="items_ins_v2_1000.json",
            url=f"{_DRIVE}1IduG0xl544V_A_jv3tHXC0kyFi7PnyBu",
            size=147_099,
        ),
    ),
    unpacked_size=10_000_000,
    program=("-m", "agentc_backends.environments.webshop.job_canonical"),
    contents={
        "products.json": "804464316dc6eb43fffbcde76045a2d38d27678d9e0a96192db08da71f52ca58",
        "attributes.json": "93c56de0028d9b1747a23d3189c83a887edf9cebd23a163f3e45d13590abb190",
    },
    use="`catalogue: {path}/products.json.gz` and `attributes: {path}/attributes.json.gz` under an "
    "environment with `backend: webshop`",
)
