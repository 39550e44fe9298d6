"""Draws the random numbers of ids in the JVM.

They are those of :mod:`torch_gsample.graph_sampling.draws`. Spark SQL has no
Philox, and planning its ten rounds as expressions costs more than computing
them. So each application compiles a Java class, with the compiler that Spark
uses for generated code, and adds it to its JARs: no row leaves the JVM.
"""

import warnings
import zipfile
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext, SparkFiles

from torch_gsample.graph_sampling import draws
from torch_gsample.spark.frames import (
    Column,
    DataFrame,
    F,
    arrow_udf,
    pa,
    to_tensor,
)
from torch_gsample.spark.jobs import context_of, counter

_CLASS = 'torch_gsample.Draws'
#: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
#: SC 2011); ``csrc/core/philox.h`` says how a draw gets its counter. The
#: finalizer of SplitMix64 hashes the two ends of edges without ids.
_SOURCE = """
package torch_gsample;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.LongAccumulator;

public final class Draws implements UDF2 {
  private static final long WORD = 0xFFFFFFFFL;
  private static final long RANDOM_UNIFORM = 0xFFF1;
  private long stream;
  private LongAccumulator count;

  /** The draws of a seed and a call, in epoch and batch 0. */
  public Column of(
      long seed, long call, LongAccumulator count, Column id, Column other) {
    Draws draws = new Draws();
    draws.stream = philox((call | RANDOM_UNIFORM << 16) << 32, 0, seed);
    draws.count = count;
    Column[] ids = new Column[] {id, other};
    // Spark evaluates a function that is not deterministic where it stands:
    // it copies neither it nor the checks of ids that it reads into filters.
    return functions.udf((UDF2) draws, DataTypes.DoubleType)
        .asNondeterministic().apply(ids);
  }

  /** The number of an id, or of an edge between two ids. */
  public Object call(Object id, Object other) {
    if (id == null) return null;
    if (count != null) count.add(1L);
    long value = ((Long) id).longValue();
    if (other != null) value = mix(mix(value) + ((Long) other).longValue());
    return Double.valueOf((philox(0, value, stream) >>> 11) * 0x1.0p-53);
  }

  /** The first half of a block; a counter has two halves. */
  private static long philox(long low, long high, long key) {
    long a = low & WORD, b = low >>> 32, c = high & WORD, d = high >>> 32;
    long first = key & WORD, second = key >>> 32;
    for (int round = 0; round < 10; ++round) {
      long p = a * 0xD2511F53L, q = c * 0xCD9E8D57L;
      a = (q >>> 32) ^ b ^ first;
      b = q & WORD;
      c = (p >>> 32) ^ d ^ second;
      d = p & WORD;
      first = (first + 0x9E3779B9L) & WORD;
      second = (second + 0xBB67AE85L) & WORD;
    }
    return b << 32 | a;
  }

  private static long mix(long x) {
    x = (x ^ x >>> 30) * 0xBF58476D1CE4E5B9L;
    x = (x ^ x >>> 27) * 0x94D049BB133111EBL;
    return x ^ x >>> 31;
  }
}
"""

#: The class of each application; None if it cannot have it.
_compiled: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


def draw(frame: DataFrame, id: str, seed: int, call_id: int) -> Column:
    """Returns the draws in [0, 1) of a column of ids.

    Args:
        frame (DataFrame): Has the column.
        id (str): Its name, int64.
        seed (int): Seed of all draws.
        call_id (int): What the numbers are for.
    """
    return _draw(frame, seed, call_id, F.col(id))


def draw_edges(edges: DataFrame, seed: int, call_id: int) -> Column:
    """Returns the draws of edges, by ``id`` if they have one.

    Args:
        edges (DataFrame): With ``id``, or ``src`` and ``dst``.
        seed (int): See :func:`draw`.
        call_id (int): See :func:`draw`.
    """
    if 'id' in edges.columns:
        return draw(edges, 'id', seed, call_id)
    return _draw(edges, seed, call_id, F.col('src'), F.col('dst'))


def _draw(frame: DataFrame, seed: int, call_id: int, *ids: Column) -> Column:
    context = context_of(frame.sparkSession)
    made = None if context is None else _class_of(context)
    if made is None:
        return _draw_in_workers(seed, call_id, *ids)
    from pyspark.sql.classic.column import Column as JavaColumn

    own: Any = [*ids, F.lit(None).cast('bigint')][:2]
    columns = [column._jc for column in own]
    return JavaColumn(made.of(seed, call_id, counter('ids drawn'), *columns))


def _class_of(context: SparkContext) -> Any:
    """Returns an object of the class; None if the session refuses it."""
    if context not in _compiled:
        try:
            _compiled[context] = _compile(context)
        except (Py4JError, TypeError, OSError) as error:
            _compiled[context] = None
            text = str(error).split('\n')[0]
            warnings.warn(
                f'torch_gsample.spark: Python workers draw the numbers, which '
                f'is slower: the session takes no class ({text})',
                stacklevel=2,
            )
    return _compiled[context]


def _compile(context: SparkContext) -> Any:
    """Compiles the class, and sends it to executors."""
    jvm: Any = context._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    loader = jvm.Thread.currentThread().getContextClassLoader()
    compiler.setParentClassLoader(loader)
    compiler.cook(_SOURCE)
    # Spark removes this folder when it stops.
    folder = Path(SparkFiles.getRootDirectory(), 'torch_gsample')
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / 'draws.jar', 'w') as jar:
        code = bytes(compiler.getBytecodes().get(_CLASS))
        jar.writestr(_CLASS.replace('.', '/') + '.class', code)
    context._jsc.addJar(str(folder / 'draws.jar'))
    return compiler.getClassLoader().loadClass(_CLASS).newInstance()


def _draw_in_workers(seed: int, call_id: int, *ids: Column) -> Column:
    """The same numbers without a class: on Spark Connect, for one."""

    @arrow_udf('double')
    def uniform(*values: pa.Array) -> pa.Array:
        own = [to_tensor(value) for value in values]
        id = own[0] if len(own) == 1 else draws.edge_ids(*own)
        return pa.array(draws.uniform(id, seed, call_id).numpy())

    return uniform(*ids)
