"""The C++ sources use names that the headers of torch 2.11 have.

The headers that are installed may be newer: ``TORCH_TARGET_VERSION`` hides
their new functions, and not their new macros. ``make test-torch211`` compiles
with those of 2.11.
"""

import re
from pathlib import Path

CSRC = Path(__file__).resolve().parent.parent / 'csrc'
NAME = re.compile(
    r'\b(?:STABLE_|STD_TORCH_|TORCH_|aoti_torch_|torch_(?=call|exc)|torch::)'
    r'\w+(?:::\w+)*'
)
#: Add a name when ``make test-torch211`` has compiled it.
NAMES = {
    'STABLE_TORCH_LIBRARY',
    'STABLE_TORCH_LIBRARY_IMPL',
    'STD_TORCH_CHECK',
    'TORCH_ABI_VERSION',
    'TORCH_BOX',
    'TORCH_ERROR_CODE_CHECK',
    'aoti_torch__reinterpret_tensor',
    'aoti_torch_device_type_cpu',
    'aoti_torch_empty_strided',
    'aoti_torch_get_current_cuda_stream',
    'aoti_torch_get_device_type',
    'torch::headeronly::IntHeaderOnlyArrayRef',
    'torch::headeronly::ScalarType',
    'torch::stable::Device',
    'torch::stable::Tensor',
    'torch::stable::accelerator::DeviceGuard',
    'torch::stable::clone',
    'torch::stable::contiguous',
    'torch::stable::copy_',
    'torch::stable::detail::from',
    'torch::stable::detail::to',
    'torch::stable::empty',
    'torch::stable::from_blob',
    'torch::stable::get_num_threads',
    'torch::stable::narrow',
    'torch::stable::new_empty',
    'torch::stable::new_zeros',
    'torch::stable::parallel_for',
    'torch::stable::view',
    'torch_call_dispatcher',
    # Declared by the source, and absent from older versions.
    'torch_exception_get_what_without_backtrace',
}


def test_sources_use_names_of_the_oldest_torch():
    sources = [f.read_text() for f in CSRC.rglob('*.*') if f.is_file()]
    found = {name for text in sources for name in NAME.findall(text)}
    assert found == NAMES
