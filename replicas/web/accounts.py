"""Signing in, the password, and the tokens that scripts of the user have: Django's views with our pages."""

import logging
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth import views
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from replicas import clock
from replicas.actions import roles
from replicas.actions import tokens as actions
from replicas.actions.transition import writing
from replicas.core.values import Scope
from replicas.models import ApiToken
from replicas.web.access import DEPLOY, OPERATE, SEE, allowed, refusal
from replicas.web.forms import TokenForm
from replicas.web.middleware import address
from replicas.web.throttle import Failures

log = logging.getLogger(__name__)
FAILURES = Failures("sign-in", most=10, seconds=60)
NEEDS = {Scope.READ: SEE, Scope.OPERATE: OPERATE, Scope.DEPLOY: DEPLOY}


class SignIn(AuthenticationForm):
    """Name and password. After some wrong ones of a name none is looked at for a while, from that address."""

    def clean(self) -> dict[str, Any]:
        """See AuthenticationForm."""
        whose = f"{address(self.request)} {str(self.cleaned_data.get('username', '')).lower()}"
        if FAILURES.too_many(whose):
            raise ValidationError(
                f"There were {FAILURES.most} wrong passwords for this name. Wait for {FAILURES.seconds} seconds, and"
                " try again.",
                code="throttled",
            )
        try:
            data: dict[str, Any] = super().clean()
        except ValidationError:
            FAILURES.note(whose)
            log.warning("a sign-in as %r from %s failed", whose.partition(" ")[2], address(self.request) or "nowhere")
            raise
        FAILURES.forget(whose)
        return data


class Login(views.LoginView):
    """The login page; somebody who is signed in already goes on."""

    template_name = "account/login.html"
    redirect_authenticated_user = True
    authentication_form = SignIn


class PasswordChange(views.PasswordChangeView):
    """A new password for the user who is signed in; other sessions of theirs end with it."""

    template_name = "account/password.html"
    success_url = reverse_lazy("services")

    def form_valid(self, form: object) -> HttpResponse:
        """Store it, and say so."""
        with writing():
            answer = super().form_valid(form)
            roles.note_password(self.request.user, "by themselves")
        messages.success(self.request, "Your password is changed.")
        return answer


@allowed(SEE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("text")
def tokens(request: HttpRequest) -> HttpResponse:
    """The user's tokens; a new one is shown in the answer that makes it, and never again."""
    form, text, made = TokenForm(request.POST or None, scopes=scopes(request)), "", None
    if request.method == "POST" and form.is_valid() and not _named(request, form):
        data = form.cleaned_data
        expires_at = clock.now() + timedelta(days=data["days"]) if data["days"] else None
        scope, services = Scope(data["scope"]), data["services"]
        made, text = actions.make(request.user, data["name"], scope, services=services, expires_at=expires_at)
        form = TokenForm(scopes=scopes(request))
    now = clock.now()
    rows = ApiToken.objects.select_related("owner").filter(owner=request.user.pk)
    context: dict[str, Any] = {
        "form": form,
        "made": made,
        "text": text,
        "tokens": [(token, actions.state(token, now)) for token in rows],
    }
    return render(request, "account/tokens.html", context, status=400 if form.errors else 200)


def _named(request: HttpRequest, form: TokenForm) -> bool:
    """Whether a token of theirs has the name already, which the form tells: a page that is loaded again posts again."""
    now = clock.now()
    mine = ApiToken.objects.filter(owner=request.user.pk, name=form.cleaned_data["name"])
    taken = any(actions.state(token, now) == "ACTIVE" for token in mine)
    if taken:
        form.add_error(
            "name",
            "You have a token of this name, whose text was shown when it was made. Revoke it, or choose another name.",
        )
    return taken


def scopes(request: HttpRequest) -> list[Scope]:
    """How far a token of the user can reach: no further than they may themselves."""
    return [scope for scope, need in NEEDS.items() if not refusal(request.user, need)]


@allowed(SEE)
@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """End one of the user's own tokens for good."""
    token = actions.revoke(token_id, actor=request.user.get_username(), owner=request.user)
    if token is None:
        raise Http404("You have no such token.")
    messages.success(request, f"The token {token.name} is revoked.")
    return redirect("tokens")
