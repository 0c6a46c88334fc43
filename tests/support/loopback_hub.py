"""A Hub in memory on 127.0.0.1, with as much of the protocol as push_to_hub and from_pretrained use.

Each branch keeps its last commit only; `user/repo@name` is a branch other than main. Files that end in `.safetensors`
go through LFS, the others come with the commit, so that both ways are taken. Clients are other processes, started with
`HF_ENDPOINT` set to `LoopbackHub.endpoint` and `HF_HUB_DISABLE_XET=1`, as huggingface_hub reads both at import.
"""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

MAX_BODY_SIZE = 2**26
IDLE_SECONDS = 30  # after which a connection is closed
REPO, REVISION = r"(?P<repo>[^/]+/[^/]+)", r"(?P<revision>[^/]+)"
# The method of HubRequest that answers, and the requests that it answers.
ROUTES = {
    "create": r"POST /api/repos/create",
    "accept": r"POST /api/validate-yaml|POST /lfs/verify",
    "preupload": rf"POST /api/models/{REPO}/preupload/{REVISION}",
    "branch": rf"POST /api/models/{REPO}/branch/(?P<name>.+)",
    "lfs_batch": rf"POST /{REPO}\.git/info/lfs/objects/batch",
    "lfs_upload": r"PUT /lfs/(?P<oid>\w{64})",
    "commit": rf"POST /api/models/{REPO}/commit/{REVISION}",
    "info": rf"GET /api/models/{REPO}(?:/revision/{REVISION})?",
    "tree": rf"GET /api/models/{REPO}/tree/{REVISION}(?:/(?P<folder>.+))?",
    "resolve": rf"(?:GET|HEAD) /{REPO}/resolve/{REVISION}/(?P<path>.+)",
}


class LoopbackHub(ThreadingHTTPServer):
    """The server; it runs while its `with` block does.

    Attributes:
        repos: For each repository its files, by path.
        blobs: What was uploaded through LFS, by SHA-256.
        unknown: Requests that no route answers; a test asserts that there are none.
        refusals: The status with which repositories of an owner are refused.

    Example:
        >>> with LoopbackHub() as hub:
        ...     hub.endpoint.startswith("http://127.0.0.1:")
        True
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubRequest)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.repos: dict[str, dict[str, bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.unknown: list[str] = []
        self.refusals: dict[str, int] = {}

    def __enter__(self) -> "LoopbackHub":
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.shutdown()
        self.server_close()

    def head(self, repo: str) -> str:
        """Returns the id of a repository's last commit: 40 hexadecimal digits that depend on its files."""
        files = sorted((path, digest(data)) for path, data in self.repos[repo].items())
        return digest(json.dumps([repo, files]).encode())[:40]

    def find_branch(self, repo: str, revision: str) -> str | None:
        """Returns the branch with this name or last commit."""
        branches = [name for name in self.repos if name == repo or name.startswith(f"{repo}@")]
        return next((name for name in branches if revision in (name.partition("@")[2], self.head(name))), None)


class HubRequest(BaseHTTPRequestHandler):
    """One connection of a client."""

    server: LoopbackHub
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def route(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if size > MAX_BODY_SIZE:
            self.close_connection = True
            return self.refuse(413, "TooLarge")
        self.body = self.rfile.read(size)
        request = f"{self.command} {unquote(urlsplit(self.path).path)}"
        for name, pattern in ROUTES.items():
            if match := re.fullmatch(pattern, request):
                given = {key: value for key, value in match.groupdict().items() if value is not None}
                revision = given.pop("revision", "main")
                if "repo" in given and given["repo"] not in self.server.repos:
                    return self.refuse(404, "RepoNotFound")
                if revision != "main":
                    given["repo"] = self.server.find_branch(given["repo"], revision)
                    if given["repo"] is None:
                        return self.refuse(404, "RevisionNotFound")
                return getattr(self, name)(**given)
        self.server.unknown.append(request)
        self.refuse(404, "NoSuchRoute")

    do_GET = do_HEAD = do_POST = do_PUT = route

    def create(self) -> None:
        fields = json.loads(self.body)
        if status := self.server.refusals.get(fields["organization"]):
            return self.refuse(status, "Refused")
        repo = f"{fields['organization']}/{fields['name']}"
        status = 409 if repo in self.server.repos else 200
        self.server.repos.setdefault(repo, {})
        self.answer({"url": f"{self.server.endpoint}/{repo}"}, status)

    def branch(self, repo: str, name: str) -> None:
        status = 409 if f"{repo}@{name}" in self.server.repos else 201
        self.server.repos.setdefault(f"{repo}@{name}", dict(self.server.repos[repo]))
        self.answer({}, status)

    def accept(self) -> None:
        self.answer({"errors": [], "warnings": []})

    def preupload(self, repo: str) -> None:
        files = json.loads(self.body)["files"]
        for file in files:
            file["uploadMode"] = "lfs" if file["path"].endswith(".safetensors") else "regular"
            file["shouldIgnore"] = False
        self.answer({"files": files})

    def lfs_batch(self, repo: str) -> None:
        objects = json.loads(self.body)["objects"]
        for item in objects:
            actions = {"upload": item["oid"], "verify": "verify"}
            item["actions"] = {name: {"href": f"{self.server.endpoint}/lfs/{end}"} for name, end in actions.items()}
        self.answer({"transfer": "basic", "objects": objects})

    def lfs_upload(self, oid: str) -> None:
        if digest(self.body) != oid:
            return self.refuse(422, "WrongContent")
        self.server.blobs[oid] = self.body
        self.answer({})

    def commit(self, repo: str) -> None:
        files = self.server.repos[repo]
        for line in map(json.loads, self.body.splitlines()):
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            elif line["key"] == "lfsFile":
                files[line["value"]["path"]] = self.server.blobs[line["value"]["oid"]]
        head = self.server.head(repo)
        url = f"{self.server.endpoint}/{repo.partition('@')[0]}/commit/{head}"  # of the repository, not of the branch
        self.answer({"commitUrl": url, "commitOid": head})

    def info(self, repo: str) -> None:
        siblings = [{"rfilename": path} for path in self.server.repos[repo]]
        self.answer({"id": repo.partition("@")[0], "sha": self.server.head(repo), "siblings": siblings})

    def tree(self, repo: str, folder: str = "") -> None:
        files = {path: data for path, data in self.server.repos[repo].items() if path.startswith(folder)}
        if folder and not files:
            return self.refuse(404, "EntryNotFound")
        self.answer([{"type": "file", "path": path, "size": len(d), "oid": digest(d)} for path, d in files.items()])

    def resolve(self, repo: str, path: str) -> None:
        commit = {"X-Repo-Commit": self.server.head(repo)}
        data = self.server.repos[repo].get(path)
        if data is None:
            return self.refuse(404, "EntryNotFound", commit)
        self.send(200, data, commit | {"ETag": f'"{digest(data)}"'})

    def answer(self, value: Any, status: int = 200) -> None:
        self.send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def refuse(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        self.send(status, b"", {"X-Error-Code": code} | (headers or {}))

    def send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Says nothing, where the base class prints every request."""


def digest(data: bytes) -> str:
    """Returns the SHA-256 of a file's content, which LFS and the ETag name it by."""
    return hashlib.sha256(data).hexdigest()
