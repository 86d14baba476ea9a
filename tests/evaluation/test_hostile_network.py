"""Programs that want to talk to somebody; the listeners are the test's own."""

import pytest
from hostile import Check, Hostile, table


def silent(name: str, attempt: str, words: str = "PermissionError: [Errno 1]") -> Hostile:
    return Hostile(name=name, attempt=attempt, before="import socket", words=words, wall="calls")


@table(
    silent("TCP", "socket.create_connection(('127.0.0.1', TCP_PORT))"),
    silent("UDP", "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP_PORT))"),
    silent("a listener", "socket.create_server(('127.0.0.1', 0))"),
    silent("IPv6", "socket.socket(socket.AF_INET6)"),
    silent("a Unix socket", "socket.socket(socket.AF_UNIX).connect(FOLDER + '/socket')"),
    silent("an abstract Unix socket", "socket.socket(socket.AF_UNIX).connect(ABSTRACT)"),
    silent("a pair of sockets", "socket.socketpair()"),
    silent("netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
    silent("raw packets", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
    silent("the machine's host", "socket.socket(socket.AF_VSOCK)"),
    silent("a name", "socket.getaddrinfo('example.org', 80)", "gaierror"),
    silent(
        "a page", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1')", "URLError"
    ),
    silent("an event loop", "import asyncio\nasyncio.run(asyncio.sleep(0))"),
    silent("a pipe", "os.pipe()"),
    silent("a socket found open", "socket.socket(fileno=3)", "Error: [Errno"),
    silent("a message queue", "call(libc.msgget, 0, 0o1600)"),
    silent("a POSIX message queue", "call(libc.mq_open, b'/' + MARK.encode(), 0o102, 0o600, None)"),
    silent("a semaphore of System V", "call(libc.semget, 0, 1, 0o1600)"),
    silent("a socket of io_uring's", "call(425, 8, ctypes.create_string_buffer(120))"),
    silent("a message to nobody", "call(libc.sendto, 1, b'x', 1, 0, 0, 0)"),
    silent("a semaphore", "import multiprocessing\nmultiprocessing.Lock()", "Error: [Errno"),
)
def test_it_talks_to_nobody(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


def test_the_listeners_can_be_reached_without_walls(listeners: dict[str, object]) -> None:
    import socket

    assert isinstance(listeners["TCP_PORT"], int)
    socket.create_connection(("127.0.0.1", listeners["TCP_PORT"])).close()
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(str(listeners["ABSTRACT"]))
    with pytest.raises(OSError, match="refused"), socket.socket(socket.AF_UNIX) as ours:
        ours.connect("\0no such listener")
