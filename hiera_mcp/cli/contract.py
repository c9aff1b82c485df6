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
from hiera_mcp.cli.report import specification_lines
from hiera_mcp.client.batch import Options
from hiera_mcp.client.folder import task_name
from hiera_mcp.client.report import ContractView
from hiera_mcp.client.session import Answer, Session
from hiera_mcp.errors import RequestError
from hiera_mcp.model.contract import Precision
from hiera_mcp.settings import Settings

INPUTS = (
    "example inputs of the function, repeatable for several shape cases: "
    "'small = x: float32[64, 96], index: int64[64] < 96, alpha: 0.5' (a single case needs no name)"
)
COMPARE = (
    "a function of the reference file that judges outputs: NAME(outputs, expected), two lists of tensors, gives the "
    "greatest error as a multiple of what is allowed, or True or False"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build a contract from a file in KernelBench format")
    add_settings(build)
    add_json(build)
    build.add_argument(
        "file", nargs="?", help="the reference: Model, get_inputs, get_init_inputs; or FILE:FUNCTION, a plain function"
    )
    build.add_argument("--target", default="auto", help="cpu, cuda:sm_80, cuda:sm_90a, … (default: what is present)")
    build.add_argument("--precision", choices=get_args(Precision), default="float32", help="(default: float32)")
    build.add_argument("--out", type=Path, metavar="DIR", help="write the contract's files into this folder")
    build.add_argument("--inputs", action="append", metavar="TEXT", help=INPUTS)
    build.add_argument("--rtol", type=float, help="own tolerance, relative to each element")
    build.add_argument("--atol", type=float, help="own tolerance, times the output's root mean square")
    build.add_argument("--compare", metavar="NAME", help=COMPARE)
    kernelbench.add_arguments(build)


def run(args: argparse.Namespace) -> int:
    if (args.file is None) == (args.kernelbench is None):
        raise RequestError("Name one of a reference file and --kernelbench PATH.")
    if args.kernelbench is not None:
        return kernelbench.run(args, settings_of(args), _options(args))
    path, function = split_function(args.file)
    if not path.is_file():
        raise RequestError(f"There is no file {path}.", todo="Name a reference in KernelBench format.")
    return anyio.run(_build, args, path, function, settings_of(args))


def _options(args: argparse.Namespace) -> Options:
    if args.inputs:
        raise RequestError("--inputs belong to FILE:FUNCTION.", todo="Tasks of KernelBench draw their own.")
    return Options(**{name: getattr(args, name) for name in Options.model_fields})


def split_function(text: str) -> tuple[Path, str | None]:
    """`file.py:function` → both; a path that exists, or ends in no identifier, is a path."""
    path, _, function = text.rpartition(":")
    if path and function.isidentifier() and not Path(text).exists():
        return Path(path), function
    return Path(text), None


async def _build(args: argparse.Namespace, path: Path, function: str | None, settings: Settings) -> int:
    progress = ProgressLine()

    async def tell(message: str, fraction: float | None) -> None:
        progress.show(message, fraction)

    async with local(settings) as client:
        session = Session(client, tell)
        answer = await session.work(
            "hiera_contract_build",
            source=path.read_text(),
            name=function or task_name(path),
            target=args.target,
            precision=args.precision,
            function=function,
            inputs=args.inputs,
            rtol=args.rtol,
            atol=args.atol,
            compare=args.compare,
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
    print("\n".join(specification_lines(contract)))
    print(f"  write {contract.source_file}; spaces: {', '.join(contract.spaces)}")
    for path in written:
        print(f"  {path}")
