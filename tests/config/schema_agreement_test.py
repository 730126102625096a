"""Checks the schemas against their meta-schema and the examples against the schemas. Exit 77: not installed."""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

folder = pathlib.Path(sys.argv[1])


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


configuration = jsonschema.validators.validator_for(load(folder / "petacqd.schema.json"))
SCHEMAS = {"petacqd": "petacqd.schema.json", "scanner": "scanner.schema.json", "arrangement": "arrangement.schema.json", "layout": "layout/layout.schema.json"}
for name in SCHEMAS.values():
    configuration.check_schema(load(folder / name))

checked = 0
for path in sorted((folder / "examples").glob("*.json")):
    name = path.name.split(".")[1] if path.name.count(".") == 2 else "petacqd"
    jsonschema.validate(load(path), load(folder / SCHEMAS[name]))
    checked += 1
assert checked >= 4, f"expected the examples in {folder}, found {checked}"

# The program refuses these documents, too (tests/config/configuration_test.cpp).
small = load(folder / "examples" / "small.json")
for path in sorted((folder / "examples" / "scanners").glob("*.json")):
    jsonschema.validate(load(path), load(folder / SCHEMAS["arrangement" if path.name.endswith(".scanner.json") else "petacqd"]))
refused = {
    "unknown key": {**small, "recieve": {}},
    "wrong type": {**small, "log_level": 3},
    "out of range": {**small, "coincidence": {"window_ticks": -1}},
    "missing key": {key: value for key, value in small.items() if key != "scanner"},
    "no sockets": {**small, "receive": {"sockets": []}},
    "not a multiple": {**small, "listmode": {"block_bytes": 4097}},
    "id twice": {**small, "sources": {"ids": [1, 1]}},
    "too many ids": {**small, "sources": {"ids": list(range(5000))}},
}
for why, document in refused.items():
    try:
        jsonschema.validate(document, load(folder / "petacqd.schema.json"))
    except jsonschema.ValidationError:
        continue
    sys.exit(f"not refused: {why}")
print(f"{checked} examples agree")
