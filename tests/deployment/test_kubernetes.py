"""The manifests of deploy/kubernetes are valid and agree with each other. No cluster is needed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.cli import lamina
from lamina.configuration.setting_texts import VARIABLES
from lamina.spark.spark_configuration import combined
from master_log.connections.java_properties import properties
from tests.fix_services import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "kubernetes"
VERSION = "1.34"


def resources() -> list[dict[str, Any]]:
    """Every resource of the folder, the items of each list, and the executors' pod."""
    documents = [
        document
        for file in ("lamina.yaml", "secret.yaml", "schedule.yaml")
        for document in yaml.safe_load_all(text(file))
    ]
    apart = [
        item for document in documents for item in (document["items"] if document["kind"] == "List" else [document])
    ]
    [template] = [
        document["data"]["executor.yaml"] for document in apart if "executor.yaml" in document.get("data", {})
    ]
    return [*apart, {**yaml.safe_load(template), "metadata": {"name": "executor"}}]


def text(file: str) -> str:
    return (FOLDER / file).read_text()


def pods() -> dict[str, dict[str, Any]]:
    """The pods, by the name of their resource."""
    specs = {}
    for resource in resources():
        match resource["kind"]:
            case "Deployment":
                specs[resource["metadata"]["name"]] = resource["spec"]["template"]["spec"]
            case "CronJob":
                specs[resource["metadata"]["name"]] = resource["spec"]["jobTemplate"]["spec"]["template"]["spec"]
            case "Pod":
                specs["executor"] = resource["spec"]
    return specs


@pytest.mark.parametrize(
    "resource", resources(), ids=lambda resource: f"{resource['kind']} {resource['metadata']['name']}"
)
def test_every_resource_matches_the_schema_of_kubernetes(resource: dict[str, Any]) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    kubernetes_validate.validate(resource, VERSION, strict=True)


def test_the_kustomization_lists_every_file() -> None:
    listed = yaml.safe_load(text("kustomization.yaml"))["resources"]
    assert {*listed, "kustomization.yaml", "airflow-values.yaml"} == {path.name for path in FOLDER.glob("*.yaml")}


def test_pods_run_the_image_as_its_own_user() -> None:
    """By number, because Kubernetes cannot tell from a name that a user is not root."""
    [user] = re.findall(r"useradd .*--uid (\d+)", (REPOSITORY / "Dockerfile").read_text())
    for name, pod in pods().items():
        assert pod["securityContext"]["runAsUser"] == int(user), name
        assert {container["image"] for container in pod["containers"]} == {"lamina"}, name


def test_pods_run_existing_commands() -> None:
    for name, pod in pods().items():
        program, *words = pod["containers"][0]["command"]
        if program == "lamina":
            assert words[0] in lamina.commands, name
        else:
            assert (REPOSITORY / Path(words[0]).relative_to("/opt/lamina")).exists(), name


def test_every_mounted_volume_is_declared() -> None:
    claims = {resource["metadata"]["name"] for resource in resources() if resource["kind"] == "PersistentVolumeClaim"}
    maps = {resource["metadata"]["name"] for resource in resources() if resource["kind"] == "ConfigMap"}
    for name, pod in pods().items():
        volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
        for mount in pod["containers"][0].get("volumeMounts", ()):
            volume = volumes[mount["name"]]
            named = volume.get("persistentVolumeClaim", {}).get("claimName") or volume["configMap"]["name"]
            assert named in claims | maps, name


def test_object_storage_keys_reach_every_spark_process_and_no_password_reaches_an_executor() -> None:
    secrets = {
        name: {
            origin["secretRef"]["name"] for origin in pod["containers"][0].get("envFrom", ()) if "secretRef" in origin
        }
        for name, pod in pods().items()
    }
    assert secrets.pop("executor") == {"s3"}
    assert secrets.pop("console") == {"lamina"}
    assert {*map(frozenset, secrets.values())} == {frozenset({"lamina", "s3"})}
    assert {"secretRef": {"name": "s3"}} in yaml.safe_load(yaml.safe_load(text("airflow-values.yaml"))["extraEnvFrom"])
    assert {"lamina", "s3"} == {
        resource["metadata"]["name"] for resource in resources() if resource["kind"] == "Secret"
    }


def test_every_lamina_variable_is_a_setting() -> None:
    stored = {name for resource in resources() for name in (resource.get("data") or resource.get("stringData") or {})}
    inside = {resource["name"] for pod in pods().values() for resource in pod["containers"][0].get("env", ())}
    variables = {*VARIABLES.values(), *(f"{variable}_FILE" for variable in VARIABLES.values())}
    assert {name for name in stored | inside if name.startswith("LAMINA_")} <= variables


def test_spark_conf_is_accepted_and_names_the_executor_template() -> None:
    [spark] = [resource["data"] for resource in resources() if "spark.conf" in (resource.get("data") or {})]
    settings = combined({}, properties(spark["spark.conf"]))
    assert settings["spark.kubernetes.executor.podTemplateFile"] == "/etc/lamina/executor.yaml"
    assert settings["spark.kubernetes.container.image"] == "lamina"


def test_the_executor_script_parses_in_bash() -> None:
    subprocess.run(["bash", "-n", FOLDER / "executor.sh"], check=True)
