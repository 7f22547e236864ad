"""What stands around the model: the running service, a client of it, and who receives webhooks."""

import http.client
import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading
import time


# What only an answer to a list of items has.
ITEMS = {"failed", "annotationResponses", "statusResponses"}


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status, answer):
        super().__init__(f"{status}: {answer}")
        self.status = status
        self.code = answer.get("code")


class Cut(Exception):
    """The connection broke: what became of the request is not known."""


class Service:
    """The real binary on a folder of its own, or with a store in the database that BELLWETHER_MODEL_STORE
    leads to: an object of variables."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, pathlib.Path(folder)
        self.store = json.loads(os.environ.get("BELLWETHER_MODEL_STORE") or "{}")
        data = json.dumps(str(self.folder / "data"))
        (self.folder / "bellwether.toml").write_text(
            f'data_dir = {data}\ngrpc_listen = "127.0.0.1:0"\nrest_listen = "127.0.0.1:0"\n'
            '[egress]\nallow = ["127.0.0.0/8"]\n'
        )
        self.process = None
        self.port, self.grpc_port = None, None
        if self.store:
            self.store["BELLWETHER_STORE_SCHEMA"] += f"_{self.folder.name}"
            self.store["BELLWETHER_STORE_SECRET_KEY_FILE"] = str(self.folder / "data" / "secret.key")
            (self.folder / "data").mkdir()
            init = [self.binary, "store", "init", "--config", self.folder / "bellwether.toml"]
            init += ["--admin-key-file", self.folder / "data" / "admin.key"]
            subprocess.run(init, check=True, env=self.environment(), stdout=subprocess.DEVNULL)
        self.start()
        self.key = (self.folder / "data" / "admin.key").read_text().strip()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--config", self.folder / "bellwether.toml"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.environment(),
            )
        ready = self.process.stdout.readline()
        if not ready:
            raise SystemExit(f"the service does not start:\n{(self.folder / 'log').read_text()[-4000:]}")
        self.port, self.grpc_port = (int(json.loads(ready)[part].rsplit(":", 1)[1]) for part in ("rest", "grpc"))

    def environment(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BELLWETHER_")}
        return inherited | {"HOME": str(self.folder)} | self.store

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def make_client(self, name, role):
        command = [self.binary, "client", "create", name, "--role", role, "--data-dir", self.folder / "data"]
        made = subprocess.run(command, check=True, capture_output=True, text=True, env=self.environment())
        return made.stdout.strip()


class Client:
    """A connection with a key; each thread has its own."""

    def __init__(self, service, key):
        self.service, self.key = service, key
        self.connection, self.port = None, None

    def call(self, method, path, body=None):
        if self.connection is None or self.port != self.service.port:
            self.port = self.service.port
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        try:
            self.connection.request(method, path, json.dumps(body) if body is not None else "", headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.connection = None
            raise Cut from error
        body = json.loads(text)
        # A list of which every item is refused is answered with its items.
        if answer.status == 400 and not ITEMS.isdisjoint(body):
            return body
        if answer.status != 200:
            raise Refused(answer.status, body)
        return body


class Receiver:
    """Keeps what webhooks bring, by the id of the delivery."""

    def __init__(self):
        self.messages = {}
        self.wrong = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A small answer is not to wait for the next one.
            disable_nagle_algorithm = True

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                receiver.take(self.headers["webhook-id"], self.path.strip("/"), body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            # Connections that come while Python is busy are not refused.
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, *_):
                # A killed service hangs up in the middle.
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, number, destination, body):
        event = body["event"]
        message = (body["rule"]["name"], destination, event["occurrence_id"], body["clear"])
        # Of the event only whether it is the same is kept: a long walk sends many.
        known = self.messages.setdefault(number, (message, hash(json.dumps(event, sort_keys=True))))
        if known != (message, hash(json.dumps(event, sort_keys=True))):
            self.wrong.append(f"delivery {number} changed: {known} and {message}: {event}")

    def url(self, destination):
        return f"http://127.0.0.1:{self.server.server_address[1]}/{destination}"


def now_ms():
    return time.time_ns() // 1_000_000
