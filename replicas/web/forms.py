"""The forms of the dashboard: what may be posted, with its bounds."""

from django import forms

from replicas.core.spec.kinds import MOST_REPLICAS

TEXT_MOST = 512 * 1024  # characters; the parser has its own, tighter limits and says which one was passed


class ScaleForm(forms.Form):
    """How many replicas are wanted."""

    target = forms.IntegerField(min_value=0, max_value=MOST_REPLICAS)


class RestartForm(forms.Form):
    """`expected`: the version that was active when the page was drawn, so that a double click restarts once."""

    expected = forms.IntegerField(min_value=0)


class SteerForm(forms.Form):
    """`rollout`: the id of the rollout that the page showed, so that a late click does not meet another one."""

    rollout = forms.IntegerField(min_value=1, required=False)


class RollbackForm(forms.Form):
    """`version`: where to go back to, without it the last good one; `expected`: the version that was active."""

    version = forms.IntegerField(min_value=1, required=False)
    message = forms.CharField(max_length=500, required=False)
    expected = forms.IntegerField(min_value=0, required=False)


class PurgeForm(forms.Form):
    """For down and terminate: whether the history goes as well."""

    purge = forms.BooleanField(required=False)


class SpecForm(forms.Form):
    """A YAML text that is to become a version.

    `expected` is the version that the text was made from; `over` a newer one that the user has seen and wants replaced.
    """

    text = forms.CharField(max_length=TEXT_MOST, strip=False, widget=forms.Textarea)
    name = forms.CharField(max_length=200, required=False)
    message = forms.CharField(max_length=500, required=False)
    expected = forms.IntegerField(min_value=0, required=False)
    over = forms.IntegerField(min_value=0, required=False)

    def clean_text(self) -> str:
        """Browsers send carriage returns, which are no part of the text."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")
