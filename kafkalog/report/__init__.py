"""An audit's JSON document as one HTML page that needs nothing else: no server, no network.

`page` puts the sections together, `treemap`, `timeline`, `curves` and `ages` say where the marks
of the charts lie, `tables` their numbers as rows, `figures` and `marks` how numbers are written.
The templates beside them draw: plain HTML and SVG in percent of their box, so that a chart fits any
width and prints, and colours by variables, so that it is right by day and by night. A number
carries where it comes from in the document (`figures`), which is how a test holds the page to it.

Nothing is computed here that changes what a number means: sums and cuts only.
"""
