"""The review page: a server on this machine alone, where annotators give verdicts apart from each other.

Whoever may open the page is who knows its address: it holds a random token, one an annotator, made anew at each start.
The server listens on the loopback address; other names than that are refused, so that no site can point its own name
here (DNS rebinding), and so are verdicts that another site's page sends (their Origin is not ours). Texts of items
reach the page as JSON and become text nodes, never markup.
"""

import hashlib
import json
import mimetypes
import re
import secrets
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.audit.items import RIGHT_TO_LEFT
from cultureval.audit.review.verdicts import CHOICES, LONGEST_NOTE, Reviewable, VerdictsFile
from cultureval.runtime.data.image_store import png_bytes, upright
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

PAGE = Path(__file__).parent / "page"
FILES = {"review.css": "text/css", "review.js": "text/javascript"}
LOOPBACK = "127.0.0.1"
MOST_BODY = 1 << 16
MOST_IMAGE, LONGEST_SIDE = 1 << 23, 2000  # bytes of a file that is shown as it is; pixels of what is shown else
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Desk:
    """One annotator's place: the token in its address, which nobody else knows, and where the verdicts go."""

    token: str
    file: VerdictsFile


def new_desk(folder: Path, annotator: str) -> Desk:
    """A desk with a new token; errors as of `VerdictsFile`."""
    return Desk(secrets.token_urlsafe(24), VerdictsFile(folder, annotator))


class Review:
    """The items, and what each annotator may see and say of them."""

    def __init__(self, items: Reviewable, desks: Sequence[Desk], reasons: bool) -> None:
        """Checks that earlier verdicts are on the items as they are now; `reasons` tells whether annotators see those.

        Raises:
            CulturevalError: A verdict is on another content of an item.
        """
        self.items = list(items)
        self.places = {item.id: place for place, (item, _) in enumerate(items)}
        self.desks = {_digest(desk.token): desk for desk in desks}
        self.reasons = reasons
        languages = Counter(item.written_in for item, _ in items)
        self.language = languages.most_common(1)[0][0]
        for desk in desks:
            for one in desk.file.last.values():
                place = self.places.get(one.item)
                if place is not None and self.items[place][0].hash != one.hash:
                    raise CulturevalError(f"{desk.file.path}: {one.item} has other content than when it was reviewed.")

    def desk(self, token: str) -> Desk | None:
        """The desk of a token."""
        return self.desks.get(_digest(token))

    def state(self, desk: Desk) -> dict[str, Any]:
        """What a page shows first: the annotator's own verdicts, and of the others nothing."""
        verdicts = [desk.file.last.get(item.id) for item, _ in self.items]
        return {
            "annotator": desk.file.annotator,
            "language": "ar" if self.language == "ar" else "en",
            "direction": "rtl" if self.language in RIGHT_TO_LEFT else "ltr",
            "verdicts": [one.verdict if one else "" for one in verdicts],
        }

    def shown(self, desk: Desk, place: int) -> dict[str, Any]:
        """One item with the annotator's own verdict and note."""
        item, reasons = self.items[place]
        own = desk.file.last.get(item.id)
        return {
            "item": item.id,
            "place": place,
            "subset": f"{item.benchmark or item.source}: {item.subset}",
            "context": item.context,
            "question": item.question,
            "options": list(item.options or item.answers),
            "gold": list(item.gold if item.form == "mcq" else range(len(item.answers))),
            "image": item.image_file is not None,
            "image_missing": item.images and item.image_file is None,
            "reasons": list(reasons) if self.reasons else [],
            "verdict": own.verdict if own else "",
            "note": own.note if own else "",
        }

    def save(self, desk: Desk, sent: Any) -> dict[str, Any]:
        """Writes a verdict; raises ValueError where what was sent is none."""
        if not isinstance(sent, dict) or sent.get("verdict") not in CHOICES or not isinstance(sent.get("item"), str):
            raise ValueError("no verdict")
        place, note = self.places.get(sent["item"]), sent.get("note", "")
        if place is None or not isinstance(note, str) or len(note) > LONGEST_NOTE:
            raise ValueError("no such item, or too long a note")
        item = self.items[place][0]
        desk.file.add(item.id, item.hash, sent["verdict"], note)
        return {"saved": sent["verdict"]}

    def done(self) -> dict[str, tuple[int, int]]:
        """Annotator -> (items with a verdict, items)."""
        ids = set(self.places)
        return {desk.file.annotator: (len(ids & set(desk.file.last)), len(ids)) for desk in self.desks.values()}


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "backslashreplace")).digest()


class _Pages:
    """The answers to requests; each checks first who asks."""

    def __init__(self, review: Review, port: int) -> None:
        self.review, self.port = review, port

    def desk(self, request: "Request") -> Desk:
        require_own_site(request, self.port)
        desk = self.review.desk(request.path_params["token"])
        if desk is None:
            raise _refusal(404)
        return desk

    def place(self, request: "Request") -> int:
        place = request.path_params["place"]
        if not re.fullmatch("[0-9]{1,9}", place) or int(place) >= len(self.review.items):
            raise _refusal(404)
        return int(place)

    async def page(self, request: "Request") -> "Response":
        self.desk(request)
        return _file(PAGE / "review.html", "text/html")

    async def asset(self, request: "Request") -> "Response":
        self.desk(request)
        name = request.path_params["name"]
        if name not in FILES:
            raise _refusal(404)
        return _file(PAGE / name, FILES[name])

    async def state(self, request: "Request") -> "Response":
        return _json(self.review.state(self.desk(request)))

    async def item(self, request: "Request") -> "Response":
        return _json(self.review.shown(self.desk(request), self.place(request)))

    async def image(self, request: "Request") -> "Response":
        self.desk(request)
        file = self.review.items[self.place(request)][0].image_file
        if file is None:
            raise _refusal(404)
        return _image_response(file)

    async def save(self, request: "Request") -> "Response":
        desk = self.desk(request)
        try:
            return _json(self.review.save(desk, json.loads(await body_of(request))))
        except (ValueError, RecursionError) as error:
            raise _refusal(400) from error


def _refusal(status: int) -> Exception:
    from starlette.exceptions import HTTPException

    return HTTPException(status)


def _json(value: Any) -> "Response":
    from starlette.responses import Response

    # Half a pair of surrogates, which UTF-8 has no bytes for, becomes the same JSON escape.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
    return Response(text, media_type="application/json", headers=HEADERS)


def _file(path: Path, media_type: str) -> "Response":
    from starlette.responses import Response

    return Response(path.read_bytes(), media_type=media_type, headers=HEADERS)


def _image_response(path: Path) -> "Response":
    """The file of an image; of a large one, a copy that is scaled down."""
    from starlette.responses import Response

    if path.stat().st_size <= MOST_IMAGE:
        return _file(path, mimetypes.guess_type(path.name)[0] or "application/octet-stream")
    picture = upright(path)
    picture = picture.convert("RGB") if picture.mode in ("P", "PA") else picture  # palettes' indices do not scale
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    return Response(png_bytes(picture), media_type="image/png", headers=HEADERS)


def review_app(review: Review, port: int) -> "Starlette":
    """The application, which answers to the loopback address and this port alone."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    pages = _Pages(review, port)
    routes = [
        Route("/{token}/", pages.page),
        Route("/{token}/state", pages.state),
        Route("/{token}/items/{place}", pages.item),
        Route("/{token}/items/{place}/image", pages.image),
        Route("/{token}/verdicts", pages.save, methods=["POST"]),
        Route("/{token}/{name}", pages.asset),
    ]
    return Starlette(routes=routes)


def require_own_site(request: "Request", port: int) -> None:
    """Refuses requests under another name than the loopback address, and of other sites' pages: 421, 403, 415."""
    host = request.headers.get("host", "")
    if host not in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
        raise _refusal(421)
    crossing = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    if crossing and request.headers.get("sec-fetch-mode") != "navigate":
        raise _refusal(403)
    if request.method not in ("GET", "HEAD"):
        if request.headers.get("origin") != f"http://{host}":
            raise _refusal(403)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise _refusal(415)


async def body_of(request: "Request") -> bytes:
    """The body of a request; raises ValueError where it is longer than 64 KiB."""
    parts = b""
    async for part in request.stream():
        parts += part
        if len(parts) > MOST_BODY:
            raise ValueError("too long")
    return parts


def listening(port: int) -> socket.socket:
    """A socket on the loopback address; port 0 takes a free one. CulturevalError if the port is taken."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((LOOPBACK, port))
        opened.listen()  # who opens the page before the server runs waits for it
    except OSError as error:
        opened.close()
        raise CulturevalError(f"The port {port} is taken ({error.strerror}): give another with --port.") from error
    return opened


def addresses(review: Review, port: int) -> Mapping[str, str]:
    """Annotator -> the address of the page."""
    return {desk.file.annotator: f"http://{LOOPBACK}:{port}/{desk.token}/" for desk in review.desks.values()}


def serve(review: Review, opened: socket.socket) -> None:
    """Answers until it is interrupted."""
    import uvicorn

    app = review_app(review, opened.getsockname()[1])
    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, proxy_headers=False, lifespan="off", ws="none"
    )
    uvicorn.Server(config).run(sockets=[opened])
