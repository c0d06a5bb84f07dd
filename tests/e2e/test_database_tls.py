"""A PostgreSQL that speaks TLS alone; and what a program without TLS to Cassandra says."""

import subprocess
import uuid

import pytest

from harness.postgres import create_database, postgres_server
from harness.server import REPOSITORY, StartFailed, run_cli

SENT = {"ts": 1_600_000_000_000, "values": {"level": 7}}


def test_everything_is_kept_in_a_database_behind_tls(make_server, tmp_path):
    with postgres_server(tls=True) as url:
        assert "sslmode=verify-full" in url
        settings = {"FIELDLINE_SQL_URL": create_database(url), "FIELDLINE_SERIES_KIND": "sql"}
        server = make_server(env=settings)
        rest = server.start().rest()
        device = rest.create_device()
        rest.post(f"/api/plugins/telemetry/DEVICE/{device.id}/timeseries/ANY", SENT)
        server.stop()
        rest = server.start().rest()
        assert rest.values(device.id, "level") == [7]
        server.stop()

        # Another authority, and no encryption at all.
        other = tmp_path / "other"
        other.mkdir()
        subprocess.run([REPOSITORY / "tests/services/make-certificates.sh", other], check=True, timeout=30)
        authority = url.split("sslrootcert=")[1]
        for wrong in (
            settings["FIELDLINE_SQL_URL"].replace(authority, f"{other}/ca.pem"),
            settings["FIELDLINE_SQL_URL"].split("?")[0] + "?sslmode=disable",
        ):
            name = f"refused-{uuid.uuid4().hex}"
            refused = make_server(name, demo=False, env=settings | {"FIELDLINE_SQL_URL": wrong})
            with pytest.raises(StartFailed, match="database"):
                refused.start(within=60)


def test_tls_to_cassandra_is_refused_by_a_program_without_it():
    settings = {
        "FIELDLINE_SERIES_KIND": "cassandra",
        "FIELDLINE_SQL_URL": "postgres://127.0.0.1:1/none",
        "FIELDLINE_CASSANDRA_TLS": "true",
    }
    refused = run_cli("config", env=settings)
    assert refused.returncode != 0 and "cassandra-tls" in refused.stderr
