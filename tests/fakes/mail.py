"""A mail server that keeps what it is sent. It speaks as much SMTP as a client without sign-in needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default


@dataclass(frozen=True)
class Mail:
    """One message as it was handed over."""

    recipients: tuple[str, ...]
    message: Message


@dataclass
class MailServer:
    """Takes mail for everyone at ``example.com`` and refuses other places."""

    port: int = 0
    received: list[Mail] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    """Everyone for whom anything was offered, refused ones too."""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it leaves."""
        recipients: list[str] = []
        await _say(writer, "220 ready")
        while line := (await reader.readline()).decode().strip():
            match line.partition(":")[0].upper().split():
                case ["RCPT", "TO"]:
                    name = line.partition("<")[2].partition(">")[0]
                    self.asked.add(name)
                    is_ours = name.endswith("@example.com")
                    recipients += [name] if is_ours else []
                    await _say(writer, "250 good" if is_ours else "550 not here")
                case ["DATA"] if recipients:
                    await _say(writer, "354 go on")
                    raw = await reader.readuntil(b"\r\n.\r\n")
                    message = message_from_bytes(raw.removesuffix(b".\r\n"), policy=default)
                    self.received.append(Mail(tuple(recipients), message))
                    recipients.clear()
                    await _say(writer, "250 taken")
                case ["QUIT"]:
                    await _say(writer, "221 bye")
                    break
                case ["EHLO" | "HELO", *_] | ["MAIL", "FROM"] | ["RSET"]:
                    await _say(writer, "250 good")
                case _:
                    await _say(writer, "502 not spoken here")
        writer.close()
        await writer.wait_closed()


async def _say(writer: asyncio.StreamWriter, line: str) -> None:
    writer.write(f"{line}\r\n".encode())
    await writer.drain()


@asynccontextmanager
async def mail_server() -> AsyncIterator[MailServer]:
    """Serve it at a free port of this machine."""
    found = MailServer()
    server = await asyncio.start_server(found.talk, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found
