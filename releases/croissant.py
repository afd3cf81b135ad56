"""croissant.json: the release described in MLCommons' Croissant 1.0 with its Responsible-AI extension.

mlcroissant lets unknown `rai:` keys and wrong digests pass; `releases.documents` checks both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepdown.releases.layout import ROWS, Manifest, ReleasedFile
from stepdown.releases.parquet import COLUMNS, SHARD_NAME

CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The standard context of Croissant 1.0 (the specification's appendix), with `rai`."""

RAI_KEYS = frozenset(
    {
        "rai:dataCollection",
        "rai:dataCollectionType",
        "rai:dataCollectionMissingData",
        "rai:dataCollectionRawData",
        "rai:dataCollectionTimeframe",
        "rai:dataCollectionTimeFrame",
        "rai:dataImputationProtocol",
        "rai:dataManipulationProtocol",
        "rai:dataPreprocessingProtocol",
        "rai:dataAnnotationProtocol",
        "rai:dataAnnotationPlatform",
        "rai:dataAnnotationAnalysis",
        "rai:annotationsPerItem",
        "rai:annotatorDemographics",
        "rai:machineAnnotationTools",
        "rai:dataReleaseMaintenancePlan",
        "rai:personalSensitiveInformation",
        "rai:dataSocialImpact",
        "rai:dataBiases",
        "rai:dataLimitations",
        "rai:dataUseCases",
    }
)
"""The properties of the Croissant RAI specification 1.0 (mlcommons.org/croissant/RAI/1.0). One is spelt in two ways, by
the specification and by mlcroissant."""

_TYPES = {"string": "sc:Text", "int32": "sc:Integer"}
_MEANING = {
    "id": "benchmark/instance_id/step_index",
    "benchmark": "The workload.",
    "instance_id": "The task within the workload.",
    "step_index": "The step of the trajectory, from 1.",
    "total_steps": "Length of the final mixed trajectory.",
    "messages": "The prefix that a router sees, as JSON text.",
    "tools": "The tool definitions of the prefix, as JSON text; empty where there are none.",
    "target_tier": "The label: the cheapest tier that was accepted.",
    "target_tier_id": "The label's id.",
    "group": "What honest evaluation holds out whole.",
    "split": "train or test; a group is in one of them.",
}


def croissant(manifest: Manifest, files: Mapping[str, ReleasedFile]) -> dict[str, Any]:
    """The description of a release whose data files are `files`."""
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": manifest.name,
        "description": f"{manifest.rows} labelled steps of successful agent trajectories: for every LLM call the "
        "cheapest model tier that still lets the whole task pass, proved by executing the mixed-model trajectory.",
        "version": manifest.version,
        "datePublished": manifest.published,
        "license": manifest.license,
        "isLiveDataset": False,
        "citeAs": f"{manifest.name}, version {manifest.version}. Labels by the protocol of TwinRouterBench, "
        "arXiv:2605.18859.",
        **({"creator": {"@type": "sc:Organization", "name": manifest.creator}} if manifest.creator else {}),
        **({"url": manifest.url} if manifest.url else {}),
        **_responsible(manifest),
        "distribution": [
            *(_file_object(name, file) for name, file in sorted(files.items())),
            {
                "@type": "cr:FileSet",
                "@id": "shards",
                "name": "shards",
                "encodingFormat": "application/x-parquet",
                "includes": "data/*.parquet",
            },
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "description": "One row per labelled step.",
                "key": {"@id": "rows/id"},
                "field": [_field(name, kind) for name, kind in COLUMNS],
            }
        ],
    }


def _file_object(name: str, file: ReleasedFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": "application/x-parquet" if SHARD_NAME.fullmatch(name) else "application/jsonlines",
        "sha256": file.sha256,
        "description": "All rows, as JSON." if name == ROWS else "A shard of the rows.",
    }


def _field(name: str, kind: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"rows/{name}",
        "name": name,
        "description": _MEANING[name],
        "dataType": _TYPES[kind],
        "source": {"fileSet": {"@id": "shards"}, "extract": {"column": name}},
    }


def _responsible(manifest: Manifest) -> dict[str, Any]:
    audited = [run.audit for run in manifest.runs if run.audit is not None]
    sampled, lowest, lowered = (
        sum(count for audit in audited if isinstance(count := audit.get(name), int))
        for name in ("sampled", "lowest", "lowered")
    )
    benchmarks = ", ".join(manifest.labels)
    return {
        "rai:dataCollection": f"Trajectories of a strong model on tasks of public benchmarks ({benchmarks}), kept "
        "where the benchmark's own predicate passed.",
        "rai:dataCollectionType": ["Software Collection", "Secondary Data Analysis"],
        "rai:dataCollectionMissingData": f"{_left_out(manifest)} instances of the runs are left out; manifest.json "
        "counts them by reason. An instance is here with all its steps or not at all.",
        "rai:dataCollectionRawData": "The benchmarks' tasks; see LICENSE.md.",
        "rai:dataPreprocessingProtocol": "Messages keep role, content, tool_calls, tool_call_id and name; call ids are "
        "renumbered, so that nothing tells which model wrote a step.",
        "rai:dataAnnotationProtocol": "Per step, models of cheaper tiers make the step and the strong model goes on "
        "from what really happened; the cheapest tier whose trajectory passes is the label. See README.md.",
        "rai:dataAnnotationAnalysis": f"{sampled - lowest} steps were judged by a person, who lowered {lowered} by one "
        "tier."
        if audited
        else "No step of these workloads was to be judged by a person.",
        "rai:machineAnnotationTools": ["stepdown"],
        "rai:dataUseCases": "Training and scoring routers that choose a model tier per step.",
        "rai:dataLimitations": "A label speaks of one pool, one harness and one prefix. Tasks that the strong model "
        "did not solve are not here.",
        "rai:dataBiases": "The tasks are those of the named benchmarks, mostly English, and may be known to the "
        "models.",
        "rai:dataSocialImpact": "Cheaper and less energy for the same outcome; a router that errs lets a task fail.",
        "rai:personalSensitiveInformation": "None is added; texts are the benchmarks' own, and may name public "
        "persons.",
        "rai:dataReleaseMaintenancePlan": "A changed pool is a new release with its own version; `stepdown diff` "
        "tells them apart.",
    }


def _left_out(manifest: Manifest) -> int:
    return sum(sum(reasons.values()) for reasons in manifest.left_out.values())
