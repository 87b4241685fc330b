"""Lets puppetdb-exporter measure once and prints its metrics, in order.

    exporter_metrics.py PORT FACT...
"""

import os
import sys
import tempfile

from prometheus_client import REGISTRY

PORT, *FACTS = sys.argv[1:]
SETTINGS = f"""
[puppetdb]
host = 127.0.0.1
port = {PORT}
ssl_verify =
ssl_key =
ssl_cert =
proto = http
[optional]
fact_list = {" ".join(FACTS)}
"""


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
        file.write(SETTINGS)
        file.flush()
        os.environ["CONFIG_FILE"] = file.name
        from puppetdb_exporter.config import Configuration
        from puppetdb_exporter.metrics import MetricsRender

        MetricsRender(configuration=Configuration()).run()
    for metric in REGISTRY.collect():
        for sample in metric.samples:
            if sample.name.startswith("puppetdb_"):
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
                print(f"{sample.name}{{{labels}}}\t{sample.value}")


main()
