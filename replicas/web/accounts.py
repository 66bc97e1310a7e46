"""Signing in, the password, and the tokens that scripts of the user have: Django's views with our pages."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth import views
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

NEEDS = {Scope.READ: SEE, Scope.OPERATE: OPERATE, Scope.DEPLOY: DEPLOY}


class Login(views.LoginView):
    """The login page; somebody who is signed in already goes on."""

    template_name = "account/login.html"
    redirect_authenticated_user = True


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
    if request.method == "POST" and form.is_valid():
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
