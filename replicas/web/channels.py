"""The page of notices: who is told when something fails, and what became of what was sent."""

from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from replicas import clock
from replicas.actions import notices as actions
from replicas.actions.operations import Refused
from replicas.actions.powers import channel_refusal
from replicas.core.values import NoticeKind
from replicas.core.wording import sentence
from replicas.models import Notice, NoticeChannel
from replicas.models.public import Row, channel_row, notice_row, stamp
from replicas.providers import sending
from replicas.web.access import ADMINISTER, DEPLOY, SEE, allowed, powers
from replicas.web.forms import ChannelForm, SwitchForm
from replicas.web.replies import done, invalid

SHOWN = 50


@allowed(SEE)
@never_cache
@require_safe
def notices(request: HttpRequest) -> HttpResponse:
    """Channels, the newest notices, and the form for a new channel."""
    return page(request, form_of(request))


@allowed(SEE)
@never_cache
@require_safe
def notices_json(request: HttpRequest) -> JsonResponse:
    """What of the page changes by itself."""
    return JsonResponse(state())


def state() -> Row:
    """`{now, channels, notices}`: all channels, and the newest notices, as their public rows."""
    newest = Notice.objects.select_related("channel").order_by("-id")[:SHOWN]
    return {
        "now": stamp(clock.now()),
        "channels": [channel_row(row) for row in NoticeChannel.objects.select_related("service")],
        "notices": [notice_row(row) for row in newest],
    }


def form_of(request: HttpRequest, data: Any = None) -> ChannelForm:
    """The form as the user may fill it in: who does not administer names a service."""
    return ChannelForm(data, everything=request.user.has_perm(ADMINISTER), auto_id="channel_%s")


def page(request: HttpRequest, form: ChannelForm, **more: Any) -> HttpResponse:
    """The page; 400 where the form that was posted has faults."""
    rows = NoticeChannel.objects.select_related("service", "service__owner")
    context = {
        "page": {"snapshot": state(), "url": reverse("notices.json")},
        "can": powers(request),
        "form": form,
        "channels": [(row, not channel_refusal(request.user, row.service)) for row in rows],
        **more,
    }
    return render(request, "notices.html", context, status=400 if form.errors else 200)


@allowed(DEPLOY)
@never_cache
@require_POST
@sensitive_post_parameters("url")
@sensitive_variables("data", "form", "key")
def add(request: HttpRequest) -> HttpResponse:
    """Make a channel; the key with which its receiver checks signatures is shown in this answer, and never again."""
    form = form_of(request, request.POST)
    if not form.is_valid():
        return page(request, form)
    data = form.cleaned_data
    if reason := channel_refusal(request.user, data["service"]):
        raise PermissionDenied(reason)
    kind = NoticeKind(sending.kind_of(data["url"]))
    try:
        row, key = actions.add(
            data["name"],
            kind,
            data["url"],
            sending.check(kind, data["url"], link_local=settings.ROLLCALL.notice_link_local),
            service=data["service"],
            occasions=data["occasions"],
            actor=request.user.get_username(),
            owner=request.user,
        )
    except sending.Unusable as unusable:
        form.add_error("url", sentence(unusable))
        return page(request, form)
    except Refused as refused:
        form.add_error("name", sentence(refused))
        return page(request, form)
    return page(request, form_of(request), made=row, key=key)


def found(request: HttpRequest, channel_id: int) -> NoticeChannel:
    """The channel, where the user may change it. Raises Http404 and PermissionDenied."""
    row = actions.find(channel_id)
    if row is None:
        raise Http404("There is no such channel. It may have been removed.")
    if reason := channel_refusal(request.user, row.service):
        raise PermissionDenied(reason)
    return row


@allowed(DEPLOY)
@require_POST
def test(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Send a message that only says that it works."""
    row = found(request, channel_id)
    actions.test(row.pk, actor=request.user.get_username())
    return done(request, f"A test is on its way to {row.name}; what came of it shows below.", to=reverse("notices"))


@allowed(DEPLOY)
@require_POST
def switch(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Tell it nothing for now, or again."""
    row, form, to = found(request, channel_id), SwitchForm(request.POST), reverse("notices")
    if not form.is_valid():
        return invalid(request, form, to=to)
    on = form.cleaned_data["on"]
    actions.switch(row.pk, on, actor=request.user.get_username())
    said = "is told again, of what happens from now on" if on else "is told nothing until it is switched on"
    return done(request, f"{row.name} {said}.", to=to)


@allowed(DEPLOY)
@require_POST
def remove(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Forget it, with its address."""
    row = found(request, channel_id)
    actions.remove(row.pk, actor=request.user.get_username())
    return done(request, f"{row.name} is removed, with its address.", to=reverse("notices"))
