#!/usr/bin/env python3
"""Looks nodes up by a fact, as node-lookup does: one line for each node, certname and value.

    PUPPETDB_URL=http://127.0.0.1:8080 node_lookup.py FACT [VALUE]
"""

import json
import os
import sys
import urllib.parse
import urllib.request


def lookup(base, fact, *values):
    """The facts of that name, and of that value if one is given."""
    query = ["=", "name", fact]
    if values:
        query = ["and", query, ["=", "value", values[0]]]
    parameters = urllib.parse.urlencode({"query": json.dumps(query)})
    with urllib.request.urlopen(f"{base}/pdb/query/v4/facts?{parameters}", timeout=60) as answer:
        return json.load(answer)


for record in lookup(os.environ["PUPPETDB_URL"], *sys.argv[1:]):
    print(record["certname"], record["value"])
