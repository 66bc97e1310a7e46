"""The forms of the dashboard: what may be posted, with its bounds."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.validators import ProhibitNullCharactersValidator

from replicas.core.spec.kinds import MOST_REPLICAS
from replicas.core.values import Occasion, Scope
from replicas.models import Service
from replicas.web.numbers import WholeField

BULK_MOST = 500  # things that one post acts on


class ReleaseForm(forms.Form):
    """`expected`: what `scaling.wish` was when it was asked for; without it whatever it is."""

    expected = forms.CharField(max_length=20, required=False)


class ScaleForm(ReleaseForm):
    """How many replicas are wanted."""

    target = WholeField(min_value=0, max_value=MOST_REPLICAS)


class RestartForm(forms.Form):
    """`expected`: the version that was active when the page was drawn, so that a double click restarts once."""

    expected = WholeField(min_value=0)


class SteerForm(forms.Form):
    """`rollout`: the id of the rollout that the page showed, so that a late click does not meet another one."""

    rollout = WholeField(min_value=1, required=False)


class RollbackForm(forms.Form):
    """`version`: where to go back to, without it the last good one; `expected`: the version that was active."""

    version = WholeField(min_value=1, required=False)
    message = forms.CharField(max_length=500, required=False)
    expected = WholeField(min_value=0, required=False)


class PurgeForm(forms.Form):
    """For down and terminate: whether the history goes as well."""

    purge = forms.BooleanField(required=False)


class ManyField(forms.Field):
    """Each value that was posted under the name, once, at most BULK_MOST; `kind` reads one."""

    widget = forms.MultipleHiddenInput

    def __init__(self, kind: type, **options: Any) -> None:
        super().__init__(**options)
        self.kind = kind

    def to_python(self, value: Any) -> list[Any]:
        """The values. Raises ValidationError."""
        try:
            found = list(dict.fromkeys(self.kind(each) for each in value or []))
        except ValueError:
            raise forms.ValidationError("One of them is no number.") from None
        if len(found) > BULK_MOST:
            raise forms.ValidationError(f"{len(found)} are too many at once; {BULK_MOST} are the most.")
        return found


class BulkServicesForm(forms.Form):
    """What to do to the services `names`; `target` is how many replicas each is to have, to scale."""

    verb = forms.ChoiceField(choices=[(verb, verb) for verb in ("restart", "scale", "down")])
    names = ManyField(str)
    target = WholeField(min_value=0, max_value=MOST_REPLICAS, required=False)

    def clean(self) -> dict[str, Any]:
        """Scaling needs a number."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("verb") == "scale" and data.get("target") is None and "target" not in self.errors:
            self.add_error("target", "Say how many replicas each is to have.")
        return data


class BulkOperationsForm(forms.Form):
    """What to do to the operations `ids`."""

    verb = forms.ChoiceField(choices=[(verb, verb) for verb in ("cancel", "retry")])
    ids = ManyField(int)


class TokenForm(forms.Form):
    """A new API token: what for, how far it reaches, which services, and for how long."""

    name = forms.CharField(max_length=100, help_text="What uses it, such as: CI of the shop.")
    scope = forms.ChoiceField(help_text="read sees; operate also scales, restarts and takes down; deploy also applies.")
    services = forms.CharField(
        max_length=2000, required=False, label="Only for", help_text="Names of services, by comma; empty for all."
    )
    days = forms.TypedChoiceField(
        label="Expires in",
        coerce=int,
        choices=[("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("0", "never")],
        initial="90",
    )

    def __init__(self, *args: Any, scopes: Sequence[Scope], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["scope"].choices = [(scope.value, scope.value) for scope in scopes]  # type: ignore[attr-defined]

    def clean_services(self) -> list[str]:
        """The names."""
        return [name for part in str(self.cleaned_data["services"]).split(",") if (name := part.strip())]


class ChannelForm(forms.Form):
    """A new receiver of notices: its name and address, what it is told of, and of which service."""

    name = forms.CharField(max_length=100, help_text="By which people know it, such as: on call.")
    url = forms.CharField(
        label="Address",
        max_length=2000,
        help_text="https://… for a webhook of your own; or mail or chat as apprise writes it: mailtos://, slack://, …",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    service = forms.ModelChoiceField(
        Service.objects.none(), required=False, to_field_name="name", empty_label="all services", label="About"
    )
    occasions = forms.MultipleChoiceField(
        label="Told of",
        choices=[(each.value, each.value.replace("_", " ")) for each in Occasion],
        initial=[each.value for each in Occasion],
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, everything: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        service: Any = self.fields["service"]
        service.queryset = Service.objects.order_by("name")
        if not everything:
            service.required, service.empty_label = True, "choose one"


class SwitchForm(forms.Form):
    """`on`: whether it is to be told from now on."""

    on = forms.BooleanField(required=False)


class PruneForm(forms.Form):
    """`days`: what ended before that goes."""

    days = forms.FloatField(min_value=0, max_value=36500)


class SpecText(forms.CharField):
    """Any text at all: the parser says at which line and why it is refused, also an empty or an endless one."""

    def __init__(self) -> None:
        super().__init__(strip=False, required=False, widget=forms.Textarea)
        self.validators = [each for each in self.validators if not isinstance(each, ProhibitNullCharactersValidator)]


class SpecForm(forms.Form):
    """A YAML text that is to become a version.

    `expected` is the version that the text was made from, of the service with the id `of`: another one may have its
    name by now; `over` is a newer version that the user has seen and wants replaced.
    """

    text = SpecText()
    name = forms.CharField(max_length=200, required=False)
    message = forms.CharField(max_length=500, required=False)
    of = WholeField(min_value=1, required=False)
    expected = WholeField(min_value=0, required=False)
    over = WholeField(min_value=0, required=False)

    def clean_text(self) -> str:
        """Browsers send carriage returns, which are no part of the text."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")
