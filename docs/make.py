"""Draws the pictures of the documentation, and builds its site.

    python docs/make.py

Pictures are made from real runs: the same seeds give the same pictures. The
tests run the examples.
"""

from pathlib import Path

from draw_ablation import draw_ablation
from draw_samples import draw_samples
from draw_storage import draw_storage
from make_pages import main as make_pages

DOCS = Path(__file__).resolve().parent


def draw_pictures() -> None:
    """Writes ``docs/images``."""
    folder = DOCS / 'images'
    folder.mkdir(exist_ok=True)
    draw_samples(folder)
    draw_ablation(folder / 'ablation.png')
    draw_storage(folder / 'storage.png')


def main() -> None:
    draw_pictures()
    make_pages()
    print(f'pictures in {DOCS / "images"}')


if __name__ == '__main__':
    main()
