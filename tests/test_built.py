"""What compilers made is taken for the same text only."""

import pytest

from tests.built import CSRC, made_of


@pytest.mark.parametrize('what', ['header', 'source', 'flag'])
def test_objects_are_kept_for_equal_texts_and_flags_only(tmp_path, what):
    made = []
    for name, text in (('a', '1'), ('b', '1'), ('c', '2')):
        folder = tmp_path / name
        folder.mkdir()
        source, header = folder / 'x.cpp', folder / 'x.h'
        source.write_text(text if what == 'source' else '')
        header.write_text(text if what == 'header' else '')
        flags = [f'-O{text if what == "flag" else 0}', f'-I{folder}']
        made.append(made_of(['g++', *flags, f'-I{CSRC}'], source))
    assert made[0] == made[1] != made[2]
