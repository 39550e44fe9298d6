"""Help, errors, colours, and the page on the command line."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from torch_gsample import __version__, cli
from torch_gsample.cli import command as commands
from torch_gsample.cli import output

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / 'docs/command_line.md').read_text()
#: Options of all commands but `run`.
COMMON = '--help', '--json', '--traceback'
COMMANDS = list(commands._COMMANDS)
EXAMPLES = [
    line.strip()
    for text in (commands.DESCRIPTION, *commands._EXAMPLES.values())
    for line in text.splitlines()
    if line.startswith('  gsample ')
]
#: Commands of the page and what they print.
SHOWN = re.findall(r'```console\n\$ gsample (.*?)\n(.*?)```', PAGE, re.DOTALL)


@pytest.mark.parametrize('name', COMMANDS)
def test_every_command_has_help_with_examples(name, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([name, '--help'])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert f'examples:\n  gsample {name}' in out
    assert 'exit status: 0' in out
    for line in out.splitlines():
        assert len(line) <= 80, line


def test_the_example_of_a_bundled_graph_runs(capsys):
    line = next(
        x for x in commands.DESCRIPTION.splitlines() if 'sample debian' in x
    )
    assert cli.main(shlex.split(line.split('   ')[0])[1:]) == 0
    assert 'package' in capsys.readouterr().out


def test_errors_of_the_system_have_no_number(tmp_path, capsys):
    missing = str(tmp_path / 'missing.csv')
    assert cli.main(['convert', missing, str(tmp_path / 'out')]) == 2
    shown = f"gsample: No such file or directory: '{missing}'\n"
    assert capsys.readouterr().err == shown


@pytest.mark.parametrize('line', EXAMPLES)
def test_examples_can_be_parsed(line):
    words = shlex.split(line.split('   ')[0])[1:]
    assert 'place' in commands.make_parser().parse_args(words)


@pytest.mark.parametrize('name', COMMANDS)
def test_the_page_names_every_option(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, '--help'])
    section = PAGE.split(f'## gsample {name}\n')[1].split('\n## ')[0]
    for option in re.findall(r'--[a-z-]+', capsys.readouterr().out):
        assert option in section or option in COMMON, option


@pytest.mark.parametrize(('command', 'shown'), SHOWN)
def test_outputs_on_the_page_are_current(command, shown, capsys):
    cli.main(shlex.split(command))
    lines = capsys.readouterr().out.splitlines()
    wanted = shown.splitlines()
    if wanted[-1] == '...':  # the rest is left out
        wanted.pop()
        lines = lines[: len(wanted)]
    assert lines == wanted


def test_the_page_shows_something():
    assert len(SHOWN) >= 2


def test_the_version_is_printed(capsys):
    assert cli.main(['--version']) == 0
    assert capsys.readouterr().out == f'torch_gsample {__version__}\n'


def test_help_and_version_are_quick():
    """Neither needs torch."""
    text = (
        'import sys; from torch_gsample.cli import main\n'
        'try: main(["--help"])\n'
        'except SystemExit: pass\n'
        'main(["--version"])\n'
        'assert not {"torch", "numpy"} & {*sys.modules}'
    )
    subprocess.run([sys.executable, '-c', text], cwd=TOP, check=True)


@pytest.mark.parametrize('shell', ['bash', 'zsh'])
def test_completion_knows_commands_and_options(shell, capsys):
    assert cli.main(['completion', shell]) == 0
    script = capsys.readouterr().out
    for word in (*COMMANDS, '--fanouts', '--html'):
        assert word in script


def test_completion_names_the_package_that_it_needs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'shtab', None)
    assert cli.main(['completion', 'bash']) == 2
    assert "pip install 'torch_gsample[cli]'" in capsys.readouterr().err


def stopped(*args, **kwargs):
    raise KeyboardInterrupt


def test_stopped_commands_say_so_in_a_line(monkeypatch, capsys):
    monkeypatch.setattr('torch_gsample.cli.doctor.doctor', stopped)
    assert cli.main(['doctor']) == 130
    assert capsys.readouterr().err == 'gsample: stopped\n'
    monkeypatch.setattr('torch_gsample.cli.run.run_script', stopped)
    with pytest.raises(KeyboardInterrupt):
        cli.main(['run', 'script.py'])


def test_tracebacks_are_shown_on_request(tmp_path, capsys):
    missing = str(tmp_path / 'missing')
    assert cli.main(['info', missing]) == 2
    with pytest.raises(OSError, match='missing'):
        cli.main(['info', missing, '--traceback'])


@pytest.mark.parametrize(
    ('argv', 'message'),
    [
        ([], 'a command is missing'),
        (['dance'], "there is no command 'dance' ("),
        (['exlain', 'x'], "command 'exlain': did you mean 'explain'? ("),
        (['sample', 'g', '--fanouts', '3,x'], 'must be integers'),
        (['sample', 'g', '--num-seeds', '0'], 'must be a positive integer'),
        (['explain', 'labor', '--arg', 'k'], 'must be a name and a value'),
        (['bench', '--threads', '1,0'], 'must be a positive integer'),
    ],
)
def test_wrong_arguments_are_one_line(argv, message, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count('\n') == 1
    assert '--help' in error


def test_a_closed_pipe_is_no_error():
    """As of `gsample info graph | head`."""
    code = (
        'import types\nfrom torch_gsample.cli import command\n'
        'doctor = lambda args: print(*range(100000))\n'
        'module = types.SimpleNamespace(doctor=doctor)\n'
        'command.import_module = lambda name: module\n'
        'command.main(["doctor"])'
    )
    command = f"{sys.executable} -c '{code}' | head -c 1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=TOP
    )
    assert done.stdout == '0'
    assert done.stderr == ''


def colours(monkeypatch, is_terminal=True, **environment):
    for name in ('NO_COLOR', 'TERM'):
        monkeypatch.delenv(name, raising=False)
    for name, value in {'TERM': 'xterm-256color', **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, 'isatty', lambda: is_terminal)
    return output.has_colours()


def test_colours_are_for_terminals_that_show_them(monkeypatch, capsys):
    assert not colours(monkeypatch, is_terminal=False)
    assert not colours(monkeypatch, NO_COLOR='1')
    assert not colours(monkeypatch, TERM='dumb')
    assert colours(monkeypatch)
    monkeypatch.setitem(sys.modules, 'rich', None)  # not installed
    assert not colours(monkeypatch)


def test_a_terminal_gets_colours_of_the_same_words(monkeypatch, capsys):
    columns, rows = ['part', 'state'], [['torch', 'ok'], ['java', 'missing']]
    output.table(columns, rows)
    plain = capsys.readouterr().out
    assert plain == 'part   state\ntorch  ok\njava   missing\n'
    monkeypatch.setattr(output, 'has_colours', lambda: True)
    monkeypatch.setenv('FORCE_COLOR', '1')
    monkeypatch.setenv('TERM', 'xterm-256color')
    monkeypatch.delenv('NO_COLOR', raising=False)
    output.table(columns, rows)
    output.heading('What to do')
    coloured = capsys.readouterr().out
    assert '\x1b[32mok' in coloured
    assert '\x1b[33mmissing' in coloured
    words = re.sub(r'\x1b\[[\d;]*m|[─ ]+', ' ', coloured).split()
    assert words == [*plain.split(), 'What', 'to', 'do']


def test_json_is_for_machines(monkeypatch, capsys):
    monkeypatch.setattr(output, 'has_colours', lambda: True)
    cli.main(['doctor', '--json'])
    assert json.loads(capsys.readouterr().out)[0]['part'] == 'python'
