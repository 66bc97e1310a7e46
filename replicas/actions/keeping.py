"""Which versions' files are kept: those that a replica runs from, or that the service may still turn to."""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from replicas.core.values import Desired, RolloutState
from replicas.models import Replica, Rollout, Service, ServiceVersion
from replicas.models.fields import ALIVE


def last_other(service: Service) -> ServiceVersion | None:
    """The version that proved itself last among those that ask for something else than the active one."""
    active = service.version
    if active is None:
        return None
    others = _proved(service.pk).exclude(digest=active.digest, files_digest=active.files_digest)
    newest: ServiceVersion | None = others.order_by("-proved").first()
    return newest


def has_proved(service: Service, version: ServiceVersion) -> bool:
    """True when the version, or one with the same text and files, has proved itself or is what a rollout turns to."""
    newest = Rollout.objects.filter(service=service).order_by("-id").first()
    if newest is not None and newest.good_version == version.number:
        return True
    proved: bool = _proved(service.pk).filter(digest=version.digest, files_digest=version.files_digest).exists()
    return proved


def kept_files(service_id: int) -> set[str]:
    """The `files_uid`s of a service that must not go."""
    return set(kept_versions().filter(service_id=service_id).values_list("files_uid", flat=True))


def kept_versions() -> QuerySet[ServiceVersion]:
    """The versions, of all services, whose files are needed.

    Of a service that is wanted: the active one; the one that its latest rollout came to and the one that it turns back
    to; and the last other that proved itself, to which a rollback goes. Of any service: those of live replicas.
    """
    live = Replica.objects.filter(ALIVE, version=OuterRef("pk"))
    newest = Rollout.objects.filter(service=OuterRef("service")).order_by("-id")
    others = _proved(OuterRef("service")).exclude(
        digest=OuterRef("service__version__digest"), files_digest=OuterRef("service__version__files_digest")
    )
    wanted = Q(service__desired=Desired.UP) & (
        Q(pk__in=Service.objects.exclude(version=None).values("version"))
        | Q(number=Subquery(newest.values("good_version")[:1]))
        | Q(number=Subquery(newest.values("to_version")[:1]))
        | Q(pk=Subquery(others.order_by("-proved").values("pk")[:1]))
    )
    return ServiceVersion.objects.filter(Q(Exists(live)) | wanted)


def _proved(service: Any) -> Any:
    """A service's versions that proved themselves, each with the id of the last rollout that says so (`proved`)."""
    good = Rollout.objects.filter(
        service=OuterRef("service"), to_version=OuterRef("number"), state=RolloutState.SUCCEEDED, best__gt=0
    )
    versions = ServiceVersion.objects.filter(service=service)
    return versions.annotate(proved=Subquery(good.order_by("-id").values("id")[:1])).filter(proved__isnull=False)
