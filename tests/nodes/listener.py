"""Accepts connections at ports of every address: `python listener.py PORT…`.

Shell: listens.
"""

from __future__ import annotations

import asyncio
import sys


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


async def main() -> None:
    for port in sys.argv[1:]:
        await asyncio.start_server(_greet, "0.0.0.0", int(port))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
