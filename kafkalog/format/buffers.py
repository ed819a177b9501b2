"""What may be handed to a parser, and how it becomes plain bytes to index.

Parsers take anything that holds bytes. `as_view` gives one shape to all of them without copying:
indexing yields ints, slicing yields views.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

BytesLike: TypeAlias = bytes | bytearray | memoryview | NDArray[np.uint8]


def as_view(data: BytesLike) -> memoryview:
    """A one-dimensional read view of unsigned bytes over `data`; nothing is copied."""
    # numpy's arrays are buffers; before Python 3.12 their types cannot say so.
    return memoryview(cast("bytes", data)).cast("B")
