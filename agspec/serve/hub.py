"""What an API server process knows: profiles, sessions, and the way to the engine's workers.

The request path classifies and links, nothing more. Finding, tokenising and pushing opened files happens behind it, in
order, in one task: a file reaches the stores while its request is prefilled.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from uuid import uuid4

import orjson

from agspec.draft.emission import Form
from agspec.engine.config import REQUEST, ROLE, SESSION, TENANT
from agspec.latest import Latest
from agspec.messages import Message, digest
from agspec.opened import OpenFile, open_file, open_files
from agspec.scaffold import Match, Profiles, Scaffold, ToolWire
from agspec.serve.answers import read_answer
from agspec.serve.bodies import CHAT, Asked, predicted
from agspec.serve.config import ServeConfig
from agspec.serve.exchange import Exchange, Reader
from agspec.serve.recorder import Recorder
from agspec.serve.sessions import Session, Sessions
from agspec.serve.speaker import tenant_of
from agspec.serve.usage import Fate
from agspec.serve.workspace import Workspace
from agspec.tokens import Tokenizer

log = logging.getLogger("agspec")

Rpc = Callable[[str, tuple[Any, ...]], Awaitable[Any]]
"""Method of the worker extension and its arguments -> what the workers answered."""
FILES_A_MESSAGE = 16
"""Of the working copy, named by one message, that are read."""
OWN = "route "
"""Begins the names of sessions that are one request's own."""
OURS = "agspec_"
"""Keys of ``vllm_xargs`` that clients may not set."""
MESSAGES_REMEMBERED = 1 << 16
"""Messages whose files were pushed, over all tenants."""
LOOK_S = 10.0
"""Seconds between two looks at the workers' statistics."""
STRAYED = (0.6, 1.3)
"""Accepted tokens over foretold ones beyond which the odds no longer hold."""
WAITING = 1000
"""Jobs that may wait for the engine; more, and opened files are left out and counted."""
LONGEST_TOKEN = 16
"""Characters of a token at most, on average: text beyond the model's context times this is left out."""


@dataclass(frozen=True)
class Ticket:
    """``key``: the request's name for the engine; ``extra_args``: what goes along with it."""

    key: str
    extra_args: dict[str, Any]


class Hub:
    """The state of one API server process."""

    def __init__(
        self,
        config: ServeConfig,
        *,
        profiles: Profiles,
        tokenizer: Tokenizer,
        tool_wire: ToolWire,
        rpc: Rpc,
        max_model_len: int,
        secret: str = "",
        workspace: Workspace | None = None,
        recorder: Recorder | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.errors: Counter[str] = Counter()
        self.links: Counter[str] = Counter()
        self.num_dropped_jobs = 0
        self._num_running_jobs = 0
        self.stats: list[dict[str, Any]] = []
        self._tokenizer = tokenizer
        self.tool_wire = tool_wire
        self._rpc = rpc
        self._most_characters = LONGEST_TOKEN * max_model_len
        self._secret = secret
        self._workspace = workspace
        self._recorder = recorder
        self._jobs: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._pushed: Latest[bytes, None] = Latest(MESSAGES_REMEMBERED)
        self.tasks: list[asyncio.Task[None]] = []
        self.sessions = Sessions(max_age_s=60 * config.session_minutes, clock=clock, ended=self._close)
        self._reader = Reader(profiles, self.sessions, config.scaffold)

    async def run(self) -> None:
        """Do the waiting jobs, one after the other, for ever."""
        while True:
            job = await self._jobs.get()
            self._num_running_jobs = 1
            with self._guarded("job"):
                await job()
            self._num_running_jobs = 0
            self._jobs.task_done()

    async def watch(self, every_s: float = LOOK_S) -> None:
        """Keep the statistics fresh, for ever, and say once when the odds no longer hold."""
        told, evicted = False, 0
        while True:
            await asyncio.sleep(every_s)
            with self._guarded("statistics"):
                await self.refresh()
            if not self.stats:
                continue
            stats = self.stats[0]
            lost = stats.get("stores", {}).get("workspace", {}).get("num_evicted_tokens", 0)
            if lost != evicted:
                evicted = lost
                self._pushed.clear()
            drift = stats.get("drift")
            if drift is not None and not told and not STRAYED[0] <= drift <= STRAYED[1]:
                told = True
                log.warning("agspec: %.0f%% of the foretold tokens are accepted: calibrate again", 100 * drift)

    @property
    def num_waiting_jobs(self) -> int:
        """Jobs not yet done, the one under way included."""
        return self._jobs.qsize() + self._num_running_jobs

    async def settled(self) -> None:
        """Until no job waits."""
        await self._jobs.join()

    def receive(self, path: str, headers: Mapping[str, str], content: bytes) -> Exchange | None:
        """Read a request; None where there is nothing to read: it is left to vLLM as it came. Raises BadRequest."""
        try:
            body = orjson.loads(content)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(body, dict):
            return None
        expected = predicted(body) if path == CHAT else None
        with self._guarded("request"):
            tenant = tenant_of(headers, share=self.config.share_tenants)
            exchange = self._reader.exchange(path, headers, content, body, tenant=tenant)
            session, match = exchange.session, exchange.match
            self.links[exchange.link] += 1
            session.scaffold = match.scaffold.name
            session.roles[match.role] += 1
            self._push(tenant, match, exchange.asked)
            if body.get("suffix") == "":
                del body["suffix"]  # vLLM 0.32 refuses it: nothing after the cursor is no suffix (vllm#9976)
            ticket = self._ticket(session.name, tenant, match.role)
            key = ticket.key
            theirs = body.get("vllm_xargs")
            kept = {k: v for k, v in theirs.items() if not k.startswith(OURS)} if isinstance(theirs, dict) else {}
            body["vllm_xargs"] = {**kept, **ticket.extra_args}
            if expected:
                self._add(lambda: self._expect(key, expected[: self._most_characters]))
            return replace(exchange, body=orjson.dumps(body), key=key, predicted=bool(expected))
        return None

    def answered(self, exchange: Exchange, content: bytes, *, status: int, streamed: bool, whole: bool) -> None:
        """The response to an exchange has ended. ``whole``: the client took all of it and all of it was kept."""
        complete = False
        with self._guarded("answer"):
            if status == 200 and whole:
                answer = read_answer(exchange.path, content, streamed=streamed)
                complete = answer.complete
                if complete:
                    self.sessions.answered(exchange.session, answer.messages)
                    if self._recorder is not None and exchange.asked.messages:
                        self._add(lambda: self._record(exchange, answer.messages))
        self._jobs.put_nowait(lambda: self._call("agspec_ended", exchange.key, complete))

    def ticket(self, headers: Mapping[str, str], *, role: str, session: str | None = None) -> Ticket:
        """What the engine is told of a request by a route of ours: its session is ``session``, or one of its own."""
        name = f"{OWN}{uuid4().hex}" if session is None else session
        return self._ticket(name, tenant_of(headers, share=self.config.share_tenants), role)

    def open_text(self, tenant: str, path: str, text: str) -> None:
        """A file that a client has open, as it is now, is drafted from."""
        told = digest(tenant, path, text)
        if told not in self._pushed and len(text) <= self._most_characters:
            self._pushed[told] = None
            self._add(lambda: self._open_text(tenant, path, text))

    async def _open_text(self, tenant: str, path: str, text: str) -> None:
        file = await asyncio.to_thread(open_file, path, text, (Form(),), self._tokenizer)
        await self._call("agspec_open_file", tenant, list(file.key), [form.tobytes() for form in file.forms])

    def _ticket(self, session: str, tenant: str, role: str) -> Ticket:
        key = f"{self._secret}{uuid4().hex}"
        return Ticket(key, {SESSION: session, TENANT: tenant, ROLE: role, REQUEST: key})

    def ticket_ended(self, ticket: Ticket, *, complete: bool) -> None:
        """Its answer has ended; ``complete``: the client took all of it. A session of its own goes with it."""
        self._jobs.put_nowait(lambda: self._call("agspec_ended", ticket.key, complete))
        session, tenant = ticket.extra_args[SESSION], ticket.extra_args[TENANT]
        if session.startswith(OWN):
            self._jobs.put_nowait(lambda: self._call("agspec_close_session", session, tenant))

    async def fate(self, exchange: Exchange) -> Fate | None:
        """What became of the request's prediction, when its answer is about to end; None where it had none."""
        if exchange.predicted:
            with self._guarded("prediction"):
                found = (await self._rpc("agspec_prediction", (exchange.key,)))[0]
                return None if found is None else (found[0], found[1])
        return None

    async def refresh(self) -> list[dict[str, Any]]:
        """The workers' statistics, newly asked for."""
        found = await self._rpc("agspec_stats", ())
        self.stats = [{key: value for key, value in worker.items() if key != "drafts"} for worker in found]
        return self.stats

    def _push(self, tenant: str, match: Match, asked: Asked) -> None:
        if sum(len(message.content) for message in asked.messages) > self._most_characters:
            return  # vLLM refuses it
        forms = match.forms(self.tool_wire)
        told = digest(tenant, match.scaffold.name, *(form.name for form in forms))
        new = []
        for message, said in zip(asked.messages, asked.digests, strict=True):
            if message.role != "assistant":
                if told + said not in self._pushed:
                    new.append(message)
                self._pushed[told + said] = None
        if new:
            self._add(lambda: self._open(tenant, match.scaffold, forms, new))

    async def _record(self, exchange: Exchange, answers: list[Message]) -> None:
        assert self._recorder is not None
        for answer in answers:
            await asyncio.to_thread(self._recorder.add, exchange.session.tenant, exchange.call(answer))

    async def _expect(self, key: str, output: str) -> None:
        tokens = await asyncio.to_thread(self._tokenizer.encode, output)
        await self._call("agspec_expect", key, tokens.tobytes())

    async def _open(self, tenant: str, scaffold: Scaffold, forms: tuple[Form, ...], messages: list[Message]) -> None:
        for message in messages:
            for file in await asyncio.to_thread(self._files, scaffold, forms, message):
                await self._call("agspec_open_file", tenant, list(file.key), [form.tobytes() for form in file.forms])

    def _files(self, scaffold: Scaffold, forms: tuple[Form, ...], message: Message) -> list[OpenFile]:
        """The files a message shows, and those of the working copy it names, as they are now."""
        shown = open_files(scaffold, forms, message, self._tokenizer)
        if self._workspace is None:
            return list(shown)
        named = list(islice(self._workspace.named(message.content), FILES_A_MESSAGE))
        read = [(path, self._workspace.read(path)) for path in named]
        real = [open_file(path, text, forms, self._tokenizer) for path, text in read if text is not None]
        instead = {file.key[0] for file in real}
        return [*real, *(file for file in shown if not any(f"/{file.key[0]}".endswith(f"/{path}") for path in instead))]

    def _close(self, session: Session) -> None:
        if self._recorder is not None:
            self._recorder.forget(session.tenant, session.name)
        self._jobs.put_nowait(lambda: self._call("agspec_close_session", session.name, session.tenant))

    async def _call(self, method: str, *args: Any) -> None:
        await self._rpc(method, args)

    def _add(self, job: Callable[[], Awaitable[None]]) -> None:
        """A job that may be left out when too many wait."""
        if self._jobs.qsize() < WAITING:
            self._jobs.put_nowait(job)
        else:
            self.num_dropped_jobs += 1
            self._pushed.clear()

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """The one broad except of the API side: whatever goes wrong costs a link or a draft, and is told once."""
        try:
            yield
        except Exception as error:
            if not self.errors[what]:
                log.exception("agspec: %s failed (%s); serving goes on without it", what, error)
            self.errors[what] += 1
