"""Signing in and changing the password: Django's views with our pages."""

from django.contrib import messages
from django.contrib.auth import views
from django.http import HttpResponse
from django.urls import reverse_lazy


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
        messages.success(self.request, "Your password is changed.")
        return super().form_valid(form)
