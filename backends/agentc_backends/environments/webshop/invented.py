"""An invented catalogue in the schema of WebShop's files, drawn from a seed.

Products of one type differ in brand, attributes, options and price, so that finding the right one
takes reading; every text is made of words listed here. Same seed and size, same catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

_LETTERS = "0123456789BCDFGHJKLMNPQRSTVWXYZ"
_BRANDS = (
    "Alderway", "Brightmoor", "Cindervale", "Dunmere", "Eastlark", "Fennhollow", "Glasswick",
    "Harrowby", "Inkwell Row", "Juniper Yard", "Kestrel Point", "Larkspur Lane", "Mossgate",
    "Northfold", "Otterburn", "Pebblecroft", "Quillmark", "Redfern", "Saltmarsh", "Thistledown",
    "Umberline", "Violet Quay", "Westering", "Yarrowfield",
)  # fmt: skip
_COLOURS = ("black", "white", "navy", "olive", "gray", "teal", "red", "beige", "purple", "orange")
_SIZES = ("small", "medium", "large", "x-large")
_ASKING = ("Find me", "I need", "I am looking for", "Please get me")


@dataclass(frozen=True, slots=True)
class _Type:
    """A kind of product: names that a title may use, attributes, options, a price range."""

    category: str
    query: str
    levels: tuple[str, ...]
    names: tuple[str, ...]
    attributes: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    price: tuple[int, int]


_WORN = {"color": _COLOURS, "size": _SIZES}
_TYPES = (
    _Type("fashion", "women's jackets", ("Clothing", "Women", "Coats & Jackets"),
          ("Women's Rain Jacket", "Women's Quilted Jacket", "Women's Hooded Jacket"),
          ("water resistant", "machine wash", "long sleeve", "light weight", "drawstring waist",
           "zip closure"), _WORN, (25, 140)),
    _Type("fashion", "men's shirts", ("Clothing", "Men", "Shirts"),
          ("Men's Flannel Shirt", "Men's Linen Shirt", "Men's Work Shirt"),
          ("slim fit", "short sleeve", "button closure", "quick drying", "soft fabric",
           "machine wash"), _WORN, (15, 80)),
    _Type("fashion", "walking shoes", ("Clothing", "Shoes", "Walking"),
          ("Walking Shoes", "Trail Shoes", "Slip-On Walking Shoes"),
          ("rubber sole", "arch support", "non slip", "memory foam", "light weight", "day comfort"),
          {"color": _COLOURS[:6], "size": ("6", "7", "8", "9", "10", "11")}, (30, 120)),
    _Type("garden", "bookcases", ("Home & Kitchen", "Furniture", "Bookcases"),
          ("Five Shelf Bookcase", "Corner Bookcase", "Low Bookcase"),
          ("solid wood", "easy assemble", "space saving", "steel frame", "storage space",
           "living room"), {"color": ("oak", "walnut", "white", "black"),
                            "size": ("24 inch", "32 inch", "40 inch")}, (60, 400)),
    _Type("garden", "table lamps", ("Home & Kitchen", "Lighting", "Table Lamps"),
          ("Bedside Table Lamp", "Reading Table Lamp", "Ceramic Table Lamp"),
          ("dimmable light", "energy efficient", "glass shade", "brushed nickel", "easy install",
           "bronze finish"), {"color": _COLOURS[:5], "style": ("single", "set of two")}, (18, 150)),
    _Type("garden", "throw blankets", ("Home & Kitchen", "Bedding", "Blankets & Throws"),
          ("Knitted Throw Blanket", "Fleece Throw Blanket", "Wool Throw Blanket"),
          ("super soft", "machine washable", "double sided", "fade resistant", "queen size",
           "long lasting"), {"color": _COLOURS,
                             "size": ("50 x 60 inch", "60 x 80 inch")}, (15, 90)),
    _Type("beauty", "hand creams", ("Beauty & Personal Care", "Skin Care", "Hand Creams"),
          ("Hand Cream", "Overnight Hand Cream", "Hand Balm"),
          ("fragrance free", "dry skin", "cruelty free", "shea butter", "natural ingredients",
           "sensitive skin"), {"scent": ("unscented", "lavender", "citrus", "almond"),
                               "size": ("1 ounce", "3 ounce", "pack of 2")}, (5, 40)),
    _Type("beauty", "shampoos", ("Beauty & Personal Care", "Hair Care", "Shampoos"),
          ("Daily Shampoo", "Repair Shampoo", "Shampoo Bar"),
          ("sulfate free", "tea tree", "damaged hair", "argan oil", "paraben free", "hair growth"),
          {"scent": ("mint", "coconut", "unscented"), "size": ("8 ounce", "16 ounce")}, (6, 45)),
    _Type("beauty", "makeup brushes", ("Beauty & Personal Care", "Tools", "Makeup Brushes"),
          ("Makeup Brush Set", "Travel Makeup Brushes", "Foundation Brush"),
          ("easy clean", "synthetic hair", "travel size", "eye shadow", "non toxic",
           "high quality"), {"color": ("rose gold", "black", "white", "pink")}, (8, 60)),
    _Type("electronics", "headphones", ("Electronics", "Audio", "Headphones"),
          ("Over-Ear Headphones", "Sports Earphones", "Studio Headphones"),
          ("noise cancelling", "wireless bluetooth", "fast charging", "hands free",
           "stereo sound", "long lasting"), {"color": _COLOURS[:6],
                                             "style": ("basic", "with case")}, (20, 250)),
    _Type("electronics", "phone chargers", ("Electronics", "Accessories", "Chargers"),
          ("Wall Phone Charger", "Car Phone Charger", "Wireless Phone Charger"),
          ("fast charging", "usb port", "light weight", "easy carry", "high speed",
           "output protection"), {"color": ("black", "white"),
                                  "size": ("18 watt", "30 watt", "65 watt")}, (9, 60)),
    _Type("electronics", "tripods", ("Electronics", "Camera & Photo", "Tripods"),
          ("Camera Tripod", "Tabletop Tripod", "Travel Tripod"),
          ("quick release", "aluminum alloy", "easy carry", "carbon fiber", "heavy duty",
           "light weight"), {"size": ("20 inch", "50 inch", "62 inch"),
                             "color": ("black", "red", "gray")}, (15, 220)),
    _Type("grocery", "teas", ("Grocery", "Beverages", "Tea"),
          ("Loose Leaf Black Tea", "Herbal Tea Bags", "Green Tea Bags"),
          ("caffeine free", "usda organic", "individually wrapped", "non gmo", "sugar free",
           "gift set"), {"flavor name": ("ginger", "mint", "lemon", "chai", "original"),
                         "size": ("20 count", "50 count", "100 count")}, (5, 45)),
    _Type("grocery", "snack bars", ("Grocery", "Snacks", "Bars"),
          ("Oat Snack Bars", "Nut Snack Bars", "Fruit Snack Bars"),
          ("gluten free", "low sugar", "plant based", "high protein", "dairy free",
           "artificial flavors"), {"flavor name": ("apricot", "cocoa", "peanut", "berry"),
                                   "size": ("6 count", "12 count", "24 count")}, (7, 50)),
    _Type("grocery", "pasta sauces", ("Grocery", "Sauces", "Pasta Sauces"),
          ("Tomato Pasta Sauce", "Basil Pasta Sauce", "Roasted Pepper Pasta Sauce"),
          ("fat free", "low sodium", "non gmo", "ready use", "natural ingredients",
           "keto friendly"),
          {"size": ("12 ounce", "24 ounce", "pack of 6")}, (4, 40)),
)  # fmt: skip


def invent(size: int, seed: int) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The rows of a catalogue, and attributes by product; seven products in ten are some goal's."""
    random = Random(f"webshop/{seed}")
    rows: list[dict[str, Any]] = []
    known: dict[str, dict[str, Any]] = {}
    while len(rows) < size:
        asin = "B0" + "".join(random.choices(_LETTERS, k=8))
        if asin not in known:
            row, known[asin] = _invented(asin, random.choice(_TYPES), random)
            rows.append(row)
    return rows, known


def _invented(asin: str, of: _Type, random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    name, brand = random.choice(of.names), random.choice(_BRANDS)
    attributes = random.sample(of.attributes, random.randint(2, 4))
    shown = attributes[: random.randint(1, 2)]
    options = {
        option: [
            {"value": value}
            for value in sorted(random.sample(values, min(len(values), random.randint(2, 3))))
        ]
        for option, values in of.options.items()
        if random.random() < 0.85
    }
    row = {
        "asin": asin,
        "name": f"{brand} {name} {random.randint(100, 999)}, {', '.join(map(str.title, shown))}",
        "full_description": f"A {name.lower()} by {brand}, made with care: "
        f"{', '.join(attributes)}. One of our {of.query}.",
        "small_description": [f"{each.capitalize()}." for each in attributes],
        "category": of.category,
        "query": of.query,
        "product_category": " › ".join(of.levels),
        "pricing": _pricing(of.price, random),
        "customization_options": options,
    }
    known: dict[str, Any] = {"attributes": attributes}
    if random.random() < 0.7:
        wanted = random.sample(attributes, random.randint(1, min(3, len(attributes))))
        asked = f"{random.choice(_ASKING)} {', '.join(wanted)} {of.query}"
        known |= {"instruction": asked, "instruction_attributes": wanted}
    return row, known


def _pricing(bounds: tuple[int, int], random: Random) -> str:
    low = random.randint(100 * bounds[0], 100 * bounds[1]) / 100
    if random.random() < 0.1:
        return f"${low:.2f} to ${low * random.uniform(1.1, 2):.2f}"
    return f"${low:.2f}"
