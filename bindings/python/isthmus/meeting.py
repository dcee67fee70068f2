# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a shared ring meet: a Unix socket in a directory of one user. A reader that connects gets one
message: what the frames are, and the ring's descriptor with its files (SCM_RIGHTS). Another user's process gets nothing.
"""
from __future__ import annotations

import json
import os
import pathlib
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Sequence

from .errors import InUse, InvalidArgument, NotPermitted, PeerBrokeRules, PeerLost

_NAME, _VERSION, _MOST_BYTES, _MOST_FILES = 'python-ring', 1, 1 << 16, 16

Offer = Callable[[], 'tuple[dict[str, object], bytes, Sequence[int], Callable[[], None]]']


def socket_path(directory: str | os.PathLike[str]) -> pathlib.Path:
    """The socket in a directory, which is created for this user alone, or is refused where others may enter."""
    folder = pathlib.Path(directory)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.stat()
    if about.st_uid != os.getuid() or about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise NotPermitted(f'others may enter {folder}', 'a directory of this user alone (chmod 700), or one that does not '
                           'exist yet')
    return folder / _NAME


def _same_user(peer: socket.socket) -> bool:
    _, user, _ = struct.unpack('3i', peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize('3i')))
    return bool(user == os.getuid())


class Doorkeeper:
    """Sends `offer()` to every process of this user that connects, on a thread of its own. The last part of an offer is
    called when it was sent or not."""

    def __init__(self, directory: str | os.PathLike[str], offer: Offer) -> None:
        self._path = socket_path(directory)
        self._offer = offer
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._bind()
        except BaseException:
            self._listener.close()
            raise
        self._listener.settimeout(0.1)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name='isthmus-ring', daemon=True)
        self._thread.start()

    def _bind(self) -> None:
        if self._path.exists():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
                if probe.connect_ex(str(self._path)) == 0:
                    raise InUse(f'another process shares a ring at {self._path.parent}', 'another directory')
            self._path.unlink()   # of a process that is gone
        self._listener.bind(str(self._path))
        self._listener.listen(16)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                peer, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            with peer:
                peer.settimeout(1.0)
                if _same_user(peer):
                    self._send(peer)

    def _send(self, peer: socket.socket) -> None:
        from .errors import Error
        try:
            about, descriptor, files, sent = self._offer()
        except Error as refusal:   # no place left, or the ring is closed: the reader is told, and asks again or gives up
            try:
                peer.send(json.dumps({'version': _VERSION, 'refused': refusal.message}).encode())
            except OSError:
                pass
            return
        try:
            head = json.dumps({'version': _VERSION, **about}).encode()
            socket.send_fds(peer, [head + b'\n' + descriptor], list(files))
        except OSError:
            pass   # it went away; the ring notices by its files
        finally:
            sent()

    def stop(self) -> None:
        """Ends the thread and removes the socket."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._listener.close()
            if threading.current_thread() is not self._thread:
                self._thread.join(2)
            self._path.unlink(missing_ok=True)


def received(directory: str | os.PathLike[str], wait: float) -> tuple[dict[str, object], bytes, list[int]]:
    """What a doorkeeper sends: the description, the descriptor's bytes, and its files, which are the caller's. The other
    process may come later, by `wait` seconds."""
    path = pathlib.Path(directory) / _NAME
    until = time.monotonic() + wait
    while True:
        try:
            return _receive(path, max(until - time.monotonic(), 0.1))
        except (FileNotFoundError, ConnectionError) as problem:
            if time.monotonic() >= until:
                raise PeerLost(f'no process shares a ring at {directory}: {problem}',
                               'start isthmus.SharedRing(…, at=…) there first, or wait longer (connect=)') from None
            time.sleep(0.02)


def _receive(path: pathlib.Path, wait: float) -> tuple[dict[str, object], bytes, list[int]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(wait)
        peer.connect(str(path))
        if not _same_user(peer):
            raise NotPermitted(f'the process at {path} is of another user')
        try:
            message, files, _, _ = socket.recv_fds(peer, _MOST_BYTES, _MOST_FILES)
        except TimeoutError:
            raise ConnectionResetError('it did not answer') from None
    files = list(files)
    try:
        head, _, descriptor = message.partition(b'\n')
        if not head:
            raise ConnectionResetError('it closed the connection')
        about = json.loads(head)
        if not isinstance(about, dict) or about.get('version') != _VERSION:
            raise ValueError('another version')
        if 'refused' in about:
            raise ConnectionRefusedError(str(about['refused']))
    except ValueError as problem:
        _close(files)
        raise PeerBrokeRules(f'the message at {path} is none about a ring: {problem}', 'the same version of isthmus in both '
                             'processes') from None
    except BaseException:
        _close(files)
        raise
    return about, descriptor, files


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def checked_directory(at: str | os.PathLike[str]) -> str:
    if not os.fspath(at):
        raise InvalidArgument('an empty directory to meet at')
    return os.fspath(at)
