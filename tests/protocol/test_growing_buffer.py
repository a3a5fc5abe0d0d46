"""Memory for large frames grows with their bytes."""

from __future__ import annotations

import mmap

from kafka08.protocol import growing_buffer


def test_it_doubles_up_to_the_frame() -> None:
    """The buffer starts small and doubles up to the size of the frame."""
    buffer = growing_buffer.begin(5 << 20)
    sizes = [len(buffer)]
    while len(buffer) < 5 << 20:
        buffer = growing_buffer.grow(buffer, 5 << 20)
        sizes.append(len(buffer))
    assert [1 << 20, 2 << 20, 4 << 20, 5 << 20] == sizes
    assert len(growing_buffer.begin(100)) == 100


def test_its_bytes_stay_where_maps_cannot_grow() -> None:
    """On systems without mremap the bytes are copied into a larger map."""

    class Fixed(mmap.mmap):
        def resize(self, newsize: int) -> None:
            raise SystemError("mmap: resizing not available--no mremap()")

    buffer = Fixed(-1, 1 << 20)
    buffer[:4] = b"abcd"
    grown = growing_buffer.grow(buffer, 3 << 20)
    assert (2 << 20, b"abcd") == (len(grown), grown[:4])
