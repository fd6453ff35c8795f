#!/usr/bin/env python3
"""Checks the manifests of packaging/kubernetes: would a cluster take them, and does the router run as its pod says?

Usage: test_kubernetes.py IMAGE.tar FOLDER. kustomize builds the manifests, and Kubernetes' own schemas check
each. No cluster takes part. If root runs it and the image of `make container` is there, the container of the pod runs
with the user, capabilities, folders and probes of the pod, without a container engine (image.py).
Run it by `make test-kubernetes`, which installs the packages of requirements-kubernetes.txt.
"""
import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml
from kubernetes_validate.utils import all_versions

from bare_root import own_network
from image import Container, Image

HERE = Path(__file__).resolve().parent / "kubernetes"
KUSTOMIZE = Path(sys.executable).parent / "kustomize"
KINDS = {"Namespace", "ServiceAccount", "ConfigMap", "DaemonSet", "NetworkPolicy"}
PORTS = {(6363, "UDP"), (6363, "TCP")}
# A mistake in the router's container, and a word that the schema's complaint has.
MISTAKES = [
    (lambda router: router.update(livenessprobe={}), "livenessprobe"),
    (lambda router: router["ports"][0].update(hostPort="all"), "all"),
    (lambda router: router.pop("name"), "name"),
]


def built(folder: Path) -> list[dict]:
    done = subprocess.run([KUSTOMIZE, "build", folder], check=True, stdout=subprocess.PIPE, text=True)
    return list(yaml.safe_load_all(done.stdout))


def complaint(document: dict, version: str) -> str:
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return error.message
    return ""


def kind(documents: list[dict], name: str) -> dict:
    return next(document for document in documents if document["kind"] == name)


def router_of(daemon_set: dict) -> dict:
    containers = daemon_set["spec"]["template"]["spec"]["containers"]
    return next(container for container in containers if container["name"] == "router")


def check(folder: Path) -> list[dict]:
    documents = built(folder)
    versions = all_versions()
    assert {document["kind"] for document in documents} == KINDS
    for version in versions:
        for document in documents:
            said = complaint(document, version)
            assert not said, f"{folder.name}: Kubernetes {version} does not take the {document['kind']}: {said}"
        for mistake, word in MISTAKES:
            spoiled = copy.deepcopy(kind(documents, "DaemonSet"))
            mistake(router_of(spoiled))
            assert word in complaint(spoiled, version), f"schemas of {version} do not see a mistake at {word}"
    maps = {document["metadata"]["name"] for document in documents if document["kind"] == "ConfigMap"}
    pod = kind(documents, "DaemonSet")["spec"]["template"]
    volumes = [volume["configMap"] for volume in pod["spec"]["volumes"] if "configMap" in volume]
    assert {volume["name"] for volume in volumes} == maps
    ports = router_of(kind(documents, "DaemonSet"))["ports"]
    assert {(port["hostPort"], port["protocol"]) for port in ports} == PORTS
    policy = kind(documents, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert {(port["port"], port["protocol"]) for rule in policy["ingress"] for port in rule["ports"]} == PORTS
    print(f"{folder.name}: {len(documents)} manifests keep to Kubernetes' schemas {versions[0]} to {versions[-1]}, "
          f"which see {len(MISTAKES)} mistakes")
    return documents


def runs_as_its_pod_says(documents: list[dict], archive: Path, folder: Path) -> None:
    pod = kind(documents, "DaemonSet")["spec"]["template"]["spec"]
    router = router_of(kind(documents, "DaemonSet"))
    shutil.rmtree(folder, ignore_errors=True)
    image = Image(archive, folder / "root")
    volumes = {}
    for mount in router["volumeMounts"]:
        volume = next(volume for volume in pod["volumes"] if volume["name"] == mount["name"])
        outside = folder / mount["name"]
        outside.mkdir()
        volumes[mount["mountPath"]] = outside
        if "configMap" in volume:
            for name, text in kind(documents, "ConfigMap")["data"].items():
                (outside / name).write_text(text)
    security = router["securityContext"]
    assert security["capabilities"]["drop"] == ["ALL"] and security["readOnlyRootFilesystem"]
    environment = {variable["name"]: variable["value"] for variable in router["env"]}
    socket = volumes["/run/namewire"] / "nfd/nfd.sock"
    # The second router finds the folder that the first one made.
    for _ in range(2):
        container = Container(image, volumes, f"{security['runAsUser']}:{security['runAsGroup']}", router["args"],
                              environment, tuple(security["capabilities"]["add"]))
        container.wait_until_healthy(*router["readinessProbe"]["exec"]["command"])
        status, said = container.run(*router["livenessProbe"]["exec"]["command"])
        assert status == 0, said
        process = Path(f"/proc/{container.process.pid}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in process.splitlines())
        assert fields["Uid"].split() == ["6363"] * 4 and int(fields["CapPrm"], 16) == 0, "the router kept privileges"
        # Every user may connect, and the router asks the kernel who it is.
        assert socket.stat().st_mode & 0o777 == 0o666
        ended = container.stop()
        assert ended == 0, f"after SIGTERM it ended with {ended}: {container.said}"
        assert not socket.exists(), "the socket is left"
        container.remove()
    shutil.rmtree(folder)
    print("the router ran as its pod says: ready, without privileges, ended with status 0, started again")


def main() -> None:
    archive, folder = (Path(argument).resolve() for argument in sys.argv[1:3])
    runs = os.geteuid() == 0 and archive.exists()
    if runs:
        own_network()
    documents = check(HERE / "router")
    check(HERE / "ndn-dv")
    if runs:
        runs_as_its_pod_says(documents, archive, folder)
    else:
        print("the pod does not run here: it needs root and the image of `make container`")
    print("no cluster has run these manifests")


main()
