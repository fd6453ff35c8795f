"""A Grafana dashboard: is it what Grafana's schema allows, and what does it ask Prometheus?

Source of the schema: the models in the package grafana-foundation-sdk, which Grafana generates from its own schema.
They ignore what they do not know and do not check types. So three checks come together:

1. The models can read the dashboard.
2. Each value has the type that its model declares.
3. The models write back everything that they read. A misspelt field is missing then.

Limits: the schema does not say which panels of older versions of Grafana have which options. Three rules that it
cannot express are checked here: numbers of panels are unique, panels do not overlap, and each query names the data
source variable.
"""
import copy
import enum
import json
import typing
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from typeguard import TypeCheckError, check_type, checker_lookup_functions

COLUMNS = 24
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Wrong(Exception):
    """What Grafana would refuse or ignore."""


@dataclass(frozen=True)
class Query:
    """One target of a panel."""
    panel: str
    expr: str
    is_instant: bool


def read(path: Path) -> dict:
    dashboard = json.loads(path.read_text())
    check(dashboard)
    return dashboard


def _as_in_json(kind: object, _arguments: object, _extras: object):
    """For typeguard: in some places the models keep an enumeration or another model as it is in JSON."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, enum.Enum):
        return lambda value, *_: _check_member(value, kind)
    if hasattr(kind, "from_json"):
        return lambda value, *_: _check_model(value, kind)
    return None


def _check_member(value: object, kind: type) -> None:
    try:
        kind(value)
    except ValueError:
        raise TypeCheckError(f"{value!r} is none of {[member.value for member in kind]}") from None


def _check_model(value: object, kind: type) -> None:
    if isinstance(value, kind):
        return
    if not isinstance(value, dict):
        raise TypeCheckError(f"{value!r} is no {kind.__name__}")
    model = kind.from_json(value)
    _check_types(model, kind.__name__)
    _check_kept(value, _written(model), kind.__name__)


checker_lookup_functions.insert(0, _as_in_json)


def check(dashboard: dict) -> None:
    register_default_plugins()
    try:
        model = Dashboard.from_json(dashboard)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Wrong(f"Grafana's models cannot read it: {error!r}") from None
    _check_types(model, "dashboard")
    _check_kept(dashboard, _written(model), "dashboard")
    if not dashboard.get("panels"):
        raise Wrong("it has no panels")
    _check_layout(dashboard["panels"])


# Changes that make a dashboard wrong: the object, the key, and what the key gets.
MUTATIONS = [
    (lambda board: board, "panels", []),
    (lambda board: board, "titel", "Namewire"),
    (lambda board: board, "graphTooltip", 9),
    (lambda board: board["templating"]["list"][1], "type", "question"),
    (lambda board: board["panels"][1], "title", 7),
    (lambda board: board["panels"][1], "colour", "red"),
    (lambda board: board["panels"][1], "id", 1),
    (lambda board: board["panels"][1], "datasource", {"type": "prometheus", "uid": "mine"}),
    (lambda board: board["panels"][1]["gridPos"], "x", 2),
    (lambda board: board["panels"][1]["gridPos"], "w", 25),
    (lambda board: board["panels"][1]["gridPos"], "h", "4"),
    (lambda board: board["panels"][1]["targets"][0], "expression", "up"),
    (lambda board: board["panels"][1]["options"], "graphMode", "hill"),
    (lambda board: board["panels"][1]["fieldConfig"]["defaults"], "unite", "s"),
]


def self_test(dashboard: dict) -> str:
    """Each of MUTATIONS must be refused."""
    for index, (part, key, value) in enumerate(MUTATIONS):
        broken = copy.deepcopy(dashboard)
        part(broken)[key] = value
        try:
            check(broken)
        except Wrong:
            continue
        raise Wrong(f"mutation {index} passes: {key} = {value!r}")
    return f"{len(MUTATIONS)} broken dashboards refused"


def _written(model: object) -> object:
    return json.loads(JSONEncoder(sort_keys=True).encode(model))


def _check_types(value: object, where: str) -> None:
    """Compares the attributes of models with their annotations, at any depth."""
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_types(item, f"{where}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_types(item, f"{where}.{key}")
    elif type(value).__module__.startswith("grafana_foundation_sdk") and not isinstance(value, enum.Enum):
        for name, hint in typing.get_type_hints(type(value)).items():
            try:
                check_type(getattr(value, name), hint)
            except TypeCheckError as error:
                raise Wrong(f"{where}.{name}: {error}") from None
            _check_types(getattr(value, name), f"{where}.{name}")


def _check_kept(ours: object, theirs: object, where: str) -> None:
    if isinstance(ours, dict):
        if not isinstance(theirs, dict):
            raise Wrong(f"{where}: an object became {theirs!r}")
        for key, value in ours.items():
            if key not in theirs and value not in (None, [], {}):
                raise Wrong(f"{where}.{key}: Grafana's schema has no such field")
            _check_kept(value, theirs.get(key, value), f"{where}.{key}")
    elif isinstance(ours, list):
        if not isinstance(theirs, list) or len(ours) != len(theirs):
            raise Wrong(f"{where}: a list became {theirs!r}")
        for index, (mine, other) in enumerate(zip(ours, theirs)):
            _check_kept(mine, other, f"{where}[{index}]")
    elif ours != theirs:
        raise Wrong(f"{where}: {ours!r} became {theirs!r}")


def _check_layout(panels: list[dict]) -> None:
    taken: dict[tuple[int, int], str] = {}
    numbers = set()
    for panel in panels:
        place, title = panel["gridPos"], panel["title"]
        if panel["id"] in numbers:
            raise Wrong(f"{title}: its number {panel['id']} is taken")
        numbers.add(panel["id"])
        if place["x"] + place["w"] > COLUMNS:
            raise Wrong(f"{title}: it ends right of column {COLUMNS}")
        for column in range(place["x"], place["x"] + place["w"]):
            for line in range(place["y"], place["y"] + place["h"]):
                if (column, line) in taken:
                    raise Wrong(f"{title} lies over {taken[column, line]}")
                taken[column, line] = title
        for target in panel.get("targets", []):
            if target["datasource"] != DATA_SOURCE or panel["datasource"] != DATA_SOURCE:
                raise Wrong(f"{title}: it does not ask the chosen data source")


def queries(dashboard: dict, variables: dict[str, str]) -> list[Query]:
    """All queries, with `$name` replaced as Grafana does."""
    found = []
    row = ""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        for target in panel.get("targets", []):
            expr = target["expr"]
            # Longer names first: none is the beginning of another one's replacement.
            for name in sorted(variables, key=len, reverse=True):
                expr = expr.replace(f"${name}", variables[name])
            if "$" in expr:
                raise Wrong(f"{panel['title']}: a variable that the dashboard does not have: {expr}")
            found.append(Query(f"{row}: {panel['title']}", expr, target.get("instant", False)))
    return found


def variable_query(dashboard: dict, name: str) -> str:
    """The query of a variable that Prometheus fills."""
    for variable in dashboard["templating"]["list"]:
        if variable["name"] == name:
            return variable["query"]
    raise Wrong(f"no variable {name}")
