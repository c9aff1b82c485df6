"""`hiera-mcp contract build FILE`: a contract from a reference, and its files on disk; or those of all of KernelBench."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import anyio

from hiera_mcp.cli import kernelbench
from hiera_mcp.cli.connection import local
from hiera_mcp.cli.options import add_json, add_settings, settings_of
from hiera_mcp.cli.output import ProgressLine
from hiera_mcp.cli.report import contract_lines
from hiera_mcp.client.batch import Options
from hiera_mcp.client.folder import task_name
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
    build.add_argument("file", type=Path, nargs="?", help="the reference: Model, get_inputs, get_init_inputs")
    build.add_argument("--target", default="auto", help="cpu, cuda:sm_80, cuda:sm_90a, … (default: what is present)")
    build.add_argument("--precision", choices=get_args(Precision), default="float32", help="(default: float32)")
    build.add_argument("--out", type=Path, metavar="DIR", help="write the contract's files into this folder")
    kernelbench.add_arguments(build)


def run(args: argparse.Namespace) -> int:
    if (args.file is None) == (args.kernelbench is None):
        raise RequestError("Name one of a reference file and --kernelbench PATH.")
    if args.kernelbench is not None:
        return kernelbench.run(args, settings_of(args), Options(target=args.target, precision=args.precision))
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
            name=task_name(args.file),
            target=args.target,
            precision=args.precision,
        )
        progress.clear()
        contract = ContractView.model_validate(answer["contract"])
        texts = {name: await session.read(uri) for name, uri in contract.files.items()} if args.out else {}
    written = write(texts, args.out) if args.out else []
    _show(answer, contract, written, args.json)
    return 0


def write(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """The contract's files, in a folder that is made when it is missing."""
    paths = {folder / Path(name).name: text for name, text in texts.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            path.write_text(text)
    except OSError as error:
        what = f"The contract's files cannot be written to {folder}: {error.strerror or error}."
        raise RequestError(what, todo="Name another folder with --out.") from error
    return list(paths)


def _show(answer: Answer, contract: ContractView, written: list[Path], as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer["contract"], indent=2))
        return
    print("\n".join([*contract_lines(contract), *(f"  note: {n}" for n in contract.notes)]))
    print(f"  write {contract.source_file}; spaces: {', '.join(contract.spaces)}")
    for path in written:
        print(f"  {path}")
