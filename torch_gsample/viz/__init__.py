"""Pictures of samples and of graphs.

What PyG's loaders or samplers return comes in, matplotlib's axes go out. No
display is needed, and matplotlib is imported by the first picture.
"""

from torch_gsample.viz.batch import plot_batch
from torch_gsample.viz.degrees import plot_degrees, plot_quality

__all__ = ['plot_batch', 'plot_degrees', 'plot_quality']
