"""Facts about GPUs: one TOML file each in `hardware/`, with its sources. Nominal rates; measured ones take precedence."""

import tomllib
from functools import cache
from importlib.resources import files

from pydantic import ValidationError

from hiera_mcp.errors import RequestError
from hiera_mcp.model.base import Model, Text
from hiera_mcp.model.hardware import Gpu, Peaks
from hiera_mcp.model.space import Target


class HardwareRow(Model):
    """One file of `hardware/`: the GPU, the names it goes by, and the targets for which it is the default."""

    gpu: Gpu
    slug: Text
    """The file's name, for example `h100-sxm`."""
    aliases: tuple[Text, ...]
    default_for: tuple[Target, ...]
    notes: str


def parse_hardware(slug: str, text: str) -> HardwareRow:
    """The row in a TOML text. Raises RequestError that names the field at fault."""
    try:
        data = tomllib.loads(text)
        own = {key: data.pop(key) for key in ("aliases", "default_for", "notes")}
        return HardwareRow(gpu=Gpu.model_validate(data), slug=slug, **own)
    except (tomllib.TOMLDecodeError, KeyError, ValidationError) as error:
        raise RequestError(f"{slug} is not a hardware table: {error}", todo="Correct the TOML file.") from error


@cache
def rows() -> tuple[HardwareRow, ...]:
    """All hardware tables, by file name."""
    folder = files("hiera_mcp").joinpath("knowledge_base", "hardware")
    tables = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return tuple(parse_hardware(f.name.removesuffix(".toml"), f.read_text(encoding="utf-8")) for f in tables)


def gpus() -> tuple[Gpu, ...]:
    """All GPUs known."""
    return tuple(row.gpu for row in rows())


def gpu_for(target: Target, device_name: str | None = None) -> Gpu:
    """The GPU that a driver calls `device_name`, or without a name the default one of the target.

    A name may also be an alias or a slug (`H200`, `h100-sxm`); case does not matter. The device may be newer than the
    target, for code that runs through its PTX. Raises RequestError listing the valid names.
    """
    if device_name is not None:
        return named(device_name).gpu
    for row in rows():
        if target in row.default_for:
            return row.gpu
    valid = [t for row in rows() for t in row.default_for]
    raise RequestError(
        f"No hardware table for target {target}.", todo="Name a device, or use a known target.", valid=valid
    )


def named(name: str) -> HardwareRow:
    """The row of a GPU by driver name, alias or slug. Raises RequestError listing the valid names."""
    wanted = _plain(name)
    for row in rows():
        if wanted in {_plain(n) for n in (row.gpu.name, row.slug, *row.aliases)}:
            return row
    raise RequestError(f"No hardware table for a GPU named {name!r}.", valid=[row.gpu.name for row in rows()])


def peaks(gpu: Gpu) -> Peaks:
    """What a floor is computed from: the nominal bandwidth and rates of the table."""
    return Peaks(
        bandwidth=gpu.bandwidth,
        flops=dict(gpu.peak_flops),
        basis=f"nominal rates of {gpu.name} (dense) from the hardware table; not measured on this host",
    )


def _plain(name: str) -> str:
    """Case, blanks, hyphens and the vendor's name do not distinguish GPUs."""
    return "".join(c for c in name.lower().removeprefix("nvidia") if c.isalnum())
