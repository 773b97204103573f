"""How settings reach the engine's processes, and what a moved vLLM says."""

import pytest

from agspec.engine.config import VARIABLE, from_environment, to_environment
from agspec.errors import AgspecError, SettingsError
from agspec.settings import Settings


def test_settings_arrive_as_they_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Settings(cost_ratio=0.07, lookup="suffix-tree", stores=("session", "shared"), max_draft=24)
    for name, value in to_environment(sent).items():
        monkeypatch.setenv(name, value)
    assert from_environment() == sent
    monkeypatch.delenv(VARIABLE)
    assert from_environment() == Settings()


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("{not json", f"{VARIABLE}: want a JSON object or a TOML file's path, got '{{not json'"),
        ('{"max_draft": 500}', f"{VARIABLE}: max_draft: Input should be less than or equal to 128, got 500"),
        ("/no/such.toml", "/no/such.toml: want a settings file, got: No such file or directory"),
    ],
)
def test_wrong_settings_are_one_line(monkeypatch: pytest.MonkeyPatch, value: str, line: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(SettingsError) as caught:
        from_environment()
    assert str(caught.value) == line


def test_a_toml_file_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("settings") / "agspec.toml"
    file.write_text('cost_ratio = 0.01\nstores = ["session"]\n')
    monkeypatch.setenv(VARIABLE, str(file))
    assert from_environment() == Settings(cost_ratio=0.01, stores=("session",))


@pytest.mark.engine
def test_a_moved_vllm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import vllm

    from agspec.engine import patches

    monkeypatch.setattr(vllm, "__version__", "0.33.1")
    for patch in (patches.force_tapes, patches.mend_cpu_sampling, patches.spare_llvmlite):
        with pytest.raises(AgspecError, match=r"want vLLM 0\.32\.x, got 0\.33\.1"):
            patch()


@pytest.mark.engine
def test_cpu_sampling_gets_each_rows_own_parameters() -> None:
    """vLLM 0.32's own fallback leaves the output as it was: it writes into a copy."""
    import torch
    from vllm.triton_utils import HAS_TRITON
    from vllm.utils import cpu_triton_utils

    from agspec.engine import patches

    assert patches.mend_cpu_sampling() is not HAS_TRITON
    out = torch.full((6,), 9.0)
    cpu_triton_utils._expand_kernel_impl(out, torch.tensor([0.5, 0.0, 0.7]), torch.tensor([2, 3, 6]), 0, 1)
    torch.testing.assert_close(out, torch.tensor([0.5, 0.5, 1.0, 0.7, 0.7, 0.7]))


@pytest.mark.engine
def test_llvmlites_handle_has_no_dunder_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM 0.32 reads ``__dict__`` of it; a moved vLLM is named."""
    from llvmlite.binding import ffi
    from vllm.triton_utils import HAS_TRITON, dispatcher

    from agspec.engine import patches

    assert patches.spare_llvmlite() is not HAS_TRITON
    assert not hasattr(ffi.lib, "__dict__")
    assert callable(ffi.lib.LLVMPY_GetDefaultTargetTriple)
    monkeypatch.delattr(dispatcher, "register_kernels")
    with pytest.raises(AgspecError, match="register_kernels is not where it was"):
        patches.spare_llvmlite()
