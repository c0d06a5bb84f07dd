"""`fieldline config`, the configuration file, the environment and their errors."""

import re

import pytest

from harness.rest import unique
from harness.server import StartFailed, run_cli

SECRET = "correct horse battery"


def test_every_setting_is_printed_with_its_documentation_value_and_source(tmp_path):
    file = tmp_path / "fieldline.toml"
    file.write_text('[http]\nlisten = "127.0.0.1:9999"\n')
    printed = run_cli(
        "config", "--config", str(file), env={"FIELDLINE_MQTT_LISTEN": "127.0.0.1:7777", "FIELDLINE_LOG": "debug"}
    )
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()

    def line_with(text: str) -> str:
        return next(line for line in lines if text in line)

    assert str(file) in line_with("127.0.0.1:9999")
    assert "FIELDLINE_MQTT_LISTEN" in line_with("127.0.0.1:7777")
    assert "default" in line_with("min-free-disk =")
    names = {
        "FIELDLINE_DATA_DIR", "FIELDLINE_HTTP_LISTEN", "FIELDLINE_MQTT_LISTEN", "FIELDLINE_MQTTS_LISTEN",
        "FIELDLINE_LOG", "FIELDLINE_JOURNAL_DURABILITY", "FIELDLINE_JOURNAL_MIN_FREE_DISK",
    }  # fmt: skip
    assert not [name for name in names if name not in printed.stdout]
    # Documentation stands above each key.
    for number, line in enumerate(lines):
        if re.match(r"[a-z0-9-]+ = ", line):
            assert lines[number - 1].startswith("# "), f"`{line}` is not documented"


def test_the_defaults_are_those_of_the_manual():
    printed = run_cli("config").stdout
    for key, value in {"listen": ("0.0.0.0:8080", "0.0.0.0:1883"), "durability": ("fsync",)}.items():
        for text in value:
            assert re.search(rf'^{key} = "{re.escape(text)}"', printed, re.M), f"{key} = {text}"


def test_what_config_prints_is_a_configuration_file(tmp_path):
    printed = run_cli("config", env={"FIELDLINE_MQTT_LISTEN": "127.0.0.1:7777"})
    file = tmp_path / "fieldline.toml"
    file.write_text(printed.stdout)
    again = run_cli("config", "--config", str(file))
    assert again.returncode == 0, again.stderr
    assert "127.0.0.1:7777" in again.stdout


@pytest.mark.parametrize("by", ["environment", "file"])
def test_secrets_are_hidden(tmp_path, by):
    if by == "environment":
        printed = run_cli("config", env={"FIELDLINE_ADMIN_PASSWORD": SECRET})
    else:
        file = tmp_path / "fieldline.toml"
        file.write_text(f'admin-password = "{SECRET}"\n')
        printed = run_cli("config", "--config", str(file))
    assert printed.returncode == 0, printed.stderr
    assert "admin-password" in printed.stdout
    assert SECRET not in printed.stdout + printed.stderr


# File text, and what the error must name.
BAD_FILES = {
    "an unknown key": ('[http]\nlitsen = "127.0.0.1:1"\n', "http.litsen"),
    "an unknown section": ('[htp]\nlisten = "127.0.0.1:1"\n', "htp"),
    "a key of the wrong type": ("[http]\nlisten = 5\n", "http.listen"),
    "an address that is none": ('[mqtt]\nlisten = "nowhere"\n', "mqtt.listen"),
    "a size that is none": ('[journal]\nsegment-bytes = "many"\n', "journal.segment-bytes"),
    "a size out of range": ('[journal]\nsegment-bytes = "1B"\n', "segment-bytes"),
    "a duration that is none": ('[ingest]\ncheckpoint-interval = "soon"\n', "ingest.checkpoint-interval"),
    "a durability that is none": ('[journal]\ndurability = "hope"\n', "journal.durability"),
    "no TOML": ("this is = = not toml", "fieldline.toml"),
}


@pytest.mark.parametrize("what", BAD_FILES)
@pytest.mark.parametrize("command", ["config", "serve"])
def test_a_file_that_makes_no_sense_is_refused_by_name(tmp_path, what, command):
    text, named = BAD_FILES[what]
    file = tmp_path / "fieldline.toml"
    file.write_text(text)
    done = run_cli(
        command, "--config", str(file), *(["--data-dir", str(tmp_path / "data")] if command == "serve" else [])
    )
    assert done.returncode not in (0, 101)
    assert named in done.stderr, done.stderr
    assert not (tmp_path / "data").exists(), "something was created nevertheless"


BAD_ENVIRONMENT = {
    "FIELDLINE_HTTP_LITSEN": "127.0.0.1:1",
    "FIELDLINE_HTTP_LISTEN": "nowhere",
    "FIELDLINE_JOURNAL_SEGMENT_BYTES": "-5",
    "FIELDLINE_JOURNAL_DURABILITY": "interval:never",
    "FIELDLINE_LOG": "info,=",
    "FIELDLINE_ADMIN_PASSWORD": "x",
    "FIELDLINE_INGEST_PARTITIONS": "0",
}


@pytest.mark.parametrize("name", BAD_ENVIRONMENT)
def test_an_environment_that_makes_no_sense_is_refused_by_name(tmp_path, name):
    done = run_cli("serve", "--data-dir", str(tmp_path / "data"), env={name: BAD_ENVIRONMENT[name]})
    assert done.returncode not in (0, 101)
    key = name.removeprefix("FIELDLINE_").lower().replace("_", "-")
    stated = done.stderr.lower().replace(".", "-")
    assert name in done.stderr or key in stated, done.stderr
    if name == "FIELDLINE_ADMIN_PASSWORD":
        assert '"x"' not in done.stderr


def test_a_missing_file_is_named(tmp_path):
    path = str(tmp_path / f"{unique('missing')}.toml")
    done = run_cli("config", "--config", path)
    assert done.returncode not in (0, 101) and path in done.stderr


def test_tls_without_a_certificate_is_refused(make_server):
    server = make_server(env={"FIELDLINE_MQTTS_LISTEN": "127.0.0.1:0"})
    with pytest.raises(StartFailed) as failed:
        server.start()
    assert "mqtts.certificate" in str(failed.value)


def test_the_environment_wins_over_the_file_and_the_command_line_over_both(tmp_path):
    file = tmp_path / "fieldline.toml"
    file.write_text('data-dir = "/from/file"\nlog = "warn"\n')
    by_environment = run_cli("config", "--config", str(file), env={"FIELDLINE_DATA_DIR": "/from/environment"}).stdout
    assert "/from/environment" in by_environment and "/from/file" not in by_environment
    assert '"warn"' in by_environment
