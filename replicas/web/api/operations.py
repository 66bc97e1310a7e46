"""Launches and downs over the API: listed, cancelled, tried again."""

from typing import Literal

from django.http import HttpRequest
from ninja import Query

from replicas.actions import operations
from replicas.actions.powers import OPERATE, SEE
from replicas.models import Operation
from replicas.models.fields import ALIVE
from replicas.models.public import Row, operation_row
from replicas.web.api import schemas
from replicas.web.api.acting import user_of
from replicas.web.api.door import route, visible

MOST = 500


@route("GET", "/operations", SEE, gives=schemas.Operations)
def list_operations(
    request: HttpRequest,
    service: str | None = None,
    which: Literal["live", "all"] = Query("live", description="all: also those that have ended"),
    limit: int = Query(100, ge=1, le=MOST),
) -> Row:
    """List launches and downs, newest first."""
    rows = visible(request, Operation.objects.select_related("replica", "service"), "service__name").order_by("-pk")
    if service is not None:
        rows = rows.filter(service__name=service)
    if which == "live":
        rows = rows.filter(ALIVE)
    return {"operations": [row_of(operation) for operation in rows[:limit]]}


@route("GET", "/operations/{int:operation_id}", SEE, gives=schemas.OperationRow)
def get_operation(request: HttpRequest, operation_id: int) -> Row:
    """Give one launch or down."""
    return again(operation_id)


@route("POST", "/operations/{int:operation_id}/cancel", OPERATE, gives=schemas.OperationRow)
def cancel(request: HttpRequest, operation_id: int) -> Row:
    """Stop a launch; its replica goes with it."""
    return again(operations.request_cancel(operation_id, actor=user_of(request)).pk)


@route("POST", "/operations/{int:operation_id}/retry", OPERATE, gives=schemas.OperationRow)
def retry(request: HttpRequest, operation_id: int) -> Row:
    """Let a wait end now, or try a failed down again."""
    return again(operations.request_retry(operation_id, actor=user_of(request)).pk)


def again(operation_id: int) -> Row:
    """The operation as it is now."""
    return row_of(Operation.objects.select_related("replica", "service").get(pk=operation_id))


def row_of(operation: Operation) -> Row:
    """As schemas.OperationRow has it."""
    return operation_row(operation) | {"service": operation.service.name}
