"""`hiera-mcp contract build FILE`: a contract from a reference, and its files on disk."""

import argparse
import json
from pathlib import Path
from typing import get_args

import anyio

from hiera_mcp.cli.connection import local
from hiera_mcp.cli.options import add_json, add_settings, settings_of
from hiera_mcp.cli.output import ProgressLine
from hiera_mcp.cli.report import contract_lines
from hiera_mcp.client.report import ContractView
from hiera_mcp.client.session import Answer, Session
from hiera_mcp.errors import RequestError
from hiera_mcp.model.contract import Precision
from hiera_mcp.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build a contract from a file in KernelBench format")
    add_settings(build)
    add_json(build)
    build.add_argument("file", type=Path)
    build.add_argument("--target", default="auto", help="cpu, cuda:sm_80, cuda:sm_90a, … (default: what is present)")
    build.add_argument("--precision", choices=get_args(Precision), default="float32")
    build.add_argument("--out", type=Path, metavar="DIR", help="write the contract's files into this folder")


def run(args: argparse.Namespace) -> int:
    if not args.file.is_file():
        raise RequestError(f"There is no file {args.file}.", todo="Name a reference in KernelBench format.")
    return anyio.run(_build, args, settings_of(args))


async def _build(args: argparse.Namespace, settings: Settings) -> int:
    progress = ProgressLine()

    async def tell(message: str, fraction: float | None) -> None:
        progress.show(message, fraction)

    async with local(settings) as client:
        session = Session(client, tell)
        answer = await session.work(
            "hiera_contract_build",
            source=args.file.read_text(),
            name=args.file.stem,
            target=args.target,
            precision=args.precision,
        )
        progress.clear()
        contract = ContractView.model_validate(answer["contract"])
        written = await _write(session, contract, args.out) if args.out else []
    _show(answer, contract, written, args.json)
    return 0


async def _write(session: Session, contract: ContractView, folder: Path) -> list[Path]:
    """The contract's files, in a folder that is made when it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for name, uri in contract.files.items():
        path = folder / Path(name).name
        path.write_text(await session.read(uri))
        paths.append(path)
    return paths


def _show(answer: Answer, contract: ContractView, written: list[Path], as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer["contract"], indent=2))
        return
    print("\n".join([*contract_lines(contract), *(f"  note: {n}" for n in contract.notes)]))
    print(f"  write {contract.source_file}; spaces: {', '.join(contract.spaces)}")
    for path in written:
        print(f"  {path}")
