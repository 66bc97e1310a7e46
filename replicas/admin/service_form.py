"""The form of a service in Django admin: wishes, checked as they would be carried out."""

from typing import Any

from django import forms
from django.contrib.auth.models import User

from replicas.core.spec.kinds import MOST_REPLICAS
from replicas.core.values import Desired
from replicas.models import Service, ServiceVersion
from replicas.web.numbers import WholeField

TEXT_MOST = 512 * 1024  # characters; the parser has its own, tighter limits and says which one was passed


class SpecField(forms.CharField):
    """A YAML text. Browsers send it with carriage returns, which are no part of it."""

    widget = forms.Textarea(attrs={"rows": 30, "cols": 100, "spellcheck": "false", "class": "rc-yaml"})

    def to_python(self, value: Any) -> str:
        """See Field."""
        return str(super().to_python(value)).replace("\r\n", "\n")

    def has_changed(self, initial: Any, data: Any) -> bool:
        """See Field; a browser drops the line break in front, and adds none at the end."""
        return self.to_python(initial).strip("\n") != self.to_python(data).strip("\n")


class ServiceForm(forms.ModelForm):
    """Fields of no row: `save` changes nothing, `ServiceAdmin.save_model` carries the wishes out.

    `proposal` is set for a text that is to be carried out; whoever does not do so discards it.
    """

    name = forms.CharField(
        max_length=200, required=False, help_text="In place of the name in the text; may be left empty."
    )
    desired = forms.ChoiceField(
        choices=[(word.value, word.value) for word in Desired],
        show_hidden_initial=True,
        help_text="DOWN takes the service down; UP brings it up again.",
    )
    target = WholeField(
        min_value=0,
        max_value=MOST_REPLICAS,
        show_hidden_initial=True,
        label="desired number",
        help_text="How many replicas are wanted. A changed YAML sets it anew.",
    )
    text = SpecField(
        max_length=TEXT_MOST,
        strip=False,
        label="YAML",
        help_text="What is changed here becomes a new version.",
    )
    owner = forms.ModelChoiceField(
        User.objects.order_by("username"),
        required=False,
        empty_label="nobody",
        help_text="Only they, and who may act on services of others, act on it; on nobody's, everybody who may act.",
    )
    message = forms.CharField(max_length=500, required=False, help_text="Why, for the history.")
    expected = WholeField(min_value=0, required=False, widget=forms.HiddenInput)

    may_deploy = True

    class Meta:
        model = Service
        fields: tuple[str, ...] = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.proposal: Any = None
        if self.instance.pk is not None:
            version = self.instance.version
            self.initial.update(
                desired=self.instance.desired,
                target=self.instance.target,
                owner=self.instance.owner_id,
                text=version.text if version else "",
                expected=version.number if version else 0,
            )
            self._explain(version)

    def _explain(self, version: ServiceVersion | None) -> None:
        """Say beside the fields, before anything is saved, what saving would do that one might not think of."""
        from replicas.core.spec import Spec

        if version is None:
            return
        spec = Spec.from_json(version.spec)
        asked, by_load = spec.target, spec.service.replica_policy is not None
        if "target" in self.fields and by_load:
            self.fields["target"].help_text = "The load decides; another number is fixed until somebody releases it."
        elif "target" in self.fields and asked != self.instance.target:
            self.fields[
                "target"
            ].help_text += f" It was scaled by hand: the YAML of version {version.number} says {asked}."
        if "text" not in self.fields:
            return
        if asked != self.instance.target and not by_load:
            self.fields["text"].help_text += (
                f" Saving a changed YAML sets the number to what it says ({asked} as it stands): the"
                f" {self.instance.target} that were set by hand are lost, unless you write them here."
            )
        if version.spec.get("secrets"):
            self.fields["text"].help_text += " *** stands for the value of a secret that is kept."

    def clean(self) -> dict[str, Any]:
        """Check each wish; a text that is to be carried out is proposed, its faults stand at it with their lines."""
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        wished = cleaned["desired"] if "desired" in self.changed_data else None
        edited = "text" in self.changed_data
        if wished == Desired.DOWN and (edited or "target" in self.changed_data):
            self.add_error("desired", "Either take the service down or change something else: not both at once.")
        elif wished == Desired.UP and not self.may_deploy:
            self.add_error("desired", "To bring a service up again is to deploy it, which your account may not.")
        elif self.instance.pk is None or edited or wished == Desired.UP:
            self._propose(cleaned)
        elif "target" in self.changed_data:
            self._check_target(cleaned["target"])
        return cleaned

    def _post_clean(self) -> None:
        """See ModelForm; what was proposed beside a fault goes again."""
        super()._post_clean()  # type: ignore[misc]
        if self.errors and self.proposal is not None:
            from replicas.web import intake

            intake.discard(self.proposal)
            self.proposal = None

    def _check_target(self, target: int) -> None:
        from replicas.web import intake

        try:
            intake.check_scale(self.instance, target)
        except intake.IntakeError as refusal:
            self.add_error("target", str(refusal))

    def _propose(self, cleaned: dict[str, Any]) -> None:
        from replicas.core.spec import SpecErrors
        from replicas.web import intake

        active: ServiceVersion | None = self.instance.version if self.instance.pk is not None else None
        number = active.number if active else 0
        seen = cleaned.get("expected")
        if active is not None and seen is not None and seen != number:
            self.add_error(
                "text",
                f"Version {number} was applied by {active.created_by or 'somebody'} while you were editing version"
                f" {seen}. Open the service in another tab, look at what has changed, and edit that.",
            )
            return
        text = cleaned.get("text") or (active.text if active else "")
        name = self.instance.name if self.instance.pk is not None else cleaned.get("name") or None
        try:
            proposal = intake.propose(text, name=name, message=cleaned.get("message", ""), files=True)
        except SpecErrors as errors:
            for error in errors.errors:
                self.add_error("text", str(error))
            return
        except intake.IntakeError as refusal:
            self.add_error("text", str(refusal))
            return
        self.proposal = proposal
        if self.instance.pk is None and proposal.active_number:
            self.add_error("name", f"There is a service {proposal.draft.name} already: change that one.")
