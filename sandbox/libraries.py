"""Which libraries the `…_libraries` spaces can use on this host, and how to compile and link against each.

A library counts as installed when its header and its shared object lie in the same place: the CUDA toolkit, a wheel
in site-packages (SONAME-versioned files only, so `-l:libcublas.so.13`), or the system's folders.
"""

import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hiera_mcp.model.space import Target, is_cpu
from hiera_mcp.sandbox.isolation.box import Bind

TRIPLE = f"{os.uname().machine}-linux-gnu"


@dataclass(frozen=True)
class Known:
    """A library that the project knows how to find and recognise, installed or not."""

    name: str
    header: str
    """The header whose presence shows that it is installed."""
    files: tuple[str, ...]
    """Names of its shared object without `lib` and `.so…`, the preferred one first; empty: headers only."""
    headers: str
    """Pattern of the names under which its headers are included."""
    symbols: str
    """Pattern of its functions' names; empty for a library of headers."""
    install: str
    version: tuple[str, ...] = ()
    """Header that tells the version, then the macros."""


_CUDA = (
    Known(
        "cublas",
        "cublas_v2.h",
        ("cublas",),
        r"(nv|cu)blas(?!Lt)\w*\.h",
        r"cublas(?!Lt)\w+",
        "the CUDA toolkit's cuBLAS, or `pip install nvidia-cublas`",
        ("cublas_api.h", "CUBLAS_VER_MAJOR", "CUBLAS_VER_MINOR", "CUBLAS_VER_PATCH"),
    ),
    Known(
        "cublasLt",
        "cublasLt.h",
        ("cublasLt",),
        r"cublasLt\.h",
        r"cublasLt\w+",
        "the CUDA toolkit's cuBLAS, or `pip install nvidia-cublas`",
        ("cublas_api.h", "CUBLAS_VER_MAJOR", "CUBLAS_VER_MINOR", "CUBLAS_VER_PATCH"),
    ),
    Known(
        "cudnn",
        "cudnn.h",
        ("cudnn",),
        r"cudnn\w*\.h(pp)?",
        r"cudnn\w+",
        "cuDNN from NVIDIA's packages, or `pip install nvidia-cudnn-cu13`",
        ("cudnn_version.h", "CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"),
    ),
    Known(
        "cufft",
        "cufft.h",
        ("cufft",),
        r"(cufft\w*|cudalibxt)\.h",
        r"cufft\w+",
        "the CUDA toolkit's cuFFT, or `pip install nvidia-cufft`",
        ("cufft.h", "CUFFT_VER_MAJOR", "CUFFT_VER_MINOR", "CUFFT_VER_PATCH"),
    ),
    Known(
        "curand",
        "curand.h",
        ("curand",),
        r"curand\w*\.h",
        r"curand\w+",
        "the CUDA toolkit's cuRAND, or `pip install nvidia-curand`",
        ("curand.h", "CURAND_VER_MAJOR", "CURAND_VER_MINOR", "CURAND_VER_PATCH"),
    ),
    Known(
        "cusparse",
        "cusparse.h",
        ("cusparse",),
        r"cusparse(_v2)?\.h",
        r"cusparse(?!Lt)\w+",
        "the CUDA toolkit's cuSPARSE, or `pip install nvidia-cusparse`",
        ("cusparse.h", "CUSPARSE_VER_MAJOR", "CUSPARSE_VER_MINOR", "CUSPARSE_VER_PATCH"),
    ),
    Known(
        "cusparseLt",
        "cusparseLt.h",
        ("cusparseLt",),
        r"cusparseLt\.h",
        r"cusparseLt\w+",
        "`pip install nvidia-cusparselt-cu13`",
        ("cusparseLt.h", "CUSPARSELT_VER_MAJOR", "CUSPARSELT_VER_MINOR", "CUSPARSELT_VER_PATCH"),
    ),
    Known(
        "cusolver",
        "cusolverDn.h",
        ("cusolver",),
        r"cusolver\w*\.h",
        r"cusolver\w+",
        "the CUDA toolkit's cuSOLVER, or `pip install nvidia-cusolver`",
        ("cusolver_common.h", "CUSOLVER_VER_MAJOR", "CUSOLVER_VER_MINOR", "CUSOLVER_VER_PATCH"),
    ),
    Known(
        "cccl",
        "cub/cub.cuh",
        (),
        r"(cccl/)?(cub|thrust)/.*",
        "",
        "the CUDA toolkit's CCCL",
        ("cub/version.cuh", "CUB_VERSION"),
    ),
    Known(
        "cutlass",
        "cutlass/cutlass.h",
        (),
        r"(cutlass|cute)/.*",
        "",
        "`pip install nvidia-cutlass`",
        ("cutlass/version.h", "CUTLASS_MAJOR", "CUTLASS_MINOR", "CUTLASS_PATCH"),
    ),
)

_CPU = (
    Known(
        "blas",
        "cblas.h",
        ("openblas", "scipy_openblas", "cblas", "blas"),
        r"(cblas|f77blas|lapacke?|openblas_config)\w*\.h",
        r"(scipy_|open)?(cblas_|openblas_)\w+|(scipy_)?[sdcz](gemm|gemv|axpy|dot|symm|syrk|trsm)_",
        "OpenBLAS (`apt install libopenblas-dev`), or `pip install scipy-openblas32`",
        ("openblas_config.h", "OPENBLAS_VERSION"),
    ),
    Known("fftw3f", "fftw3.h", ("fftw3f",), r"fftw3\w*\.h", r"fftwf?_\w+", "FFTW (`apt install libfftw3-dev`)"),
    Known(
        "onednn",
        "dnnl.h",
        ("dnnl",),
        r"(oneapi/dnnl/.*|dnnl\w*\.hp?p?)",
        r"dnnl_\w+",
        "oneDNN (`apt install libdnnl-dev`), or `pip install onednn-devel`",
        ("oneapi/dnnl/dnnl_version.h", "DNNL_VERSION_MAJOR", "DNNL_VERSION_MINOR", "DNNL_VERSION_PATCH"),
    ),
    Known(
        "eigen",
        "Eigen/Core",
        (),
        r"(eigen3/)?(Eigen|unsupported)/.*",
        "",
        "Eigen (`apt install libeigen3-dev`)",
        ("Eigen/src/Core/util/Macros.h", "EIGEN_WORLD_VERSION", "EIGEN_MAJOR_VERSION", "EIGEN_MINOR_VERSION"),
    ),
)


@dataclass(frozen=True)
class Place:
    """A folder of headers and the folder of shared objects that belongs to it."""

    include: Path
    lib: Path
    searched: bool = False
    """Compiler and loader look here without being told."""


@dataclass(frozen=True)
class Library:
    """An installed library."""

    name: str
    version: str
    include: Path | None
    """Folder to add to the header search; null when the compiler looks there by itself."""
    link_flags: tuple[str, ...]
    """As g++ takes them: -L, -l and -Wl,-rpath."""
    soname_prefixes: tuple[str, ...]
    """DT_NEEDED entries that begin so belong to it."""
    binds: tuple[Bind, ...]
    """What a box must see so that it compiles and loads."""
    prelude: str = ""
    """Macros to include first, where a build of the library renames its functions."""


def known(target: Target) -> tuple[Known, ...]:
    """All libraries that count as libraries on this target's platform, installed or not."""
    return _CPU if is_cpu(target) else _CUDA


@lru_cache(maxsize=8)
def installed(target: Target, toolkit: Path | None = None) -> tuple[Library, ...]:
    """The libraries of this host for a target; `toolkit` is the CUDA toolkit's root. Looked up once per process."""
    return find(known(target), tuple(places(target, toolkit)))


def runtime_binds(target: Target, toolkit: Path | None = None) -> tuple[Bind, ...]:
    """What a runner's box must see so that a candidate built for any space of this target loads."""
    binds = [b for library in installed(target, toolkit) for b in library.binds]
    if toolkit is not None and not is_cpu(target):
        binds += outside_usr(toolkit_lib(toolkit))
    return tuple(dict.fromkeys(binds))


def outside_usr(*folders: Path) -> tuple[Bind, ...]:
    """Binds for folders outside /usr, which every box sees anyway, under their host path (which an rpath names)."""
    return tuple(Bind(f, str(f)) for f in folders if not f.resolve().is_relative_to("/usr"))


def toolkit_lib(toolkit: Path) -> Path:
    """The toolkit's folder of shared objects: lib64, or lib in one that was installed from wheels."""
    return next((toolkit / name for name in ("lib64", "lib") if (toolkit / name).is_dir()), toolkit / "lib64")


def find(wanted: Sequence[Known], where: Sequence[Place]) -> tuple[Library, ...]:
    """Each wanted library from the first place that has both its header and its shared object."""
    found = (next((f for place in where if (f := _at(library, place))), None) for library in wanted)
    return tuple(f for f in found if f is not None)


def places(target: Target, toolkit: Path | None) -> Iterator[Place]:
    """Where to look, in order. nvcc reads its own toolkit's headers first, so the toolkit comes first here too."""
    if not is_cpu(target) and toolkit is not None:
        yield Place(toolkit / "include", toolkit_lib(toolkit), searched=True)
        yield Place(toolkit / "include" / "cccl", toolkit_lib(toolkit), searched=True)
    for site in _site_packages():
        for package in ("scipy_openblas32", "cutlass_library/source"):
            yield Place(site / package / "include", site / package / "lib")
        for folder in sorted((site / "nvidia").glob("*/include")):
            yield Place(folder, folder.parent / "lib")
    prefix = Path(sys.prefix)
    yield Place(prefix / "include", prefix / "lib")
    yield from _system_places()


def _system_places() -> Iterator[Place]:
    libs = Path("/usr/lib") / TRIPLE
    lib = libs if libs.is_dir() else Path("/usr/lib64")
    yield Place(Path("/usr/include") / TRIPLE, lib, searched=True)
    yield Place(Path("/usr/include"), lib, searched=True)
    yield Place(Path("/usr/include/eigen3"), lib)
    yield Place(Path("/usr/local/include"), Path("/usr/local/lib"), searched=True)


def _site_packages() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(Path(paths[k]) for k in ("purelib", "platlib")))


def _at(wanted: Known, place: Place) -> Library | None:
    if not (place.include / wanted.header).is_file():
        return None
    shared = _shared_object(wanted, place.lib)
    if wanted.files and shared is None:
        return None
    return Library(
        name=wanted.name,
        version=_version(wanted, place.include) or (shared.name if shared else "unknown"),
        include=None if place.searched else place.include,
        link_flags=_link_flags(place, shared),
        soname_prefixes=tuple(f"lib{stem}.so" for stem in wanted.files),
        binds=outside_usr(place.include, place.lib) if shared else outside_usr(place.include),
        prelude=_renamed(place.include / wanted.header) if wanted.name == "blas" else "",
    )


def _shared_object(wanted: Known, folder: Path) -> Path | None:
    """The file to link: the SONAME-versioned one (`libx.so.3`) where there is one, else the plain one."""
    for stem in wanted.files:
        plain = folder / f"lib{stem}.so"
        versioned = sorted((p for p in folder.glob(f"lib{stem}.so.*")), key=lambda p: (len(p.name), p.name))
        if versioned:
            return versioned[0]
        if plain.is_file():
            return plain
    return None


def _link_flags(place: Place, shared: Path | None) -> tuple[str, ...]:
    if shared is None:
        return ()
    link = (f"-l:{shared.name}",)
    return link if place.searched else (f"-L{place.lib}", *link, f"-Wl,-rpath,{place.lib}")


def _version(wanted: Known, include: Path) -> str:
    if not wanted.version or not (include / wanted.version[0]).is_file():
        return ""
    text = (include / wanted.version[0]).read_text(errors="replace")
    found = (re.search(rf'#\s*define\s+{macro}\s+"?\D*?([\d.]+)', text) for macro in wanted.version[1:])
    return ".".join(m.group(1) for m in found if m)


def _renamed(header: Path) -> str:
    """Macros that give the usual names to a build whose functions carry a prefix (scipy's OpenBLAS)."""
    names = sorted(set(re.findall(r"\bscipy_((?:cblas|openblas)_\w+)", header.read_text(errors="replace"))))
    return "".join(f"#define {name} scipy_{name}\n" for name in names)
