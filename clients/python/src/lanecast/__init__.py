"""A client of the lanecast content server.

    import lanecast

    with lanecast.Client.connect("127.0.0.1:9007") as client:
        orders = client.subscribe("orders", "/symbol = 'IBM' and /qty >= 5000")
        client.publish("orders", '{"symbol":"IBM","qty":7000}')
        for event in orders:
            print(event)

`lanecast.aio.Client` has the same words for asyncio.
"""

from . import aio
from .client import Client, Subscription
from .errors import (
    Closed,
    ConnectError,
    ConnectionLost,
    LanecastError,
    NameTaken,
    NoAnswer,
    OtherVersion,
    Overrun,
    ProtocolError,
    Refused,
)
from .session import VERSION as __version__
from .events import Current, Event, Message, OutOfFocus, Record, Resumed
from .settings import Settings

__all__ = [
    "Client",
    "Closed",
    "ConnectError",
    "ConnectionLost",
    "Current",
    "Event",
    "LanecastError",
    "Message",
    "NameTaken",
    "NoAnswer",
    "OtherVersion",
    "OutOfFocus",
    "Overrun",
    "ProtocolError",
    "Record",
    "Refused",
    "Resumed",
    "Settings",
    "Subscription",
    "__version__",
    "aio",
]
