"""That unit tests reach no network is itself tested."""

import socket
from pathlib import Path
from threading import Thread

import pytest
from forked_commands import SERVER, Forker, short_path
from pytest_socket import SocketConnectBlockedError


def test_a_connection_to_another_machine_is_refused():
    with pytest.raises(SocketConnectBlockedError), socket.socket() as one:
        one.connect(("192.0.2.1", 80))


def test_the_server_of_forked_commands_is_reached_where_tmpdir_is_longer_than_an_address_of_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening, short_path(str(folder)) as short:
        listening.bind(f"{short}/ours")
        listening.listen()
        Thread(target=lambda: listening.accept()[0].sendall(b"7\n"), daemon=True).start()
        monkeypatch.setenv(SERVER, str(folder))
        assert Forker("ours").pid == 7
