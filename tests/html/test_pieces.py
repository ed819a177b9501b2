"""What a notebook shows: everything is escaped, and no value makes a page of any length."""

from __future__ import annotations

from kafkalog.html.pieces import MOST_NOTES, MOST_PARTS, MOST_ROWS, Part, Piece, render

_EVIL = '<script>alert("&")</script>'


def test_no_text_of_a_log_is_taken_for_html() -> None:
    page = render(
        Piece(
            _EVIL, _EVIL, parts=[Part(_EVIL, 1, "kept")], map_label=_EVIL, columns=(_EVIL,),
            rows=[[_EVIL]], notes=[_EVIL],
        )
    )  # fmt: skip
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(&#34;&amp;&#34;)&lt;/script&gt;") == 7


def test_numbers_are_grouped_and_set_to_the_right() -> None:
    page = render(Piece("log", columns=("bytes", "topic"), rows=[[1234567, "orders"]]))
    assert '<td style="text-align:right">1,234,567</td><td>orders</td>' in page


def test_a_part_is_as_wide_as_its_weight_and_named_in_the_legend() -> None:
    page = render(Piece("log", parts=[Part("a", 3, "kept"), Part("b", 1, "active")]))
    assert "flex:3 0 1px" in page
    assert "flex:1 0 1px" in page
    assert page.count(">kept</span>") == page.count(">active</span>") == 1
    assert ">goes</span>" not in page


def test_what_is_long_is_cut_and_says_so() -> None:
    page = render(
        Piece(
            "log",
            parts=[Part("p", 1, "kept")] * (MOST_PARTS + 1),
            columns=("n",),
            rows=[[n] for n in range(MOST_ROWS + 1)],
            notes=["wrong"] * (MOST_NOTES + 2),
        )
    )
    assert page.count('title="p"') == MOST_PARTS
    assert page.count("<tr>") == MOST_ROWS + 1  # and the headings
    assert f"The first {MOST_ROWS} of {MOST_ROWS + 1} rows." in page
    assert "And 2 more." in page
