"""That unit tests reach no network is itself tested."""

import socket

import pytest
from pytest_socket import SocketConnectBlockedError


def test_a_connection_to_another_machine_is_refused():
    with pytest.raises(SocketConnectBlockedError), socket.socket() as one:
        one.connect(("192.0.2.1", 80))
