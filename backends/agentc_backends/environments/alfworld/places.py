"""Where things tend to lie: receptacle types for each object type, the likeliest first.

Counted over the 3,553 training games of ALFWorld (things of a type for each receptacle of a type
in the games that have both); receptacles with fewer than one thing in a hundred are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

_PLACES = {
    "alarmclock": "diningtable desk countertop dresser sidetable shelf",
    "apple": "fridge diningtable sidetable microwave garbagecan countertop sinkbasin",
    "book": (
        "bed coffeetable desk countertop diningtable sofa dresser armchair sidetable "
        "tvstand cabinet drawer shelf"
    ),
    "bowl": (
        "desk coffeetable diningtable fridge dresser tvstand countertop shelf sidetable "
        "sinkbasin microwave cabinet"
    ),
    "box": (
        "diningtable coffeetable sofa desk tvstand ottoman cabinet dresser sidetable armchair shelf"
    ),
    "bread": "diningtable countertop fridge sidetable",
    "butterknife": "diningtable countertop sidetable sinkbasin drawer",
    "candle": (
        "sidetable countertop toilet coffeetable cart diningtable tvstand dresser shelf "
        "cabinet drawer"
    ),
    "cd": ("diningtable dresser desk sidetable garbagecan armchair drawer cabinet safe shelf"),
    "cellphone": (
        "bed desk diningtable ottoman dresser coffeetable tvstand countertop sofa safe "
        "sidetable armchair shelf drawer"
    ),
    "cloth": (
        "bathtubbasin cart countertop cabinet dresser sinkbasin drawer toilet shelf sidetable"
    ),
    "creditcard": (
        "desk dresser diningtable tvstand sofa countertop coffeetable sidetable "
        "armchair ottoman shelf drawer"
    ),
    "cup": "fridge diningtable sidetable sinkbasin countertop microwave shelf cabinet",
    "desklamp": "sidetable desk dresser coffeetable shelf",
    "dishsponge": (
        "bathtubbasin diningtable cart countertop toilet sinkbasin sidetable garbagecan "
        "shelf drawer cabinet"
    ),
    "egg": "fridge diningtable sidetable sinkbasin garbagecan microwave countertop",
    "floorlamp": "sinkbasin",
    "fork": "diningtable countertop sidetable sinkbasin drawer",
    "glassbottle": "diningtable countertop sinkbasin fridge garbagecan shelf cabinet",
    "handtowel": "handtowelholder countertop",
    "kettle": "diningtable stoveburner countertop cabinet sinkbasin",
    "keychain": (
        "desk safe dresser coffeetable diningtable tvstand sidetable ottoman sofa "
        "armchair drawer shelf countertop cabinet"
    ),
    "knife": "diningtable countertop sidetable sinkbasin drawer",
    "ladle": "diningtable countertop drawer sinkbasin cabinet",
    "laptop": (
        "bed countertop diningtable desk coffeetable sofa ottoman dresser tvstand "
        "armchair sidetable"
    ),
    "lettuce": "diningtable fridge countertop sidetable sinkbasin garbagecan",
    "mug": (
        "desk dresser coffeemachine diningtable fridge sidetable countertop microwave "
        "sinkbasin shelf cabinet"
    ),
    "newspaper": ("diningtable dresser coffeetable sofa ottoman tvstand sidetable armchair shelf"),
    "pan": "countertop stoveburner diningtable fridge",
    "papertowelroll": "diningtable toilet sidetable countertop cart garbagecan shelf",
    "pen": (
        "diningtable desk coffeetable dresser countertop sidetable tvstand shelf drawer garbagecan"
    ),
    "pencil": (
        "diningtable desk coffeetable dresser sidetable countertop tvstand shelf garbagecan drawer"
    ),
    "peppershaker": "diningtable sidetable countertop shelf drawer cabinet",
    "pillow": "bed sofa armchair ottoman",
    "plate": (
        "diningtable coffeetable countertop tvstand fridge dresser sidetable shelf "
        "cabinet sinkbasin"
    ),
    "pot": "stoveburner countertop diningtable fridge shelf",
    "potato": "fridge diningtable countertop sidetable sinkbasin microwave garbagecan",
    "remotecontrol": (
        "desk countertop coffeetable tvstand dresser diningtable sofa ottoman sidetable "
        "armchair drawer shelf"
    ),
    "saltshaker": "diningtable sidetable countertop shelf drawer cabinet",
    "soapbar": (
        "sidetable countertop bathtubbasin cart toilet sinkbasin shelf garbagecan cabinet drawer"
    ),
    "soapbottle": ("diningtable dresser toilet countertop sidetable cart garbagecan shelf cabinet"),
    "spatula": "diningtable countertop sinkbasin sidetable drawer",
    "spoon": "diningtable countertop sidetable sinkbasin drawer",
    "spraybottle": (
        "sidetable cart toilet countertop dresser diningtable shelf garbagecan cabinet"
    ),
    "statue": "diningtable desk coffeetable tvstand dresser countertop sidetable shelf",
    "teddybear": "bed",
    "tissuebox": (
        "desk coffeetable countertop diningtable cart tvstand shelf sidetable dresser "
        "cabinet drawer toilet garbagecan"
    ),
    "toiletpaper": (
        "toilet countertop dresser sidetable cart toiletpaperhanger shelf garbagecan cabinet drawer"
    ),
    "tomato": "fridge diningtable sidetable countertop garbagecan sinkbasin",
    "towel": "towelholder countertop",
    "vase": ("dresser coffeetable diningtable desk countertop tvstand shelf sidetable cabinet"),
    "watch": "desk tvstand diningtable dresser coffeetable sidetable drawer shelf",
    "wateringcan": "shelf coffeetable sidetable",
    "winebottle": "diningtable countertop garbagecan shelf cabinet fridge sidetable",
}

LIKELY_PLACES: Mapping[str, tuple[str, ...]] = {
    thing: tuple(places.split()) for thing, places in _PLACES.items()
}
"""Words without numbers: `"mug": ("desk", "coffeemachine", ...)`."""
