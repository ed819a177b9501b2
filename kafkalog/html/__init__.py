"""What a notebook shows of a value: tables and a map of segments as small pieces of HTML.

It knows nothing of logs. The values that can be shown (an inventory, a partition, a plan) lie above
and hand in headings, rows and parts; every text is escaped here, by jinja2.
"""
