"""What is on this machine: nothing that watches a run speaks to another."""

import ipaddress
import logging
from urllib.parse import urlsplit

HOST = "127.0.0.1"
log = logging.getLogger("brood")


def is_local(address: str) -> bool:
    """Whether ``host`` or ``host:port`` is the loopback's: its name, or one of its addresses."""
    try:
        host = urlsplit(f"//{address}").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
