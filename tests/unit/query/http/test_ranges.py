"""Byte ranges against a plain reading of RFC 9110."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from query.http.ranges import parse_range


@given(size=st.integers(0, 50), first=st.integers(0, 60), last=st.none() | st.integers(0, 60))
def test_a_range_is_what_the_rfc_says(size: int, first: int, last: int | None) -> None:
    header = f"bytes={first}-{'' if last is None else last}"
    wanted = [n for n in range(size) if n >= first and (last is None or n <= last)]
    if last is not None and last < first:
        assert parse_range(header, size) is None
    elif not wanted:
        with pytest.raises(HTTPException) as caught:
            parse_range(header, size)
        assert caught.value.status_code == 416
        assert caught.value.headers == {"Content-Range": f"bytes */{size}"}
    else:
        assert parse_range(header, size) == (wanted[0], wanted[-1])


@given(size=st.integers(0, 50), count=st.integers(0, 60))
def test_a_suffix_is_the_end_of_the_file(size: int, count: int) -> None:
    wanted = list(range(size))[max(0, size - count) :]
    if wanted:
        assert parse_range(f"bytes=-{count}", size) == (wanted[0], wanted[-1])
    else:
        with pytest.raises(HTTPException):
            parse_range(f"bytes=-{count}", size)


@given(header=st.text(max_size=20))
def test_nonsense_is_no_range(header: str) -> None:
    try:
        found = parse_range(header, 10)
    except HTTPException:
        return
    assert found is None or 0 <= found[0] <= found[1] < 10
