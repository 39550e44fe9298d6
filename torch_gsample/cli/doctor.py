"""``gsample doctor``."""

import argparse

from torch_gsample.cli import output
from torch_gsample.doctor import as_dicts, examine, is_sound


def doctor(args: argparse.Namespace) -> int:
    """Checks this machine, and says how to install what is missing.

    Args:
        args (argparse.Namespace): Whether to print JSON.
    """
    findings = examine()
    if args.json:
        output.print_json(as_dicts(findings))
    else:
        rows = [[f.part, f.state, f.found] for f in findings]
        output.table(['part', 'state', 'found'], rows)
        advice = [f for f in findings if f.advice]
        if advice:
            print()
            output.heading('To do (and the feature that needs it):')
        for f in advice:
            print(f'  {f.part} ({f.used_for}): {f.advice}')
    return int(not is_sound(findings))
