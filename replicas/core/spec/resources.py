"""The `resources` section: what a replica needs, in SkyPilot's terms."""

from typing import Annotated, Any

from pydantic import Discriminator, Field, PlainValidator, Tag, WithJsonSchema

from replicas.core.spec.errors import refuse
from replicas.core.spec.kinds import (
    Accelerators,
    Cost,
    Cpus,
    DiskSize,
    Flag,
    FreeList,
    FreeMap,
    Labels,
    Line,
    Memory,
    Ports,
    Priority,
    Section,
    shape,
)
from replicas.core.spec.scalars import as_flag, as_free, as_text, describe

MOST_CHOICES = 100


def _autostop(value: object) -> Any:
    if isinstance(value, dict):
        return as_free(value)
    if isinstance(value, bool) or (isinstance(value, str) and value.lower() in ("true", "false")):
        return as_flag(value)
    if isinstance(value, int | str):
        return str(value) if isinstance(value, int) else as_text(value)
    raise refuse(f"must be true, false, minutes, a time such as 10m, or a mapping, but is {describe(value)}")


def _image(value: object) -> Any:
    return (
        {str(region): as_text(image) for region, image in value.items()} if isinstance(value, dict) else as_text(value)
    )


Autostop = Annotated[
    Any, PlainValidator(_autostop), WithJsonSchema({"type": ["boolean", "integer", "string", "object"]})
]
Image = Annotated[Any, PlainValidator(_image), WithJsonSchema({"type": ["string", "object"]})]
Recovery = Annotated[
    Annotated[Line, Tag("<text>")] | Annotated[FreeMap, Tag("<fields>")],
    Discriminator(shape),
]


class AcceleratorArgs(Section):
    """Details of TPUs."""

    runtime_version: Line | None = None
    tpu_name: Line | None = None
    tpu_vm: Flag | None = None
    gcp_queued_resource: Flag | None = None


class Alternative(Section):
    """One choice of resources; every field is optional."""

    cloud: Line | None = Field(default=None, description="Cloud to use, such as aws, gcp or kubernetes.")
    region: Line | None = None
    zone: Line | None = None
    infra: Line | None = Field(
        default=None, description="cloud/region/zone in one, such as aws/us-east-1 or k8s/context."
    )
    cpus: Cpus | None = Field(default=None, description="Number of CPUs: 4, or 4+ for at least 4.")
    memory: Memory | None = Field(default=None, description="Memory in GB: 16, 16+, or with a unit: 64GB.")
    instance_type: Line | None = None
    use_spot: Flag | None = Field(default=None, description="Take machines that may be taken back.")
    job_recovery: Recovery | None = None
    volumes: FreeList | None = None
    disk_size: DiskSize | None = Field(default=None, description="Disk in GB, or with a unit: 256GB.")
    ephemeral_storage: DiskSize | None = None
    disk_tier: Line | None = None
    network_tier: Line | None = None
    local_disk: Line | None = None
    max_hourly_cost: Cost | None = None
    ports: Ports | None = Field(default=None, description="Ports to open: 8080, 8000-8010, or a list.")
    labels: Labels | None = None
    accelerators: Accelerators | None = Field(
        default=None, description="A100:8, {A100: 8}, or a list in order of preference."
    )
    accelerator_args: AcceleratorArgs | None = None
    image_id: Image | None = Field(default=None, description="Image, such as docker:python:3.12.")
    autostop: Autostop | None = None
    priority: Priority | None = None
    priority_class: Line | None = None


class Resources(Alternative):
    """What a replica needs; `any_of` and `ordered` give choices that add to the fields beside them."""

    any_of: tuple[Alternative, ...] | None = Field(
        default=None, max_length=MOST_CHOICES, description="Choices, the cheapest first."
    )
    ordered: tuple[Alternative, ...] | None = Field(
        default=None, max_length=MOST_CHOICES, description="Choices, tried in this order."
    )

    def choices(self) -> list[Alternative]:
        """The section itself, or each of its choices with the common fields filled in."""
        listed = self.any_of or self.ordered
        if not listed:
            return [self]
        common = {name: getattr(self, name) for name in Alternative.model_fields if getattr(self, name) is not None}
        return [
            choice.model_copy(update={k: v for k, v in common.items() if getattr(choice, k) is None})
            for choice in listed
        ]
