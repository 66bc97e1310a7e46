"""Which services a list shows: what its address asks for, filtered, sorted and cut into pages by the database."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from django.core.paginator import Page, Paginator
from django.db.models import Case, F, FloatField, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Cast, Greatest

from replicas.core.values import ServiceStatus
from replicas.models import Service
from replicas.models.public import Row
from replicas.web.numbers import whole

PER_PAGE = 50
TEXT_MOST = 200
TROUBLE = "trouble"  # the filter for the statuses that somebody should look at
IN_TROUBLE = (ServiceStatus.FAILED, ServiceStatus.FAILED_CLEANUP, ServiceStatus.NOT_READY)
# Worst first, as the list is sorted by status.
SEVERITY = (
    *IN_TROUBLE,
    ServiceStatus.SHUTTING_DOWN,
    ServiceStatus.CONTROLLER_INIT,
    ServiceStatus.REPLICA_INIT,
    ServiceStatus.NO_REPLICA,
    ServiceStatus.READY,
    ServiceStatus.DOWN,
)
SORTS = ("name", "status", "ready", "version", "age")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list is asked for. Empty means any; `sort` is one of SORTS, with a minus in front the other way round."""

    q: str = ""
    status: str = ""
    provider: str = ""
    owner: str = ""
    sort: str = "name"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Wanted":
        """What an address asks for. What means nothing counts as not asked for: addresses are typed and outlive us."""
        status, sort, page = query.get("status", ""), query.get("sort", ""), query.get("page", "")
        return cls(
            q=query.get("q", "").strip()[:TEXT_MOST],
            status=status if status == TROUBLE or status in set(ServiceStatus) else "",
            provider=query.get("provider", "")[:TEXT_MOST],
            owner=query.get("owner", "")[:TEXT_MOST],
            sort=sort if sort.removeprefix("-") in SORTS else "name",
            page=whole(page, least=1, most=10**6) or 1,
        )

    def row(self) -> Row:
        """As the list's script reads it."""
        return asdict(self)


def matching(wanted: Wanted) -> QuerySet[Service]:
    """The services that are asked for, in no order."""
    found = Service.objects.all()
    if wanted.q:
        text = wanted.q
        found = found.filter(Q(name__icontains=text) | Q(status__icontains=text) | Q(reason__icontains=text))
    if wanted.status:
        found = found.filter(status__in=IN_TROUBLE if wanted.status == TROUBLE else [wanted.status])
    if wanted.provider:
        found = found.filter(version__spec__provider=wanted.provider)
    if wanted.owner:
        found = found.filter(owner__username=wanted.owner)
    return found


def in_order(found: QuerySet[Service], sort: str) -> QuerySet[Service]:
    """Sorted by what was asked for, and by name where that is equal."""
    key = sort.removeprefix("-")
    if key == "status":
        places = [When(status=status, then=Value(place)) for place, status in enumerate(SEVERITY)]
        found = found.annotate(place=Case(*places, default=Value(len(SEVERITY)), output_field=IntegerField()))
    if key == "ready":
        share = Cast(F("ready"), FloatField()) / Greatest(F("target"), Value(1))
        found = found.annotate(share=share)
    # The youngest has the smallest age.
    columns = {"name": "name", "status": "place", "ready": "share", "version": "version__number", "age": "-created_at"}
    column = columns[key]
    if sort.startswith("-"):
        column = column[1:] if column.startswith("-") else f"-{column}"
    return found.order_by(column, *([] if key == "name" else ["name"]))


def page_of(wanted: Wanted) -> Page[Service]:
    """The page that is asked for, or the last one; rows with their version but without its text."""
    found = in_order(matching(wanted), wanted.sort).select_related("version", "owner")
    found = found.defer("version__text", "version__sealed", "version__plan")
    return Paginator(found, PER_PAGE).get_page(wanted.page)


def providers() -> list[str]:
    """The providers that services run on."""
    return _words(Service.objects.order_by().values_list("version__spec__provider", flat=True).distinct())


def owners() -> list[str]:
    """Whose services there are."""
    return _words(Service.objects.order_by().values_list("owner__username", flat=True).distinct())


def _words(found: Iterable[str | None]) -> list[str]:
    return sorted(filter(None, found))
