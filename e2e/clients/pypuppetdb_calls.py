"""Makes every read call of pypuppetdb's API and prints one line for each.

A line is the call, a tab, and how many records came or what was said; for a call that
failed, "error" and the exception's name.

    pypuppetdb_calls.py [--digest] PORT NODE_OF_A NODE_OF_B

With --digest a line ends with one of all that was answered: rows in no order, without what a
PuppetDB stamps itself.
"""

import hashlib
import json
import sys

import pypuppetdb
from pypuppetdb.QueryBuilder import AndOperator, EqualsOperator, ExtractOperator, FunctionOperator

DIGEST = "--digest" in sys.argv
PORT, *NODES = [word for word in sys.argv[1:] if word != "--digest"]

STAMPED = {"facts_timestamp", "catalog_timestamp", "receive_time", "report_receive_time"}


def size(answer):
    """The number of records, the keys of an object, or the text itself."""
    if isinstance(answer, (str, int)):
        return answer
    try:
        return sum(1 for _ in answer)
    except TypeError:
        return 1


def unstamped(url, value):
    """JSON in one spelling."""
    if isinstance(value, list):
        return json.dumps(sorted(unstamped(url, one) for one in value))
    if not isinstance(value, dict):
        return json.dumps(value)
    stamped = STAMPED | ({"timestamp"} if "/factsets" in url or "/inventory" in url else set())
    kept = {name: unstamped(url, one) for name, one in value.items() if name not in stamped}
    return json.dumps(kept, sort_keys=True)


def calls(db):
    """Name and function of each call."""
    production = AndOperator()
    production.add(EqualsOperator("environment", "production"))
    counted = ExtractOperator()
    counted.add_field(FunctionOperator("count"))
    yield "nodes", lambda: db.nodes()
    yield "nodes with_status", lambda: db.nodes(with_status=True)
    yield "facts", lambda: db.facts()
    yield "facts kernel", lambda: db.facts("kernel")
    yield "facts kernel Linux", lambda: db.facts("kernel", "Linux")
    yield "facts production", lambda: db.facts(query=production)
    yield "resources", lambda: db.resources()
    yield "resources file", lambda: db.resources("file")
    yield "resources file motd", lambda: db.resources("file", "/etc/motd")
    yield "resources production", lambda: db.resources(query=production)
    yield "catalogs", lambda: db.catalogs()
    yield "reports", lambda: db.reports()
    yield "reports production", lambda: db.reports(query=production)
    yield "events", lambda: db.events()
    for subject in ("certname", "resource", "containing_class"):
        yield f"event_counts {subject}", lambda s=subject: db.event_counts(s)
    yield "aggregate_event_counts", lambda: db.aggregate_event_counts("certname")
    for name in ("inventory", "edges", "factsets", "fact_contents", "fact_paths", "fact_names", "environments"):
        yield name, getattr(db, name)
    for node in NODES:
        yield f"node {node}", lambda n=node: db.node(n).name
        yield f"node {node} facts", lambda n=node: db.node(n).facts()
        yield f"node {node} fact", lambda n=node: db.node(n).fact("kernel").value
        yield f"node {node} resources", lambda n=node: db.node(n).resources()
        yield f"node {node} reports", lambda n=node: db.node(n).reports()
        yield f"catalog {node}", lambda n=node: db.catalog(n).node
    report = f'["=","certname","{NODES[1]}"]'
    yield "report logs", lambda: [log for r in db.reports(query=report) for log in r.logs]
    yield "report events", lambda: [event for r in db.reports(query=report) for event in r.events()]
    yield "pql", lambda: db.pql("nodes { }")
    yield "pql projection", lambda: db.pql("nodes[certname] { }")
    yield "pql posted", lambda: db._pql("nodes { }", request_method="POST")
    yield "nodes posted", lambda: db._query("nodes", payload={"query": None}, request_method="POST")
    yield "nodes counted", lambda: next(iter(db._query("nodes", query=counted)))["count"]
    yield "nodes page", lambda: db._query("nodes", limit=5, offset=3, order_by='[{"field":"certname"}]')
    yield "reports total", lambda: (db._query("reports", limit=1, include_total=True, order_by='[{"field":"hash"}]'), db.total)[1]
    population = "puppetlabs.puppetdb.population:name=num-nodes"
    yield "metric", lambda: db.metric(population)["Value"]
    yield "metric list", lambda: db.metric()
    yield "metric v1", lambda: db.metric(version="v1")
    yield "current_version", lambda: db.current_version()
    yield "server_time", lambda: len(db.server_time())
    yield "status", lambda: db.status()["state"]


def main():
    db = pypuppetdb.connect(host="127.0.0.1", port=int(PORT), timeout=60)
    answers = []
    db.session.hooks["response"].append(lambda answer, *_, **__: answers.append(answer))
    for name, call in calls(db):
        answers.clear()
        try:
            said = size(call())
        except Exception as error:  # what a call fails with is the finding
            said = f"error {type(error).__name__}"
        if DIGEST and not str(said).startswith("error"):
            texts = [json.dumps(unstamped(answer.url, answer.json())) for answer in answers]
            said = f"{said}\t{hashlib.sha1(''.join(texts).encode()).hexdigest()}"
        print(f"{name}\t{said}", flush=True)


main()
