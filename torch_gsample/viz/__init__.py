"""Pictures of samples and of graphs.

The input is a result of PyG's or our loaders or samplers; the output is
matplotlib axes. No display is needed, and the first picture imports
matplotlib.
"""

from torch_gsample.viz.batch import plot_batch
from torch_gsample.viz.degrees import plot_degrees, plot_quality

__all__ = ['plot_batch', 'plot_degrees', 'plot_quality']
